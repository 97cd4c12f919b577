#![allow(unsafe_code, reason = "functions that C calls")]
//! Facts about an opened device: what the kernel module says of it, and a GPU's name.

use super::{
    device::contigo_device,
    raw::{self, Versioned},
};
use crate::{last_error::call, object::device::DEVICES, status::contigo_status};
use core::{ffi::c_char, mem};

/// Facts about an opened device. Yes is 1, no 0. Where `is_guarded` is 0 the kernel module says
/// nothing of the device, and every fact up to `window_len_bytes` is 0.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct contigo_device_info {
    /// `sizeof(contigo_device_info)`.
    pub struct_size: usize,
    /// It was opened as `guard:…`: the kernel module stops it when the program ends.
    pub is_guarded: u32,
    /// The device snoops the CPU's caches.
    pub is_coherent: u32,
    /// Its bus addresses are not physical ones.
    pub is_translated: u32,
    /// It reaches memory that was imported for it, and nothing else: an IOMMU that forgets an
    /// address at once stands before this device alone.
    pub is_confined: u32,
    /// The kernel can reset it (`contigo_device_reset`), and does so when the program ends.
    pub can_reset: u32,
    /// The kernel has a program that stops it (`contigo_engine_arm`).
    pub is_armed: u32,
    /// How many interrupts it has.
    pub interrupts: u32,
    /// Blocks that this opening has allocated or imported.
    pub buffers: u32,
    /// Blocks in quarantine, because nothing has stopped the device.
    pub quarantined: u32,
    /// Always 0.
    pub reserved: u32,
    /// How long those are, in bytes.
    pub quarantined_bytes: u64,
    /// How many bytes each window of registers has; 0: there is none.
    pub window_len_bytes: [u64; 6],
    /// The name that a GPU's driver gives it, such as "llvmpipe (LLVM 15.0.6, 256 bits)", with a
    /// NUL, cut to fit; empty where the device is no GPU. On a machine with drivers for the CPU
    /// beside a GPU's it says which one `vulkan` or `opencl:1` means.
    pub gpu_name: [c_char; 128],
}

// SAFETY: integers only, `struct_size` first.
unsafe impl Versioned for contigo_device_info {
    const NAME: &'static str = "contigo_device_info";
    const LEAST: usize = mem::size_of::<Self>();
}

impl Default for contigo_device_info {
    fn default() -> Self {
        // SAFETY: integers only.
        unsafe { mem::zeroed() }
    }
}

/// Fills `info` with facts about a device. `CONTIGO_E_OS`: the kernel module does not answer.
///
/// # Safety
/// `info` points to a structure whose `struct_size` is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn contigo_device_get_info(
    device: contigo_device,
    info: *mut contigo_device_info,
) -> contigo_status {
    call(|| {
        let device = DEVICES.lease(device)?;
        let mut value = contigo_device_info::default();
        if let Some(guard) = device.guard() {
            let found = guard.info()?;
            value = contigo_device_info {
                is_guarded: 1,
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
                ..value
            };
        }
        let name = device.gpu_name().unwrap_or("");
        // The last stays 0: the NUL.
        for (place, byte) in value.gpu_name[..127].iter_mut().zip(name.bytes()) {
            *place = c_char::from_ne_bytes([byte]);
        }
        // SAFETY: the caller's promise.
        unsafe { raw::fill(info, &value) }
    })
}

#[cfg(test)]
#[path = "device_info_tests.rs"]
mod tests;
