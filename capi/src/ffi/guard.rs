#![allow(unsafe_code, reason = "functions that C calls")]
//! Guards: the kernel's nodes of devices that are bound to the kernel module `contigo`.

use super::{
    device::contigo_device,
    port::contigo_port,
    raw::{self, Versioned},
};
use crate::{
    fault::{Fault, Misuse},
    handle::Kind,
    last_error::call,
    object::{
        GUARDS, Guard,
        device::DEVICES,
        open_guard,
        port::{PORTS, get},
    },
    status::contigo_status,
};
use core::{ffi::c_char, mem};

/// A guard: the kernel's node of a device that is bound to the kernel module `contigo`. It gives
/// memory its bus address, and stops the device when the program ends. `contigo_device_open` with
/// `guard:DEVICE` serves the device's registers and its interrupt too, of the same node: a device
/// is opened one way or the other.
pub type contigo_guard = u64;

/// The kernel's facts about a guarded device and this program's opening of it. Yes is 1, no 0.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct contigo_guard_info {
    /// `sizeof(contigo_guard_info)`.
    pub struct_size: usize,
    /// The device snoops the CPU's caches.
    pub is_coherent: u32,
    /// Its bus addresses are not physical ones.
    pub is_translated: u32,
    /// It reaches memory that was imported for it, and nothing else: an IOMMU that forgets an
    /// address at once stands before this device alone.
    pub is_confined: u32,
    /// The kernel can reset it (`contigo_device_reset`, `contigo_guard_reset`), and does so when
    /// the program ends.
    pub can_reset: u32,
    /// The kernel has a program that stops it (`contigo_engine_arm`).
    pub is_armed: u32,
    /// How many interrupts it has.
    pub interrupts: u32,
    /// Blocks that this opening has allocated or imported.
    pub buffers: u32,
    /// Blocks in quarantine, because nothing has stopped the device.
    pub quarantined: u32,
    /// How long those are, in bytes.
    pub quarantined_bytes: u64,
    /// How many bytes each window of registers has; 0: there is none.
    pub window_len_bytes: [u64; 6],
}

// SAFETY: integers only, `struct_size` first.
unsafe impl Versioned for contigo_guard_info {
    const NAME: &'static str = "contigo_guard_info";
    const LEAST: usize = mem::size_of::<Self>();
}

/// Opens `/dev/contigo/<name>`, such as `f8003000.dma-controller`. One program at a time has it.
/// Close it with `contigo_guard_close`.
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

/// Fills `info` with the kernel's facts about a guard.
///
/// # Safety
/// `info` points to a structure whose `struct_size` is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_guard_get_info(guard: contigo_guard, info: *mut contigo_guard_info) -> contigo_status {
    call(|| {
        let guard = GUARDS.lease(guard)?;
        // SAFETY: the caller's promise.
        unsafe { fill(&guard, info) }
    })
}

/// As `contigo_guard_get_info`, of a device that was opened by its name. `CONTIGO_E_KIND`: it is no
/// `guard:…`.
///
/// # Safety
/// `info` points to a structure whose `struct_size` is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_device_get_guard_info(device: contigo_device, info: *mut contigo_guard_info) -> contigo_status {
    call(|| {
        let device = DEVICES.lease(device)?;
        let guard = device.guard().ok_or(Misuse::WrongKind { expected: Kind::Guard, found: Kind::Device })?;
        // SAFETY: the caller's promise.
        unsafe { fill(guard, info) }
    })
}

/// # Safety
/// `info` points to a structure whose `struct_size` is set.
unsafe fn fill(guard: &Guard, info: *mut contigo_guard_info) -> Result<(), Fault> {
    let found = guard.info()?;
    let value = contigo_guard_info {
        struct_size: 0,
        is_coherent: found.coherent.into(),
        is_translated: found.translated.into(),
        is_confined: found.confined.into(),
        can_reset: found.can_reset.into(),
        is_armed: found.armed.into(),
        interrupts: found.interrupts,
        buffers: found.buffers,
        quarantined: found.quarantined,
        quarantined_bytes: found.quarantined_bytes,
        window_len_bytes: found.window_len_bytes,
    };
    // SAFETY: the caller's promise.
    unsafe { raw::fill(info, &value) }
}

/// Resets a guard's device: it is as after power-on, and has let go of all memory. Memory that was
/// kept for it is given back. A PCI function masters the bus no more. `CONTIGO_E_OS` with
/// `EOPNOTSUPP`: the kernel has no way to. Stop the device's engine before, or right after, and
/// start nothing in between: a job that the reset ended might count as done.
///
/// # Safety
/// Nobody calls an engine of the device meanwhile: to start a job, to wait for one, or to look.
/// Some drivers start jobs while they wait. A thread that the reset holds between a job's addresses
/// and its start would start a job with cleared addresses. The library cannot check that.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_guard_reset(guard: contigo_guard) -> contigo_status {
    call(|| {
        // SAFETY: the caller's promise.
        unsafe { GUARDS.lease(guard)?.reset()? };
        Ok(())
    })
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

#[cfg(test)]
#[path = "guard_tests.rs"]
mod tests;
