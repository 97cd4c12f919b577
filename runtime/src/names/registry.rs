#![allow(unsafe_code, reason = "which core is behind registers is the program's word")]
//! Drivers by their names: the same in Rust, C, Python and the tool.

use super::AnyDevice;
#[cfg(feature = "sim")]
use crate::sim::AnyModel;
use crate::{
    drivers,
    job::{AnyCore, AnyDriver, Parts},
    types::{Error, Result, lock, near::Among},
};
use core::fmt;
use spin::Mutex;

/// **A driver that every language opens by its name**: a row of the table, built in
/// ([`drivers`](crate::drivers)) or a program's own ([`register`]).
///
/// A row of one's own, for a driver in another crate: a program links both, registers the row, and
/// C and Python open it as they open a built-in one.
///
/// ```
/// use contigo::{Result, drivers::zdma::Zdma, job::{AnyDriver, Parts}, names::{AnyDevice, DriverRow, register, row}};
///
/// /// # Safety
/// /// The device is a ZDMA channel, and no other code drives it.
/// unsafe fn open(parts: Parts<'_, AnyDevice>) -> Result<AnyDriver> {
///     // SAFETY: the caller's promise.
///     AnyDriver::new(unsafe { Zdma::simple(parts.device)? })
/// }
/// static MY_COPIER: DriverRow = DriverRow::new("my-copier", "copies, one job at a time", open);
///
/// register(&MY_COPIER)?;
/// assert_eq!(row("my-copier")?.help, "copies, one job at a time");
/// # Ok::<(), contigo::Error>(())
/// ```
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct DriverRow {
    /// Its name.
    pub name: &'static str,
    /// One sentence: what it drives, and what its jobs are.
    pub help: &'static str,
    /// The `compatible` of its node in the device tree, for a program that looks for the device.
    pub compatible: &'static [&'static str],
    /// The names of its settings: others are refused before the device is touched. `None`: its
    /// driver looks at them itself.
    pub settings: Option<&'static [&'static str]>,
    /// The core's names in Vivado's block designs, the third part of a `VLNV`: `axi_dma`.
    pub ip: &'static [&'static str],
    /// Which parameter of a block design is which setting, with the same value.
    pub parameters: &'static [(&'static str, &'static str)],
    /// How many bytes of memory the driver itself needs; 0: none.
    pub memory_bytes: usize,
    /// Do its jobs copy operand 0 to operand 1, without arguments? Then `contigo selftest` proves
    /// memory, addresses and caches with it.
    pub copies: bool,
    /// Opens it.
    ///
    /// # Safety
    /// The device is the one that the driver is for, as it is described, and no other code drives
    /// it while the driver lives.
    pub open: Open,
    /// Opens what several drivers of one device share; `None`: a driver has its device to itself.
    /// The setting `channel` chooses one of them
    /// ([`OpenDevice::take`](super::OpenDevice::take)). It is opened, and dropped, under a lock of
    /// the device's: neither calls the device's handle.
    ///
    /// # Safety
    /// The device is the one that the driver is for, and no other code drives any of it while the
    /// core lives.
    pub core: Option<OpenCore>,
    /// Makes its model, for `sim:NAME`.
    #[cfg(feature = "sim")]
    pub model: Option<fn() -> AnyModel>,
}

/// The function that opens a driver.
pub type Open = for<'a, 't> unsafe fn(Parts<'t, AnyDevice>) -> Result<AnyDriver>;

/// The function that opens a device that several drivers share.
pub type OpenCore = unsafe fn(AnyDevice) -> Result<AnyCore>;

impl DriverRow {
    /// The row of a driver that needs no memory of its own.
    #[must_use]
    pub const fn new(name: &'static str, help: &'static str, open: Open) -> Self {
        Self {
            name,
            help,
            compatible: &[],
            settings: None,
            ip: &[],
            parameters: &[],
            memory_bytes: 0,
            copies: false,
            open,
            core: None,
            #[cfg(feature = "sim")]
            model: None,
        }
    }

    /// The same, for nodes of the device tree that say one of `compatible`.
    #[must_use]
    pub const fn compatible(self, compatible: &'static [&'static str]) -> Self {
        Self { compatible, ..self }
    }

    /// The same, of a driver that has these settings and no others. One that shares its device
    /// lists `channel` too.
    #[must_use]
    pub const fn settings(self, settings: &'static [&'static str]) -> Self {
        Self { settings: Some(settings), ..self }
    }

    /// The same, of a core that Vivado's block designs call one of `ip`, whose parameters there are
    /// settings here: `("C_SG_LENGTH_WIDTH", "length_bits")`.
    #[must_use]
    pub const fn ip(self, ip: &'static [&'static str], parameters: &'static [(&'static str, &'static str)]) -> Self {
        Self { ip, parameters, ..self }
    }

    /// The same, of a driver that needs `memory_bytes` bytes of its own.
    #[must_use]
    pub const fn memory(self, memory_bytes: usize) -> Self {
        Self { memory_bytes, ..self }
    }

    /// The same, of a driver whose jobs copy operand 0 to operand 1.
    #[must_use]
    pub const fn copies(self) -> Self {
        Self { copies: true, ..self }
    }

    /// The same, of a device that several drivers share, one a channel.
    #[must_use]
    pub const fn shared(self, core: OpenCore) -> Self {
        Self { core: Some(core), ..self }
    }

    /// The same, with a model for `sim:NAME`.
    #[cfg(feature = "sim")]
    #[must_use]
    pub const fn model(self, model: fn() -> AnyModel) -> Self {
        Self { model: Some(model), ..self }
    }
}

impl fmt::Debug for DriverRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DriverRow").field("name", &self.name).field("memory_bytes", &self.memory_bytes).finish_non_exhaustive()
    }
}

/// The rows of the drivers' folders.
macro_rules! built_in {
    (@core $folder:ident) => { None };
    (@core $folder:ident shared) => {
        // SAFETY: `DriverRow::core`'s caller promises the same.
        Some(|device| unsafe { drivers::$folder::registry::open_core(device) })
    };
    ($($(#[$condition:meta])* $folder:ident $([$core:ident])?)*) => {
        &[$($(#[$condition])* DriverRow {
            name: drivers::$folder::registry::NAME,
            help: drivers::$folder::registry::HELP,
            compatible: drivers::$folder::registry::COMPATIBLE,
            settings: Some(drivers::$folder::registry::SETTINGS),
            ip: drivers::$folder::registry::IP,
            parameters: drivers::$folder::registry::PARAMETERS,
            memory_bytes: drivers::$folder::registry::MEMORY_BYTES,
            copies: drivers::$folder::registry::COPIES,
            // SAFETY: `DriverRow::open`'s caller promises the same.
            open: |parts| unsafe { drivers::$folder::registry::open(parts) },
            core: built_in!(@core $folder $($core)?),
            #[cfg(feature = "sim")]
            model: drivers::$folder::registry::MODEL,
        }),*]
    };
}

/// The drivers of this crate.
static BUILT_IN: &[DriverRow] = drivers::each_driver!(built_in);

/// How many rows a program registers at most: a bitstream has a handful of cores.
pub const MAX_REGISTERED: usize = 32;

static REGISTERED: Mutex<heapless::Vec<&'static DriverRow, MAX_REGISTERED>> = Mutex::new(heapless::Vec::new());

/// Adds a row, for the rest of the process's life.
///
/// # Errors
/// [`Error::InUse`]: there is one of that name. [`Error::TooMany`]: 32 were registered.
pub fn register(row: &'static DriverRow) -> Result<()> {
    let mut registered = lock::acquire(&REGISTERED)?;
    if registered.iter().copied().chain(BUILT_IN).any(|known| known.name == row.name) {
        return Err(Error::InUse { errno: 0 });
    }
    registered.push(row).map_err(|_| Error::TooMany { what: "registered drivers", most: MAX_REGISTERED as u64 })
}

/// The row called `name`.
///
/// # Errors
/// [`Error::NotFound`], with the names that are most like it ([`each_row`] lists all).
pub fn row(name: &str) -> Result<&'static DriverRow> {
    let registered = lock::acquire(&REGISTERED)?;
    let found = BUILT_IN.iter().chain(registered.iter().copied()).find(|row| row.name == name);
    drop(registered);
    found.ok_or_else(|| Error::NotFound { what: "driver", among: Among::nearest(name, every_name) })
}

fn every_name(each: &mut dyn FnMut(&str)) {
    each_row(|row| each(row.name));
}

/// Shows every row to `each`, the built-in ones first.
pub fn each_row(mut each: impl FnMut(&'static DriverRow)) {
    BUILT_IN.iter().for_each(&mut each);
    // Rows that others register meanwhile are not shown.
    let registered = lock::acquire(&REGISTERED).map(|registered| registered.clone()).unwrap_or_default();
    registered.iter().copied().for_each(each);
}
