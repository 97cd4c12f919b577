//! The kernel's side of a dma-heap: one trait, so that a test can stand in for any kernel.
#![allow(unsafe_code, reason = "an ioctl on a raw descriptor, and the unsafe trait of the seam")]

use crate::linux::os::fd::{Fd, Path, check_name};
use crate::linux::os::pagemap;
use crate::types::Error;
use nix::libc;

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
    assert!(raw::ALLOC == 0xC018_4800);
};

mod raw {
    #![allow(unreachable_pub, missing_docs, reason = "nix's macro writes a public function")]
    use nix::{ioctl_readwrite_bad, request_code_readwrite};

    /// `_IOWR(DMA_HEAP_IOC_MAGIC, 0x0, struct dma_heap_allocation_data)`.
    pub(super) const ALLOC: nix::sys::ioctl::ioctl_num_type =
        request_code_readwrite!(b'H', 0, size_of::<super::AllocationData>());
    // The `_bad` macro takes the whole request code: the other one names std.
    ioctl_readwrite_bad!(alloc, ALLOC, super::AllocationData);
}

/// The requests of a [`DmaHeap`](super::DmaHeap) to the kernel. `RealHeap` makes them; a test
/// provides its own kernel.
///
/// # Safety
/// Callers owe nothing: every method is safe to call.
///
/// # Implementation safety
/// 1. [`alloc`](Self::alloc) returns a file that can be mapped shared, of at least the length asked
///    for, initialised, which nothing else maps, writes or shortens while the file is open.
/// 2. [`pagemap`](Self::pagemap) tells the truth: a device is given the addresses that follow from
///    it.
pub unsafe trait HeapKernel: Send + Sync {
    /// Opens `/dev/dma_heap/<name>`.
    ///
    /// # Errors
    /// [`Error::BadName`]: empty, longer than 63 bytes, `.` or `..`, or with a `/` or a NUL.
    /// [`Error::Os`]: the errno of open(2).
    fn open(&self, name: &str) -> Result<Fd, Error>;

    /// Allocates a dma-buf of `len_bytes`, a multiple of the page size, readable and writable,
    /// closed on exec.
    ///
    /// # Errors
    /// [`Error::Os`]: the errno of DMA_HEAP_IOCTL_ALLOC.
    fn alloc(&self, heap: &Fd, len_bytes: u64) -> Result<Fd, Error>;

    /// Fills `entries` with the pagemap entries of as many consecutive virtual pages, from page
    /// number `first_page` (virtual address / page size), as
    /// `Documentation/admin-guide/mm/pagemap.rst` defines them.
    ///
    /// # Errors
    /// The error that keeps `/proc/self/pagemap` from being read.
    fn pagemap(&self, first_page: u64, entries: &mut [u64]) -> Result<(), Error>;
}

crate::linux::os::asked!(RealHeap as HeapKernel);

/// The running kernel: `/dev/dma_heap/`, DMA_HEAP_IOCTL_ALLOC and `/proc/self/pagemap`.
///
/// # References
/// Linux `include/uapi/linux/dma-heap.h`, `drivers/dma-buf/dma-heap.c`.
#[derive(Debug)]
pub(super) struct RealHeap;

// SAFETY: 1. A dma-buf from a heap is new, at least as long as asked for, fixed in length, and
// cleared before it is handed out (`cma_heap_allocate`, `system_heap_allocate`). Its only
// descriptor is in the file returned. 2. The entries come from the kernel.
unsafe impl HeapKernel for RealHeap {
    fn open(&self, name: &str) -> Result<Fd, Error> {
        check_name(name)?;
        let path = Path::join(&["/dev/dma_heap", name])?;
        // Read-only is enough to allocate: the dma-buf's own access mode is in `fd_flags`.
        let opened = Fd::open(path.as_c_str(), libc::O_RDONLY);
        opened.map_err(|errno| Error::Os { call: "open(/dev/dma_heap/)", errno })
    }

    fn alloc(&self, heap: &Fd, len_bytes: u64) -> Result<Fd, Error> {
        const CALL: &str = "ioctl(DMA_HEAP_IOCTL_ALLOC)";
        const FLAGS: u32 = (libc::O_RDWR | libc::O_CLOEXEC).cast_unsigned();
        let mut data = AllocationData { len: len_bytes, fd: 0, fd_flags: FLAGS, heap_flags: 0 };
        // SAFETY: the descriptor is open while `heap` is borrowed. `data` is the struct that this
        // request reads and writes (its size is in the request code, checked above), and lives
        // until the call returns.
        unsafe { raw::alloc(heap.raw(), &raw mut data) }
            .map_err(|errno| Error::Os { call: CALL, errno: errno as i32 })?;
        match i32::try_from(data.fd) {
            // SAFETY: the kernel has just made this descriptor for this call.
            Ok(fd) => Ok(unsafe { Fd::from_raw(fd) }),
            Err(_) => Err(Error::Unexpected { name: CALL, value: data.fd.into() }),
        }
    }

    fn pagemap(&self, first_page: u64, entries: &mut [u64]) -> Result<(), Error> {
        pagemap::read(first_page, entries)
    }
}

#[cfg(test)]
mod tests {
    use super::{Error, Fd, HeapKernel as _, RealHeap, libc};
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
        assert!(refused.contains(&RealHeap.alloc(&reader, 4096).err()));
        drop(reader);
        // SAFETY: the writing end is open, and the byte lives until the call returns. Rust ignores
        // SIGPIPE.
        let written = unsafe { libc::write(writer.raw(), (&raw const ends).cast(), 1) };
        assert_eq!(Errno::result(written), Err(Errno::EPIPE), "no reader is left");
    }
}
