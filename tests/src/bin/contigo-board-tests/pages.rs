#![allow(unsafe_code, reason = "mappings, an ioctl, and the descriptor that it makes")]
//! Raw memory: mappings that only volatile accesses lead into, blocks of a dma-heap without port or
//! address, and where the kernel put a process's pages.

use contigo::{Error, Result};
use nix::errno::Errno;
use nix::libc;
use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous, mprotect, munmap};
use std::ffi::c_void;
use std::fs::File;
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::FileExt;
use std::ptr::{self, NonNull};

/// Mapped pages, which are unmapped when this is dropped. No reference to them is ever made.
#[derive(Debug)]
pub(crate) struct Map {
    start: NonNull<c_void>,
    len_bytes: NonZeroUsize,
}

pub(crate) const READ_WRITE: ProtFlags = ProtFlags::PROT_READ.union(ProtFlags::PROT_WRITE);
const PAGE_BYTES: usize = 4096;

// SAFETY: a mapping belongs to the process, and is reached by volatile accesses only.
unsafe impl Send for Map {}
// SAFETY: as above.
unsafe impl Sync for Map {}

impl Map {
    /// A part of a file, mapped as the caller asks for it.
    pub(crate) fn of(
        file: impl AsFd,
        offset: u64,
        len_bytes: u64,
        access: ProtFlags,
        kind: MapFlags,
    ) -> Result<Self, Errno> {
        let len_bytes =
            usize::try_from(len_bytes).ok().and_then(NonZeroUsize::new).ok_or(Errno::EOVERFLOW)?;
        // A contigo device's memory is behind 32 GiB, also for a program of 32 bits: nix has an
        // `off_t` here.
        let offset = offset.try_into().map_err(|_| Errno::EOVERFLOW)?;
        let (access, kind) = (access.bits(), kind.bits());
        let fd = file.as_fd().as_raw_fd();
        // SAFETY: a new mapping, of which no reference is made.
        let start =
            unsafe { libc::mmap64(ptr::null_mut(), len_bytes.get(), access, kind, fd, offset) };
        if start == libc::MAP_FAILED {
            return Err(Errno::last());
        }
        NonNull::new(start).map(|start| Self { start, len_bytes }).ok_or(Errno::EFAULT)
    }

    pub(crate) fn shared(file: impl AsFd, len_bytes: usize) -> Result<Self, Errno> {
        Self::of(file, 0, len_bytes as u64, READ_WRITE, MapFlags::MAP_SHARED)
    }

    /// Zeroed memory of `len_bytes`, whole pages, with an inaccessible page behind it.
    pub(crate) fn guarded(len_bytes: usize) -> Result<Self, Errno> {
        let whole = NonZeroUsize::new(len_bytes + PAGE_BYTES).unwrap_or(NonZeroUsize::MIN);
        // SAFETY: a new mapping, of which no reference is made.
        let start = unsafe { mmap_anonymous(None, whole, READ_WRITE, MapFlags::MAP_PRIVATE) }?;
        let map = Self { start, len_bytes: whole };
        // SAFETY: the last page of the mapping, to which no reference exists.
        unsafe { mprotect(start.byte_add(len_bytes), PAGE_BYTES, ProtFlags::PROT_NONE) }?;
        Ok(map)
    }

    pub(crate) const fn start(&self) -> *mut u8 {
        self.start.as_ptr().cast()
    }

    /// The address of `len` bytes, so far from the start.
    pub(crate) fn at(&self, offset: usize, len: usize) -> *mut u8 {
        assert!(offset + len <= self.len_bytes.get(), "bytes of this mapping");
        // SAFETY: within the mapping, as was just seen.
        unsafe { self.start().add(offset) }
    }

    pub(crate) fn read(&self, offset: usize) -> u8 {
        // SAFETY: a byte of the mapping, of which no reference is made.
        unsafe { self.at(offset, 1).read_volatile() }
    }

    pub(crate) fn write(&self, offset: usize, value: u8) {
        // SAFETY: as for `read`.
        unsafe { self.at(offset, 1).write_volatile(value) }
    }

    pub(crate) fn fill(&self, len_bytes: usize, value: u8) {
        (0..len_bytes).for_each(|at| self.write(at, value));
    }

    pub(crate) fn is_filled(&self, len_bytes: usize, value: u8) -> bool {
        (0..len_bytes).all(|at| self.read(at) == value)
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: this value's own mapping, and its end.
        let _ = unsafe { munmap(self.start, self.len_bytes.get()) };
    }
}

/// `struct dma_heap_allocation_data` of Linux `include/uapi/linux/dma-heap.h`.
#[repr(C)]
#[derive(Debug)]
struct AllocationData {
    len: u64,
    fd: RawFd,
    fd_flags: i32,
    heap_flags: u64,
}

mod ioctl {
    #![allow(missing_docs, reason = "nix's macro writes a public function")]
    nix::ioctl_readwrite!(alloc, b'H', 0, super::AllocationData);
}

/// A new dma-buf of the heap called `heap`, of whole pages.
pub(crate) fn block(heap: &str, len_bytes: usize) -> Result<OwnedFd> {
    block_for(heap, len_bytes, libc::O_RDWR)
}

/// The same, for an access such as `O_RDONLY`.
pub(crate) fn block_for(heap: &str, len_bytes: usize, access: i32) -> Result<OwnedFd> {
    let opened = File::open(format!("/dev/dma_heap/{heap}"));
    let heap = opened.map_err(|error| Error::Os {
        call: "open(/dev/dma_heap/)",
        errno: error.raw_os_error().unwrap_or(0),
    })?;
    let fd_flags = access | libc::O_CLOEXEC;
    let mut data = AllocationData { len: len_bytes as u64, fd: 0, fd_flags, heap_flags: 0 };
    // SAFETY: the struct is the request's, and lives until the call returns.
    let made = unsafe { ioctl::alloc(heap.as_raw_fd(), &raw mut data) };
    made.map_err(|errno| Error::Os { call: "ioctl(DMA_HEAP_IOCTL_ALLOC)", errno: errno as i32 })?;
    // SAFETY: the kernel has just made this descriptor for this call.
    Ok(unsafe { OwnedFd::from_raw_fd(data.fd) })
}

/// An entry of `/proc/self/pagemap`: the number of the page's frame; 0 where this user may not know
/// it (Linux `Documentation/admin-guide/mm/pagemap.rst`).
const FRAME: u64 = (1 << 55) - 1;

/// The frames of `len_bytes` bytes at `first`; `None` where they are hidden.
pub(crate) fn frames(first: usize, len_bytes: usize) -> Option<Vec<u64>> {
    let map = File::open("/proc/self/pagemap").ok()?;
    let frame = |page: usize| {
        let mut entry = [0; 8];
        map.read_exact_at(&mut entry, page as u64 * 8).ok()?;
        Some(u64::from_ne_bytes(entry) & FRAME).filter(|frame| *frame != 0)
    };
    (first / PAGE_BYTES..(first + len_bytes).div_ceil(PAGE_BYTES)).map(frame).collect()
}
