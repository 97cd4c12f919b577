//! A dma-heap's file and its ioctl.
//!
//! The backend relies on this:
//! 1. An allocated dma-buf can be mapped shared, is at least as long as asked for, and cleared.
//!    Nothing else maps, writes or shortens it while its file is open. (It is new, fixed in length,
//!    and cleared before it is handed out: `cma_heap_allocate`, `system_heap_allocate`.)
//! 2. `/proc/self/pagemap` tells the truth: a device is given the addresses that follow from it.
//!
//! # References
//! Linux `include/uapi/linux/dma-heap.h`, `drivers/dma-buf/dma-heap.c`.
#![allow(unsafe_code, reason = "an ioctl's structure, and the descriptor that it returns")]

use crate::linux::os::fd::Fd;
use crate::linux::os::path::{Path, check_name};
use crate::linux::os::{Kernel, SystemCalls, arguments, ask};
use crate::types::Error;
use nix::libc;
use nix::request_code_readwrite;
use nix::sys::ioctl::ioctl_num_type;

/// `struct dma_heap_allocation_data` of `include/uapi/linux/dma-heap.h`.
#[repr(C)]
#[derive(Debug)]
struct AllocationData {
    /// In: bytes wanted. The kernel rounds up to pages.
    len: u64,
    /// Out: the dma-buf's descriptor. In: must be 0.
    fd: u32,
    /// In: O_CLOEXEC and the access mode of that descriptor, nothing else.
    fd_flags: u32,
    /// In: no flag is defined; must be 0.
    heap_flags: u64,
}
const _: () = {
    assert!(size_of::<AllocationData>() == 24 && align_of::<AllocationData>() == align_of::<u64>());
    assert!(core::mem::offset_of!(AllocationData, fd) == 8);
    assert!(core::mem::offset_of!(AllocationData, fd_flags) == 12);
    assert!(core::mem::offset_of!(AllocationData, heap_flags) == 16);
    // `DMA_HEAP_IOCTL_ALLOC`, as a C program prints it on x86, arm and arm64.
    assert!(ALLOC == 0xC018_4800);
};

/// `_IOWR(DMA_HEAP_IOC_MAGIC, 0x0, struct dma_heap_allocation_data)`.
const ALLOC: ioctl_num_type = request_code_readwrite!(b'H', 0, size_of::<AllocationData>());

// `dma-heap.h` gives the request this structure, whose size the number has.
arguments! { AllocationData: ALLOC }

/// Opens `/dev/dma_heap/<name>`.
///
/// # Errors
/// [`Error::BadName`]: empty, longer than 63 bytes, `.` or `..`, or with a `/` or a NUL.
/// [`Error::Os`]: the errno of open(2).
pub(super) fn open(kernel: &Kernel, name: &str) -> Result<Fd, Error> {
    check_name(name)?;
    let path = Path::join(&["/dev/dma_heap", name])?;
    // Read-only is enough to allocate: the dma-buf's own access mode is in `fd_flags`.
    let opened = kernel.open(path.as_c_str(), libc::O_RDONLY);
    opened.map_err(|errno| Error::Os { call: "open(/dev/dma_heap/)", errno })
}

/// Allocates a dma-buf of `len_bytes`, a multiple of the page size, readable and writable, closed
/// on exec.
///
/// # Errors
/// [`Error::Os`]: the errno of DMA_HEAP_IOCTL_ALLOC.
pub(super) fn alloc(kernel: &Kernel, heap: &Fd, len_bytes: u64) -> Result<Fd, Error> {
    const CALL: &str = "ioctl(DMA_HEAP_IOCTL_ALLOC)";
    const FLAGS: u32 = (libc::O_RDWR | libc::O_CLOEXEC).cast_unsigned();
    let mut data = AllocationData { len: len_bytes, fd: 0, fd_flags: FLAGS, heap_flags: 0 };
    ask(kernel, heap, &mut data).map_err(|errno| Error::Os { call: CALL, errno })?;
    match i32::try_from(data.fd) {
        // SAFETY: the kernel has just made this descriptor for this call.
        Ok(fd) => Ok(unsafe { kernel.made(fd) }),
        Err(_) => Err(Error::Unexpected { name: CALL, value: data.fd.into() }),
    }
}

#[cfg(test)]
mod tests {
    use super::{Error, Fd, alloc, libc};
    use crate::linux::os::RUNNING;
    use nix::errno::Errno;

    #[test]
    fn fd_that_is_no_heap_is_enotty_and_closed() {
        let mut ends = [-1; 2];
        // SAFETY: `ends` has room for the two descriptors that pipe(2) writes.
        assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
        // SAFETY: pipe(2) has just made them.
        let [reader, writer] = ends.map(|end| unsafe { Fd::from_raw(end) });
        let error = |errno| Error::Os { call: "ioctl(DMA_HEAP_IOCTL_ALLOC)", errno: errno as i32 };
        // ENOSYS is what QEMU's user-mode emulator says of an ioctl that it does not translate.
        let refused = [Some(error(Errno::ENOTTY)), Some(error(Errno::ENOSYS))];
        assert!(refused.contains(&alloc(&RUNNING, &reader, 4096).err()));
        drop(reader);
        // SAFETY: the writing end is open, and the byte lives until the call returns. Rust ignores
        // SIGPIPE.
        let written = unsafe { libc::write(writer.raw(), (&raw const ends).cast(), 1) };
        assert_eq!(Errno::result(written), Err(Errno::EPIPE), "no reader is left");
    }
}
