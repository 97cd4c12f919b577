#![allow(unsafe_code, reason = "functions that C calls")]
//! Guards: the kernel's nodes of devices that are bound to the kernel module `contigo`.

use super::{port::contigo_port, raw};
use crate::{
    last_error::call,
    object::{
        GUARDS, open_guard,
        port::{PORTS, get},
    },
    status::contigo_status,
};
use core::ffi::c_char;

/// A guard: the kernel's node of a device that is bound to the kernel module `contigo`. It gives
/// memory its bus address, and stops the device when the program ends. `contigo_device_open` with
/// `guard:DEVICE` opens the device's registers too.
pub type contigo_guard = u64;

/// Opens `/dev/contigo/<name>`, such as `f8003000.dma-port`. One program at a time has it. Close it
/// with `contigo_guard_close`.
///
/// # Safety
/// `name` is NUL-terminated; `guard` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_guard_open(name: *const c_char, guard: *mut contigo_guard) -> contigo_status {
    // SAFETY: the caller's promise.
    unsafe {
        raw::answer(guard, "guard", || {
            let name = raw::text(name, "name")?;
            // First: a full table opens no device.
            let mut claimed = GUARDS.claim()?;
            claimed.locked.put(open_guard(name)?);
            Ok(claimed.raw())
        })
    }
}

/// `port` as the kernel describes this device: on a bus of its own where `dma-ranges` or an IOMMU
/// translate its addresses. Memory that is allocated for a guard is used through such a port. Close
/// `seen` with `contigo_port_close`.
///
/// # Safety
/// `seen` is writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_guard_see(guard: contigo_guard, port: contigo_port, seen: *mut contigo_port) -> contigo_status {
    // SAFETY: the caller's promise.
    unsafe { raw::answer(seen, "seen", || Ok(PORTS.insert(GUARDS.lease(guard)?.seen_through(get(port)?))?)) }
}

/// Closes a guard. The kernel then runs the stop that `contigo_engine_arm` left there.
/// `CONTIGO_E_STILL_USED` while the guard has regions, or engines that were armed with it: close
/// them first.
#[unsafe(no_mangle)]
pub extern "C" fn contigo_guard_close(guard: contigo_guard) -> contigo_status {
    call(|| {
        GUARDS.lock(guard)?.clear();
        Ok(())
    })
}
