#![allow(unsafe_code, reason = "a mapping that was made here is not at address 0")]
//! All mappings of real memory and registers are made here, except for CUDA's. A child of fork(2)
//! inherits none, once the function that makes one has returned.

use crate::types::Error;
use core::ptr::NonNull;
use memmap2::{Advice, MmapOptions, MmapRaw};
use nix::libc::EINVAL;

/// Maps `len_bytes` bytes from `offset_bytes` of the file `fd`, shared with its other mappings.
/// `call` is for errors.
#[allow(clippy::disallowed_methods, reason = "this is the one place")]
pub(crate) fn file(
    fd: i32,
    offset_bytes: u64,
    len_bytes: usize,
    call: &'static str,
) -> Result<MmapRaw, Error> {
    // memmap2 uses mmap64: on armv7 a register at 0xFF20_0000 is past what a 32-bit off_t reaches.
    let map = MmapOptions::new().len(len_bytes).offset(offset_bytes).map_raw(fd);
    unforked(map.map_err(|error| os(call, error.raw_os_error()))?, call)
}

/// Maps memory of this process's own, as `options` says.
#[allow(clippy::disallowed_methods, reason = "this is the one place")]
pub(crate) fn anonymous(options: &MmapOptions, call: &'static str) -> Result<MmapRaw, Error> {
    let map = options.map_anon();
    unforked(MmapRaw::from(map.map_err(|error| os(call, error.raw_os_error()))?), call)
}

/// A child with a shared mapping would be a second owner: of a device's registers, or of bytes that
/// the parent has handed over. Private pages would move under the device at the next write after a
/// fork. The kernel takes this advice for every kind of mapping, `VM_IO`
/// and `VM_PFNMAP` too (Linux `mm/madvise.c`, `madvise_vma_behavior`: it is `MADV_DOFORK` that is
/// refused there).
fn unforked(map: MmapRaw, call: &'static str) -> Result<MmapRaw, Error> {
    NonNull::new(map.as_mut_ptr()).ok_or(os(call, None))?;
    map.advise(Advice::DontFork)
        .map_err(|error| os("madvise(MADV_DONTFORK)", error.raw_os_error()))?;
    Ok(map)
}

/// The first byte of a mapping that was made here.
pub(crate) fn start(map: &MmapRaw) -> NonNull<u8> {
    // SAFETY: `unforked` has refused a mapping at address 0, and a mapping stays where it is.
    unsafe { NonNull::new_unchecked(map.as_mut_ptr()) }
}

fn os(call: &'static str, errno: Option<i32>) -> Error {
    Error::Os { call, errno: errno.unwrap_or(EINVAL) }
}
