#![allow(
    unsafe_code,
    reason = "functions that a driver's library calls, with the device that it was given"
)]
//! The device that a driver in a shared library uses, through functions: its registers, its clock
//! and its memory.

use super::abi::{contigo_driver_device, contigo_status};
use crate::text;
use contigo::job::Settings;
use contigo::mem::{DriverBuf, SimulatedDevice};
use contigo::names::AnyDevice;
use contigo::{Device, Error, Mmio, Result, Wait};
use core::cell::{Cell, UnsafeCell};
use core::ffi::{c_char, c_void};
use core::ptr::NonNull;
use core::{mem, slice};
use std::ffi::CString;
use std::sync::{Mutex, PoisonError};

/// The structure that the library points to, and the data behind it. It does not move.
#[repr(C)]
struct Shared {
    /// First, so that its address is the address of `Shared`.
    abi: contigo_driver_device,
    device: AnyDevice,
    /// Only `memory` below and `LibraryDevice`'s drop access it.
    memory: UnsafeCell<Option<DriverBuf>>,
    settings: CString,
    known: &'static [&'static str],
    /// The last result of one of the functions, if it was an error.
    refused: Cell<Option<Error>>,
    /// The reason that the driver gave last.
    why: Cell<Option<&'static str>>,
}

/// The device of one driver. The library points to it, too, so it is only shared, and everything
/// that changes is in cells.
pub(super) struct LibraryDevice {
    shared: NonNull<Shared>,
    /// The library's `close`, and the lock under which it opens and closes.
    close: Option<(unsafe extern "C" fn(*mut c_void), &'static Mutex<()>)>,
    /// The device knows no address: the driver is not open yet, or stopped it after its last job.
    pub(super) is_at_rest: bool,
}

impl LibraryDevice {
    /// Makes `device` and memory for descriptors available to the library.
    ///
    /// # Errors
    /// As [`DriverBuf::new`], for a register of `addr_bits` bits.
    pub(super) fn new(
        device: AnyDevice,
        memory: Option<contigo::CpuBuf>,
        addr_bits: u32,
        settings: Settings<'_>,
        known: &'static [&'static str],
    ) -> Result<Self> {
        let settings = CString::new(settings.0).map_err(|_| Error::NotANumber {
            name: "a setting with a NUL",
            min: 0,
            max: u64::MAX,
        })?;
        let memory = memory
            .map(|memory| {
                DriverBuf::new(memory, device.port(), addr_bits).map_err(|refused| refused.error)
            })
            .transpose()?;
        let abi = contigo_driver_device {
            struct_size: mem::size_of::<contigo_driver_device>(),
            len_bytes: device.len_bytes(),
            settings: settings.as_ptr(),
            memory_bytes: memory.as_ref().map_or(0, DriverBuf::len_bytes),
            memory_addr: memory.as_ref().map_or(0, |memory| memory.addr_at(0).0),
            memory_stride_bytes: memory.as_ref().map_or(0, |memory| memory.stride(1)),
            port_addr_bits: device.port().addr_bits,
            port_coherent: device.port().coherent.into(),
            read32: Some(read32),
            write32: Some(write32),
            now_us: Some(now_us),
            wait: Some(wait),
            setting: Some(setting),
            memory_write: Some(memory_write),
            memory_read: Some(memory_read),
            say: Some(say),
        };
        let memory = UnsafeCell::new(memory);
        let shared = Box::into_raw(Box::new(Shared {
            abi,
            device,
            memory,
            settings,
            known,
            refused: Cell::new(None),
            why: Cell::new(None),
        }));
        // SAFETY: a box is not null.
        let shared = unsafe { NonNull::new_unchecked(shared) };
        Ok(Self { shared, close: None, is_at_rest: true })
    }

    /// The pointer for the library.
    pub(super) const fn abi(&self) -> *const contigo_driver_device {
        self.shared.as_ptr().cast()
    }

    /// Notes that the driver was opened, and may have told the device the memory's address. `close`
    /// is called with the driver's context at the end.
    pub(super) fn opened(
        &mut self,
        close: Option<unsafe extern "C" fn(*mut c_void)>,
        alone: &'static Mutex<()>,
    ) {
        self.close = close.map(|close| (close, alone));
        self.is_at_rest = false;
    }

    /// # Safety
    /// Called once, with the context of the library's `open`, after all its other functions.
    pub(super) unsafe fn close(&mut self, context: *mut c_void) {
        if let Some((close, alone)) = self.close.take() {
            let _alone = alone.lock().unwrap_or_else(PoisonError::into_inner);
            // SAFETY: the caller's promise.
            unsafe { close(context) };
        }
    }

    fn shared(&self) -> &Shared {
        // SAFETY: it lives as long as this value, and nothing writes it except through cells.
        unsafe { self.shared.as_ref() }
    }

    /// The error of `status`, where one of the functions returned it last, and the driver's reason.
    /// Both are cleared.
    pub(super) fn refused(&self, status: contigo_status) -> (Option<Error>, Option<&'static str>) {
        let Shared { refused, why, .. } = self.shared();
        (refused.take().filter(|error| error.row().code == status), why.take())
    }

    pub(super) fn now_us(&self) -> u64 {
        self.shared().device.now_us()
    }

    pub(super) fn simulated(&self) -> Option<&dyn SimulatedDevice> {
        self.shared().device.simulated()
    }

    pub(super) fn arm_irq(&self) -> Result<Option<i32>> {
        self.shared().device.arm_irq()
    }
}

impl Drop for LibraryDevice {
    fn drop(&mut self) {
        // SAFETY: it was a box, and no function of the library is called any more.
        let Shared { memory, .. } = *unsafe { Box::from_raw(self.shared.as_ptr()) };
        if self.is_at_rest {
            // SAFETY: the device fetches nothing: `is_at_rest`.
            drop(memory.into_inner().map(|memory| unsafe { memory.release() }));
        }
    }
}

/// # Safety
/// `device` is a pointer that [`LibraryDevice::abi`] returned, and the value is alive.
unsafe fn of<'a>(device: *const c_void) -> &'a Shared {
    // SAFETY: the caller's promise; see `LibraryDevice::shared`.
    unsafe { &*device.cast() }
}

/// The status of `result`. An error is kept.
fn answer(shared: &Shared, result: Result<()>) -> contigo_status {
    shared.refused.set(result.err());
    result.err().map_or(0, |error| error.row().code)
}

unsafe extern "C" fn read32(device: *const c_void, offset: usize) -> u32 {
    // SAFETY: the library passes the pointer that it got, as contigo.h requires.
    unsafe { of(device) }.device.read32(offset)
}

unsafe extern "C" fn write32(device: *const c_void, offset: usize, value: u32) {
    // SAFETY: as in `read32`; the driver guarantees the effect of the value.
    unsafe { of(device).device.write32(offset, value) }
}

unsafe extern "C" fn now_us(device: *const c_void) -> u64 {
    // SAFETY: as in `read32`.
    unsafe { of(device) }.device.now_us()
}

unsafe extern "C" fn wait(device: *const c_void, timeout_us: u32) -> contigo_status {
    // SAFETY: as in `read32`.
    let shared = unsafe { of(device) };
    answer(shared, shared.device.wait_at_most(timeout_us))
}

unsafe extern "C" fn setting(
    device: *const c_void,
    name: *const c_char,
    min: u64,
    max: u64,
    otherwise: u64,
    value: *mut u64,
) -> contigo_status {
    // SAFETY: as in `read32`; the name is a text of the library's.
    let (shared, name) = unsafe { (of(device), text(name, "the name of a setting").unwrap_or("")) };
    let find = || {
        let unlisted = Error::Unsupported {
            what: "the driver asks for a setting that it does not list",
            fix: "list it in contigo_driver_library.settings",
        };
        let name = shared.known.iter().find(|known| **known == name).ok_or(unlisted)?;
        let given = Settings(shared.settings.to_str().unwrap_or("")).number(name, min, max)?;
        // SAFETY: the library guarantees that it is writable.
        unsafe { value.write_unaligned(given.unwrap_or(otherwise)) };
        Ok(())
    };
    answer(shared, find())
}

const NO_MEMORY: Error = Error::Unsupported {
    what: "the driver has no memory of its own",
    fix: "say how much it needs in contigo_driver_library.memory_bytes",
};

/// The driver's memory.
///
/// # Safety
/// As [`of`]; no other reference to the memory is used before this one ends.
unsafe fn memory<'a>(device: *const c_void) -> Result<&'a mut DriverBuf> {
    // SAFETY: the caller's promise.
    unsafe { &mut *of(device).memory.get() }.as_mut().ok_or(NO_MEMORY)
}

/// Checks that `words` has a slice of `n` words, and that as many fit into the memory at `offset`.
///
/// # Safety
/// As [`of`].
unsafe fn fit(device: *const c_void, offset: usize, words: *const u32, n: usize) -> Result<()> {
    // SAFETY: the caller's promise.
    let len_bytes = unsafe { memory(device)? }.len_bytes();
    let end = offset.saturating_add(n.saturating_mul(4));
    if end > len_bytes {
        return Err(Error::OutOfRange { start: offset, end, len_bytes });
    }
    match (words.is_null(), words.is_aligned()) {
        (false, true) => Ok(()),
        _ => Err(Error::Misaligned { addr: words.addr() as u64, align_bytes: 4 }),
    }
}

unsafe extern "C" fn memory_write(
    device: *const c_void,
    offset: usize,
    words: *const u32,
    n: usize,
) -> contigo_status {
    if n == 0 {
        return 0;
    }
    // SAFETY: as in `read32`. The library guarantees that so many words are there, and that the
    // device does not fetch these bytes.
    unsafe {
        let wrote = fit(device, offset, words, n)
            .and_then(|()| memory(device)?.write(offset, slice::from_raw_parts(words, n)));
        answer(of(device), wrote)
    }
}

unsafe extern "C" fn memory_read(
    device: *const c_void,
    offset: usize,
    words: *mut u32,
    n: usize,
) -> contigo_status {
    if n == 0 {
        return 0;
    }
    // SAFETY: as in `memory_write`; the words are writable.
    unsafe {
        let read = fit(device, offset, words, n)
            .and_then(|()| memory(device)?.read(offset, slice::from_raw_parts_mut(words, n)));
        answer(of(device), read)
    }
}

unsafe extern "C" fn say(device: *const c_void, why: *const c_char) {
    // SAFETY: as in `read32`; the text is a constant of the library, which is never unloaded.
    unsafe { of(device).why.set(text(why, "why").ok()) }
}
