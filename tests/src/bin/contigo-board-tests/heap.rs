#![allow(unsafe_code, reason = "an ioctl, and the descriptor that it makes")]
//! Blocks of a dma-heap, as any program gets them: no port, no address.

use contigo::{Error, Result};
use std::{
    fs::File,
    os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
};

/// `struct dma_heap_allocation_data` of Linux `include/uapi/linux/dma-heap.h`.
#[repr(C)]
#[derive(Debug)]
struct AllocationData {
    len: u64,
    fd: RawFd,
    fd_flags: i32,
    heap_flags: u64,
}

mod raw {
    #![allow(missing_docs, reason = "nix's macro writes a public function")]
    nix::ioctl_readwrite!(alloc, b'H', 0, super::AllocationData);
}

/// A new dma-buf of the heap called `heap`, of whole pages.
pub(crate) fn block(heap: &str, len_bytes: usize) -> Result<OwnedFd> {
    with(heap, len_bytes, nix::libc::O_RDWR)
}

/// The same, for reading alone.
pub(crate) fn read_only(heap: &str, len_bytes: usize) -> Result<OwnedFd> {
    with(heap, len_bytes, nix::libc::O_RDONLY)
}

fn with(heap: &str, len_bytes: usize, access: i32) -> Result<OwnedFd> {
    let opened = File::open(format!("/dev/dma_heap/{heap}"));
    let heap = opened.map_err(|error| Error::Os {
        call: "open(/dev/dma_heap/)",
        errno: error.raw_os_error().unwrap_or(0),
    })?;
    let fd_flags = access | nix::libc::O_CLOEXEC;
    let mut data = AllocationData { len: len_bytes as u64, fd: 0, fd_flags, heap_flags: 0 };
    // SAFETY: the struct is the request's, and lives until the call returns.
    let made = unsafe { raw::alloc(heap.as_raw_fd(), &raw mut data) };
    made.map_err(|errno| Error::Os { call: "ioctl(DMA_HEAP_IOCTL_ALLOC)", errno: errno as i32 })?;
    // SAFETY: the kernel has just made this descriptor for this call.
    Ok(unsafe { OwnedFd::from_raw_fd(data.fd) })
}
