#![allow(unsafe_code, reason = "code that is loaded is believed")]
//! Drivers in shared libraries: each is loaded once, and is then a row of the drivers' table.

use super::abi::{contigo_driver_library, contigo_driver_ops};
use super::device::LibraryDevice;
use super::ops::DriverOps;
use crate::{ArgumentError, Refusal, keep, read, text};
use contigo::job::{AnyDriver, Parts};
use contigo::linux::same_process;
use contigo::names::{self, AnyDevice, DriverRow};
use contigo::{Device, Error, Result};
use core::ffi::c_void;
use core::mem::{self, MaybeUninit};
use core::{fmt, ptr};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};

/// The most libraries that a process loads: a bitstream has a handful of cores.
pub const DRIVER_LIBRARIES: usize = 8;

/// The most settings of such a driver.
const SETTINGS: usize = 16;

/// Why a driver's library was not loaded.
#[derive(Debug)]
pub enum LoadError {
    /// The loader refused the file, or it does not export `contigo_driver`: the loader's message.
    Library(String),
    /// The library exports an invalid structure.
    Refused(Refusal),
    /// Another driver has that name: it is built in, or was loaded from another file or another
    /// build of this one.
    Taken {
        /// The name.
        name: &'static str,
    },
    /// [`DRIVER_LIBRARIES`] are loaded already.
    TooMany,
}

impl<E: Into<Refusal>> From<E> for LoadError {
    fn from(error: E) -> Self {
        Self::Refused(error.into())
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Library(said) => f.write_str(said),
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Taken { name } => write!(
                f,
                "there is a driver {name} already; give this one another name, or, where this is \
                 a new build of it, load it in a new process"
            ),
            Self::TooMany => write!(f, "a process loads {DRIVER_LIBRARIES} drivers at most"),
        }
    }
}

impl std::error::Error for LoadError {}

/// The data of a loaded library. It is never unloaded, and neither are its texts and functions.
struct Loaded {
    /// The address of its entry, by which a second load recognizes the library.
    entry: usize,
    said: contigo_driver_library,
    row: DriverRow,
    /// Serializes its `open` and `close`: a driver may have tables of its own.
    alone: Mutex<()>,
}

// SAFETY: it is only read, and its pointers are to constants and functions of its library.
unsafe impl Sync for Loaded {}
// SAFETY: as above.
unsafe impl Send for Loaded {}

struct Place {
    settings: OnceLock<heapless::Vec<&'static str, SETTINGS>>,
    loaded: OnceLock<Loaded>,
}

static PLACES: [Place; DRIVER_LIBRARIES] =
    [const { Place { settings: OnceLock::new(), loaded: OnceLock::new() } }; DRIVER_LIBRARIES];

type Open = for<'t> unsafe fn(Parts<'t, AnyDevice>) -> Result<AnyDriver>;

/// One function for each place: a row's function can recognize its library only by its own address.
const OPENS: [Open; DRIVER_LIBRARIES] =
    [open::<0>, open::<1>, open::<2>, open::<3>, open::<4>, open::<5>, open::<6>, open::<7>];

/// Loads the library at `path`, and adds its driver to the table ([`contigo::names::register`]),
/// from which every language opens it by its name. A library that was loaded before returns its old
/// row. It stays loaded for as long as the process runs.
///
/// ```no_run
/// use contigo::names::row;
/// // SAFETY: its source is beside this program's.
/// let mover = unsafe { contigo_objects::load_driver("./libmover.so".as_ref())? };
/// assert_eq!(row(mover.name)?.help, mover.help);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`LoadError`]: nothing of the library is left.
///
/// # Safety
/// The file's code runs at once, and again whenever its driver is used. It is a driver that follows
/// `contigo.h`'s rules.
pub unsafe fn load_driver(path: &Path) -> core::result::Result<&'static DriverRow, LoadError> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    // In a child of fork, another thread of the parent may hold the lock for ever.
    same_process()?;
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: the caller's promise.
    let library = unsafe { Library::open(Some(path.as_os_str()), RTLD_NOW | RTLD_LOCAL) }
        .map_err(|error| LoadError::Library(words(&error)))?;
    // SAFETY: the symbol of this name is such a structure: the caller guarantees it.
    let entry = unsafe {
        library.get::<*const contigo_driver_library>(c"contigo_driver".to_bytes_with_nul())
    };
    let entry = *entry.map_err(|error| LoadError::Library(words(&error)))?;
    if let Some(loaded) = PLACES
        .iter()
        .filter_map(|place| place.loaded.get())
        .find(|loaded| loaded.entry == entry.addr())
    {
        return loaded.listed();
    }
    // SAFETY: the caller's promise.
    let said = unsafe { read(entry)? };
    if said.reserved != 0 {
        return Err(ArgumentError::Value {
            what: "contigo_driver.reserved",
            value: said.reserved.into(),
        }
        .into());
    }
    if said.open.is_none() {
        return Err(ArgumentError::Null { what: "contigo_driver.open" }.into());
    }
    // SAFETY: the library stays loaded while these texts are used: see below.
    let (name, help) = unsafe {
        (text(said.name, "contigo_driver.name")?, text(said.help, "contigo_driver.help")?)
    };
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if name.is_empty() || !name.bytes().all(is_name) {
        return Err(ArgumentError::Text {
            what: "contigo_driver.name (letters, digits, _ and -)",
            max_bytes: crate::NAME_BYTES,
        }
        .into());
    }
    if names::row(name).is_ok() {
        return Err(LoadError::Taken { name: keep(name)? });
    }
    let mut settings = heapless::Vec::<_, SETTINGS>::new();
    if !said.settings.is_null() {
        // SAFETY: as above.
        let listed = unsafe { text(said.settings, "contigo_driver.settings")? };
        for setting in listed.split(',').map(str::trim).filter(|setting| !setting.is_empty()) {
            let many = ArgumentError::Value {
                what: "the number of contigo_driver.settings",
                value: SETTINGS as u64 + 1,
            };
            settings.push(setting).map_err(|_| many)?;
        }
    }
    let free = PLACES.iter().zip(OPENS).find(|(place, _)| place.loaded.get().is_none());
    let (place, open) = free.ok_or(LoadError::TooMany)?;
    let settings = place.settings.get_or_init(|| settings);
    let row = DriverRow {
        settings: Some(settings),
        memory_bytes: said.memory_bytes,
        ..DriverRow::new(name, help, open)
    };
    // From here on the library stays loaded, and `name`, `help` and `settings` with it.
    mem::forget(library);
    let loaded = place.loaded.get_or_init(|| Loaded {
        entry: entry.addr(),
        said,
        row,
        alone: Mutex::new(()),
    });
    loaded.listed()
}

/// The loader's message, which names the file and what it lacks.
fn words(error: &libloading::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

/// Opens the driver of the library in place `PLACE`.
///
/// # Safety
/// As [`DriverRow::open`].
unsafe fn open<const PLACE: usize>(parts: Parts<'_, AnyDevice>) -> Result<AnyDriver> {
    let loaded = PLACES.get(PLACE).and_then(|place| place.loaded.get()).ok_or(Error::Busy)?;
    // SAFETY: the caller's promise.
    unsafe { loaded.open(parts) }
}

/// Room for the structure of a newer library.
#[repr(C)]
union Room {
    ops: contigo_driver_ops,
    bytes: [MaybeUninit<u8>; 4096],
}

impl Loaded {
    /// Its row, which is in the table after this call.
    fn listed(&'static self) -> core::result::Result<&'static DriverRow, LoadError> {
        match names::row(self.row.name) {
            Ok(row) if ptr::eq(row, &raw const self.row) => {}
            _ => names::register(&self.row)?,
        }
        Ok(&self.row)
    }

    /// # Safety
    /// As [`DriverRow::open`].
    unsafe fn open(&'static self, parts: Parts<'_, AnyDevice>) -> Result<AnyDriver> {
        let (name, said) = (self.row.name, &self.said);
        let Some(open) = said.open else { return Err(Error::Busy) };
        let have = parts.memory.as_ref().map_or(0, |memory| memory.len_bytes());
        if have < said.memory_bytes {
            return Err(Error::Unsupported {
                what: "the driver needs memory of its own",
                fix: "give it a region, and as many bytes of it as its row in the list of drivers \
                      says",
            });
        }
        let addr_bits = if said.memory_addr_bits == 0 { 64 } else { said.memory_addr_bits };
        let (port, known) = (*parts.device.port(), self.row.settings.unwrap_or_default());
        let mut device =
            LibraryDevice::new(parts.device, parts.memory, addr_bits, parts.settings, known)?;
        let mut room = Room { bytes: [MaybeUninit::zeroed(); 4096] };
        room.ops.struct_size = mem::size_of::<contigo_driver_ops>();
        let mut context = ptr::null_mut::<c_void>();
        let alone = self.alone.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: `load_driver`'s caller guarantees that the library follows contigo.h's rules.
        let answer = unsafe { open(device.abi(), (&raw mut room).cast(), &raw mut context) };
        let (refused, why) = device.refused(answer);
        if answer != 0 {
            let why = why.unwrap_or("its open refused the device");
            return Err(refused.unwrap_or(Error::Driver { driver: name, why, answer }));
        }
        device.opened(said.close, &self.alone);
        // SAFETY: as above.
        let driver = unsafe { read(&raw const room.ops) }
            .map_err(Refusal::from)
            .and_then(|ops| unsafe { DriverOps::new(&ops, context, name, port) });
        drop(alone);
        match driver {
            Ok(driver) => AnyDriver::new(driver.with(device)),
            Err(refusal) => {
                // SAFETY: no other function of it is called after this.
                unsafe { device.close(context) };
                let wrong = |why, answer| Error::Driver { driver: name, why, answer };
                Err(match refusal {
                    Refusal::Runtime(error) => error,
                    Refusal::Argument(ArgumentError::Value { what, value }) => {
                        wrong(what, i32::try_from(value).unwrap_or(i32::MAX))
                    }
                    Refusal::Argument(ArgumentError::Null { what }) => wrong(what, 0),
                    Refusal::Argument(ArgumentError::NewerStruct { .. }) => wrong(
                        "its contigo_driver_ops has something set that this program is too old for",
                        0,
                    ),
                    _ => wrong("its contigo_driver_ops has a struct_size that cannot be", 0),
                })
            }
        }
    }
}
