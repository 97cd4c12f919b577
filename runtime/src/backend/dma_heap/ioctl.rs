//! The kernel's side of a dma-heap: one trait, so that a test can stand in for kernels that no one machine has.
#![allow(unsafe_code, reason = "open, ioctl and close on raw descriptors: OwnedFd cannot be named without std")]

use super::super::pagemap;
use crate::Error;
use core::ffi::CStr;
use heapless::Vec;
use nix::{errno::Errno, libc, unistd::close};

const FOLDER: &[u8] = b"/dev/dma_heap/";
/// The most bytes of a heap's name: `CMA_MAX_NAME` of `include/linux/cma.h` is 64 with the NUL, and the heap of a CMA area
/// has the area's name. `system`, `linux,cma` and the vendors' names are shorter.
pub(super) const MAX_NAME_BYTES: usize = 63;
const MAX_PATH_BYTES: usize = FOLDER.len() + MAX_NAME_BYTES + 1;

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
    pub(super) const ALLOC: nix::sys::ioctl::ioctl_num_type = request_code_readwrite!(b'H', 0, size_of::<super::AllocationData>());
    // The `_bad` macro takes the whole request code: the other one names std.
    ioctl_readwrite_bad!(alloc, ALLOC, super::AllocationData);
}

/// What a [`DmaHeap`](super::DmaHeap) asks of the kernel. [`RealHeap`] does it; a test puts its own kernel here.
///
/// # Safety
/// Callers owe nothing: every method is safe to call.
///
/// # Implementation safety
/// 1. [`alloc`](Self::alloc) returns a file that can be mapped shared, of at least the length asked for, initialised, which
///    nothing else maps, writes or shortens while the file is open.
/// 2. [`raw_fd`](Self::raw_fd) returns the descriptor of that file, open until the file is dropped.
/// 3. [`pagemap`](Self::pagemap) tells the truth: a device is given the addresses that follow from it.
pub unsafe trait HeapKernel: Send + Sync {
    /// An open file: a heap, or a dma-buf. Dropping it closes it.
    type File: Send + Sync;

    /// Opens `/dev/dma_heap/<name>`.
    ///
    /// # Errors
    /// [`Error::BadName`]: empty, longer than 63 bytes, `.` or `..`, or with a `/` or a NUL. [`Error::Os`]: the errno of open(2).
    fn open(&self, name: &str) -> Result<Self::File, Error>;

    /// Allocates a dma-buf of `len_bytes`, a multiple of the page size, readable and writable, closed on exec.
    ///
    /// # Errors
    /// [`Error::Os`]: the errno of DMA_HEAP_IOCTL_ALLOC.
    fn alloc(&self, heap: &Self::File, len_bytes: u64) -> Result<Self::File, Error>;

    /// The file's descriptor number, borrowed: valid while `file` lives, and never to be closed by the caller.
    fn raw_fd(&self, file: &Self::File) -> i32;

    /// Fills `entries` with the pagemap entries of as many consecutive virtual pages, from page number `first_page`
    /// (virtual address / page size), as `Documentation/admin-guide/mm/pagemap.rst` defines them.
    ///
    /// # Errors
    /// Whatever keeps `/proc/self/pagemap` from being read.
    fn pagemap(&self, first_page: u64, entries: &mut [u64]) -> Result<(), Error>;
}

/// The running kernel: `/dev/dma_heap/`, DMA_HEAP_IOCTL_ALLOC and `/proc/self/pagemap`.
///
/// # References
/// Linux `include/uapi/linux/dma-heap.h`, `drivers/dma-buf/dma-heap.c`.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealHeap;

/// An open descriptor, closed on drop.
#[derive(Debug)]
pub struct HeapFile(
    // INVARIANT: open, and nobody else's.
    i32,
);

impl Drop for HeapFile {
    fn drop(&mut self) {
        // A failing close leaves nothing to do: Linux frees the descriptor in every case (close(2)).
        let _ = close(self.0);
    }
}

// SAFETY: 1. A dma-buf from a heap is new, at least as long as asked for, fixed in length, and cleared before it is handed
// out (`cma_heap_allocate`, `system_heap_allocate`); its only descriptor is in the file returned. 2. `HeapFile` is open
// until dropped. 3. The entries are the kernel's.
unsafe impl HeapKernel for RealHeap {
    type File = HeapFile;

    fn open(&self, name: &str) -> Result<HeapFile, Error> {
        let bad = Error::BadName { len_bytes: name.len(), max_bytes: MAX_NAME_BYTES };
        check_name(name)?;
        let path = path(name).ok_or(bad)?;
        let path = CStr::from_bytes_with_nul(&path).map_err(|_| bad)?;
        // Read-only is enough to allocate: the dma-buf's own access mode is in `fd_flags`.
        // SAFETY: `path` ends in NUL and lives until the call returns; without O_CREAT open(2) takes no third argument.
        let fd = unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
        match Errno::result(fd) {
            Ok(fd) => Ok(HeapFile(fd)),
            Err(errno) => Err(Error::Os { call: "open(/dev/dma_heap/)", errno: errno as i32 }),
        }
    }

    fn alloc(&self, heap: &HeapFile, len_bytes: u64) -> Result<HeapFile, Error> {
        const CALL: &str = "ioctl(DMA_HEAP_IOCTL_ALLOC)";
        const FLAGS: u32 = (libc::O_RDWR | libc::O_CLOEXEC).cast_unsigned();
        let mut data = AllocationData { len: len_bytes, fd: 0, fd_flags: FLAGS, heap_flags: 0 };
        // SAFETY: the descriptor is open while `heap` is borrowed; `data` is the struct that this request reads and writes
        // (its size is in the request code, checked above), and lives until the call returns.
        unsafe { raw::alloc(heap.0, &raw mut data) }.map_err(|errno| Error::Os { call: CALL, errno: errno as i32 })?;
        match i32::try_from(data.fd) {
            Ok(fd) => Ok(HeapFile(fd)),
            Err(_) => Err(Error::AttributeNonsense { name: CALL, value: data.fd.into() }),
        }
    }

    fn raw_fd(&self, file: &HeapFile) -> i32 {
        file.0
    }

    fn pagemap(&self, first_page: u64, entries: &mut [u64]) -> Result<(), Error> {
        pagemap::read(first_page, entries)
    }
}

/// `/dev/dma_heap/<name>` and a NUL.
fn path(name: &str) -> Option<Vec<u8, MAX_PATH_BYTES>> {
    let mut path = Vec::new();
    path.extend_from_slice(FOLDER).ok()?;
    path.extend_from_slice(name.as_bytes()).ok()?;
    path.push(0).ok()?;
    Some(path)
}

/// Is it a name that can only mean a file of the folder?
pub(super) fn check_name(name: &str) -> Result<(), Error> {
    let fits = (1..=MAX_NAME_BYTES).contains(&name.len()) && !matches!(name, "." | "..");
    let plain = !name.bytes().any(|byte| byte == b'/' || byte == 0);
    if fits && plain { Ok(()) } else { Err(Error::BadName { len_bytes: name.len(), max_bytes: MAX_NAME_BYTES }) }
}

#[cfg(test)]
mod tests {
    use super::{Errno, Error, HeapFile, HeapKernel, RealHeap, libc, path};

    #[test]
    fn the_path_is_in_the_folder_and_ends_in_nul() {
        assert_eq!(path("linux,cma").as_deref(), Some(&b"/dev/dma_heap/linux,cma\0"[..]));
    }

    #[test]
    fn a_file_that_is_no_heap_is_enotty_and_closed_on_drop() {
        let mut ends = [-1; 2];
        // SAFETY: `ends` has room for the two descriptors that pipe(2) writes.
        assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
        let [reader, writer] = ends.map(HeapFile);
        let error = |errno| Error::Os { call: "ioctl(DMA_HEAP_IOCTL_ALLOC)", errno: errno as i32 };
        // ENOSYS is what QEMU's user-mode emulator says of an ioctl that it does not translate.
        let refused = [Some(error(Errno::ENOTTY)), Some(error(Errno::ENOSYS))];
        assert!(refused.contains(&RealHeap.alloc(&reader, 4096).err()));
        drop(reader);
        // SAFETY: the writing end is open, and the byte lives until the call returns. Rust ignores SIGPIPE.
        let written = unsafe { libc::write(RealHeap.raw_fd(&writer), (&raw const ends).cast(), 1) };
        assert_eq!(Errno::result(written), Err(Errno::EPIPE), "nobody reads any more");
    }
}
