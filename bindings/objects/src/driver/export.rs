#![allow(unsafe_code, reason = "functions that a program calls, with the driver that they opened")]
//! A driver in Rust, as a shared library that programs load.

use super::abi::{
    contigo_completion, contigo_dev_slice, contigo_driver_device, contigo_driver_library,
    contigo_driver_ops, contigo_operand_spec, contigo_status,
};
use super::ops::of_c;
use contigo::job::{MAX_OPERANDS, Settings};
use contigo::{Bus, DevAddr, Device, Driver, Error, Mmio, Port, Result, Wait};
use core::ffi::{CStr, c_void};
use core::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// **A driver in Rust that programs in C and Python load from a file**: a crate of type `cdylib`,
/// with [`export_driver!`](crate::export_driver) in it.
///
/// The file has its own copy of the runtime's code, and shares no type with the program: the two
/// may be of different versions. A completion's `last`, `underruns` and a stop program do not cross
/// this boundary. A driver has at least one operand.
///
/// ```
/// use contigo::{Result, drivers::zdma::Zdma, job::Settings};
/// use contigo_objects::driver::{Export, DriverDevice};
///
/// struct Copier;
/// impl Export for Copier {
///     type Driver = Zdma<DriverDevice>; // or a driver of one's own
///     const NAME: &'static std::ffi::CStr = c"my-copier";
///     const HELP: &'static std::ffi::CStr = c"copies, one job at a time";
///     unsafe fn open(device: DriverDevice, _: Settings<'_>) -> Result<Self::Driver> {
///         // SAFETY: the caller's promise.
///         unsafe { Zdma::simple(device) }
///     }
/// }
/// contigo_objects::export_driver!(Copier);
/// # fn main() {}
/// ```
pub trait Export: 'static {
    /// The driver.
    type Driver: Driver;
    /// The driver's name, as `contigo_driver_library.name`.
    const NAME: &'static CStr;
    /// One sentence: what it drives, and what its jobs are.
    const HELP: &'static CStr;
    /// The names of its settings, separated by commas.
    const SETTINGS: &'static CStr = c"";
    /// How many bytes of memory the driver itself needs, for `DriverDevice::memory`.
    const MEMORY_BYTES: usize = 0;
    /// How many bits the device's register for the memory's address has.
    const MEMORY_ADDR_BITS: u32 = 64;

    /// Opens the driver.
    ///
    /// # Errors
    /// The reason why the device does not suit this driver. The program gets the error's code and
    /// name (`Error::Driver`) without its numbers, and an error of `device`'s functions unchanged.
    ///
    /// # Safety
    /// The device is the one that the driver is for, and no other code drives it while the driver
    /// lives.
    unsafe fn open(device: DriverDevice, settings: Settings<'_>) -> Result<Self::Driver>;
}

/// Makes a crate of type `cdylib` the library of a driver: see [`Export`](crate::driver::Export).
/// Use it once in a crate.
#[macro_export]
macro_rules! export_driver {
    ($export:ty) => {
        /// The symbol that programs look up in this library.
        #[unsafe(no_mangle)]
        #[allow(non_upper_case_globals, unsafe_code, reason = "the symbol's name")]
        pub static contigo_driver: $crate::driver::contigo_driver_library =
            $crate::driver::library_of::<$export>();
    };
}

/// The exported structure of a driver's library: for [`export_driver!`](crate::export_driver).
#[must_use]
pub const fn library_of<D: Export>() -> contigo_driver_library {
    contigo_driver_library {
        struct_size: mem::size_of::<contigo_driver_library>(),
        name: D::NAME.as_ptr(),
        help: D::HELP.as_ptr(),
        settings: D::SETTINGS.as_ptr(),
        memory_bytes: D::MEMORY_BYTES,
        memory_addr_bits: D::MEMORY_ADDR_BITS,
        reserved: 0,
        open: Some(open::<D>),
        close: Some(close::<D>),
    }
}

/// The structure that the program lent. Its functions identify the device by it, too.
///
/// INVARIANT: a program gave it to a library's `open`, and the library's `close` has not returned.
#[derive(Clone, Copy, Debug)]
struct Lent(*const contigo_driver_device);

// SAFETY: the program's functions may be called from any thread, one at a time (contigo.h).
unsafe impl Send for Lent {}

impl Lent {
    /// The structure's numbers and functions.
    const fn said(&self) -> &contigo_driver_device {
        // SAFETY: see the invariant: `close` drops the driver, and with it this value.
        unsafe { &*self.0 }
    }

    /// The pointer, as the functions take it.
    const fn raw(&self) -> *const c_void {
        self.0.cast()
    }
}

/// The device that the program lent: its registers, its interrupt, and memory for descriptors.
#[derive(Debug)]
pub struct DriverDevice {
    lent: Lent,
    port: Port,
    memory_bytes: usize,
}

/// The driver's own memory, which the device fetches: descriptors, microcode.
#[derive(Debug)]
pub struct DriverMemory {
    lent: Lent,
    len_bytes: usize,
}

/// The result of one of the program's functions.
const fn answered(status: contigo_status) -> Result<()> {
    // The program knows the error, and recognizes it by its number: see `answer`.
    if status == 0 {
        Ok(())
    } else {
        Err(Error::Fault {
            device: PROGRAM,
            status: status.cast_unsigned(),
            what: "the program's function",
        })
    }
}

/// Stands for the names of the program's device and port, which the library does not know.
const PROGRAM: &str = "the program's";

/// The status in place of a missing function.
const MISSING: contigo_status = -1;

impl DriverDevice {
    /// # Safety
    /// A program gave `device` to a library's `open`.
    unsafe fn new(device: *const contigo_driver_device) -> Self {
        let lent = Lent(device);
        let (addr_bits, coherent) = (lent.said().port_addr_bits, lent.said().port_coherent == 1);
        let window = (0, u64::MAX.checked_shr(64_u32.saturating_sub(addr_bits)).unwrap_or(0));
        let port = Port { name: PROGRAM, bus: Bus::Soc, offset: 0, addr_bits, window, coherent };
        Self { lent, port, memory_bytes: lent.said().memory_bytes }
    }

    /// The driver's own memory, once: at least [`Export::MEMORY_BYTES`] bytes.
    pub const fn memory(&mut self) -> Option<DriverMemory> {
        match mem::replace(&mut self.memory_bytes, 0) {
            0 => None,
            len_bytes => Some(DriverMemory { lent: self.lent, len_bytes }),
        }
    }
}

// SAFETY: 1. The registers are those of the device that the program opened for this driver. 2. The
// program lends them to one driver only, and `Export::open`'s caller promises the same.
unsafe impl Mmio for DriverDevice {
    fn len_bytes(&self) -> usize {
        self.lent.said().len_bytes
    }

    fn read32(&self, offset: usize) -> u32 {
        let Some(read) = self.lent.said().read32 else { return u32::MAX };
        // SAFETY: the arguments are as contigo.h requires; the same holds below.
        unsafe { read(self.lent.raw(), offset) }
    }

    unsafe fn write32(&self, offset: usize, value: u32) {
        let Some(write) = self.lent.said().write32 else { return };
        // SAFETY: as above; the caller guarantees the effect of the value.
        unsafe { write(self.lent.raw(), offset, value) }
    }
}

impl Wait for DriverDevice {
    fn now_us(&self) -> u64 {
        let Some(now_us) = self.lent.said().now_us else { return 0 };
        // SAFETY: as above.
        unsafe { now_us(self.lent.raw()) }
    }

    fn wait_at_most(&self, timeout_us: u32) -> Result<()> {
        let Some(wait) = self.lent.said().wait else { return answered(MISSING) };
        // SAFETY: as above.
        answered(unsafe { wait(self.lent.raw(), timeout_us) })
    }
}

// SAFETY: the program made the addresses that the driver gets for the device's own port, and these
// are that port's bits and coherency.
unsafe impl Device for DriverDevice {
    fn port(&self) -> &Port {
        &self.port
    }
}

impl DriverMemory {
    /// The length in bytes.
    #[must_use]
    pub const fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    /// The bus address of the byte at `offset_bytes`.
    #[must_use]
    pub const fn addr_at(&self, offset_bytes: usize) -> DevAddr {
        DevAddr(self.lent.said().memory_addr.wrapping_add(offset_bytes as u64))
    }

    /// The distance between descriptors of `descriptor_bytes`, so that each has its cache lines to
    /// itself ([`DriverBuf::stride`](contigo::mem::DriverBuf::stride)).
    #[must_use]
    pub fn stride(&self, descriptor_bytes: usize) -> usize {
        let line = self.lent.said().memory_stride_bytes;
        descriptor_bytes.max(1).checked_next_multiple_of(line.max(1)).unwrap_or(usize::MAX)
    }

    /// As [`DriverBuf::write`](contigo::mem::DriverBuf::write).
    ///
    /// # Errors
    /// As `DriverBuf::write`; the program keeps the error itself.
    ///
    /// # Safety
    /// The device does not fetch these bytes now.
    pub unsafe fn write(&mut self, offset_bytes: usize, words: &[u32]) -> Result<()> {
        let Some(write) = self.lent.said().memory_write else { return answered(MISSING) };
        // SAFETY: as for the registers; `words` has so many words.
        answered(unsafe { write(self.lent.raw(), offset_bytes, words.as_ptr(), words.len()) })
    }

    /// As [`DriverBuf::read`](contigo::mem::DriverBuf::read).
    ///
    /// # Errors
    /// As `DriverBuf::read`; the program keeps the error itself.
    pub fn read(&mut self, offset_bytes: usize, words: &mut [u32]) -> Result<()> {
        let Some(read) = self.lent.said().memory_read else { return answered(MISSING) };
        // SAFETY: as for the registers; `words` has so many words, and they are writable.
        answered(unsafe { read(self.lent.raw(), offset_bytes, words.as_mut_ptr(), words.len()) })
    }
}

/// The target of the program's `context`.
struct Exported<D: Export> {
    driver: D::Driver,
    operands: [contigo_operand_spec; MAX_OPERANDS],
}

/// The status of a function: its error's number. An error of one of the program's own functions
/// goes back unchanged.
fn answer(act: impl FnOnce() -> Result<()>) -> contigo_status {
    /// `CONTIGO_E_INTERNAL`: the driver panicked.
    const PANICKED: contigo_status = -18;
    match catch_unwind(AssertUnwindSafe(act)) {
        Ok(Ok(())) => 0,
        Ok(Err(Error::Fault { device: PROGRAM, status, .. })) => status.cast_signed(),
        Ok(Err(Error::WillNotStop { status, .. })) if status != 0 => status.cast_signed(),
        Ok(Err(error)) => error.row().code,
        Err(_) => PANICKED,
    }
}

/// The driver behind a context.
///
/// # Safety
/// `open` made the context, and no other reference to the driver is used before this one ends: the
/// program calls one function at a time.
unsafe fn driver_of<'a, D: Export>(context: *mut c_void) -> &'a mut D::Driver {
    // SAFETY: the caller's promise.
    unsafe { &mut (*context.cast::<Exported<D>>()).driver }
}

unsafe extern "C" fn open<D: Export>(
    device: *const contigo_driver_device,
    ops: *mut contigo_driver_ops,
    context: *mut *mut c_void,
) -> contigo_status {
    let act = || {
        // SAFETY: the program guarantees (contigo.h) its structure, a text, and two writable
        // pointers.
        unsafe {
            let settings = CStr::from_ptr((*device).settings).to_str().unwrap_or("");
            let driver = D::open(DriverDevice::new(device), Settings(settings))?;
            let mut operands = [contigo_operand_spec::default(); MAX_OPERANDS];
            operands.iter_mut().zip(driver.operands()).for_each(|(to, from)| *to = from.into());
            let (depth, in_order, addr_bits) =
                (driver.depth(), driver.in_order(), driver.addr_bits());
            let n_operands = u32::try_from(driver.operands().len()).unwrap_or(u32::MAX);
            let made = Box::into_raw(Box::new(Exported::<D> { driver, operands }));
            context.write(made.cast());
            ops.write(contigo_driver_ops {
                struct_size: mem::size_of::<contigo_driver_ops>(),
                name: D::NAME.as_ptr(),
                depth: u32::try_from(depth).unwrap_or(u32::MAX),
                out_of_order: (!in_order).into(),
                addr_bits,
                n_operands,
                operands: (&raw const (*made).operands).cast(),
                check: Some(check::<D>),
                submit: Some(submit::<D>),
                poll: Some(poll::<D>),
                stop: Some(stop::<D>),
            });
        }
        Ok(())
    };
    answer(act)
}

unsafe extern "C" fn close<D: Export>(context: *mut c_void) {
    // SAFETY: `open` made it, and this is the last call.
    let made = unsafe { Box::from_raw(context.cast::<Exported<D>>()) };
    // A panic in the driver's drop is reported on standard error.
    let _ = catch_unwind(AssertUnwindSafe(move || drop(made)));
}

unsafe extern "C" fn check<D: Export>(
    context: *mut c_void,
    operands: *const contigo_dev_slice,
    n: usize,
    args: *const u32,
    args_words: usize,
) -> contigo_status {
    // SAFETY: `open` made it; the program calls one function at a time, with so many values.
    let (driver, (operands, args)) =
        unsafe { (driver_of::<D>(context), of_c(operands, n, args, args_words)) };
    answer(|| driver.check(&operands, args))
}

unsafe extern "C" fn submit<D: Export>(
    context: *mut c_void,
    slot: u32,
    operands: *const contigo_dev_slice,
    n: usize,
    args: *const u32,
    args_words: usize,
) -> contigo_status {
    // SAFETY: as in `check`.
    let (driver, (operands, args)) =
        unsafe { (driver_of::<D>(context), of_c(operands, n, args, args_words)) };
    // SAFETY: the program submits what it has handed over, in a free slot.
    answer(|| unsafe { driver.submit(slot as usize, &operands, args) })
}

unsafe extern "C" fn poll<D: Export>(
    context: *mut c_void,
    timeout_us: u32,
    done: *mut contigo_completion,
    ended: *mut u32,
) -> contigo_status {
    // SAFETY: as in `check`.
    let driver = unsafe { driver_of::<D>(context) };
    let act = || {
        let Some(end) = driver.poll(Duration::from_micros(timeout_us.into()))? else {
            return Ok(());
        };
        // SAFETY: both are writable; `struct_size` stays the program's.
        unsafe {
            let struct_size = (*done).struct_size;
            done.write(contigo_completion { struct_size, ..end.into() });
            ended.write(1);
        }
        Ok(())
    };
    answer(act)
}

unsafe extern "C" fn stop<D: Export>(context: *mut c_void) -> contigo_status {
    // SAFETY: as in `check`.
    let driver = unsafe { driver_of::<D>(context) };
    answer(|| driver.stop())
}
