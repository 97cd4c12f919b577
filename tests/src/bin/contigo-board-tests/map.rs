#![allow(unsafe_code, reason = "mmap(2) and munmap(2)")]
//! Raw memory: a mapping that only pointers lead into.

use contigo::{Error, Result};
use nix::sys::mman::{MapFlags, ProtFlags, mmap, mmap_anonymous, mprotect, munmap};
use std::{num::NonZeroUsize, os::fd::BorrowedFd, ptr::NonNull};

/// Pages of 4 KiB, of which no reference is made.
#[derive(Debug)]
pub(crate) struct Map {
    start: NonNull<u8>,
    len_bytes: NonZeroUsize,
}

/// The unmapped bytes behind memory that must not be overrun: no page is larger here.
const GUARD_BYTES: usize = 4096;

impl Map {
    /// All of a file that can be mapped shared.
    pub(crate) fn shared(fd: BorrowedFd<'_>, len_bytes: usize) -> Result<Self> {
        let len_bytes = NonZeroUsize::new(len_bytes)
            .ok_or(Error::Os { call: "mmap", errno: nix::libc::EINVAL })?;
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a new mapping, which no reference is made of.
        let start = unsafe { mmap(None, len_bytes, access, MapFlags::MAP_SHARED, fd, 0) };
        let start = start.map_err(|errno| Error::Os { call: "mmap", errno: errno as i32 })?;
        Ok(Self { start: start.cast(), len_bytes })
    }

    /// Zeroed memory of `len_bytes`, whole pages, with an inaccessible page behind it.
    pub(crate) fn guarded(len_bytes: usize) -> Result<Self> {
        let os = |call| move |errno: nix::Error| Error::Os { call, errno: errno as i32 };
        let whole = NonZeroUsize::new(len_bytes + GUARD_BYTES).unwrap_or(NonZeroUsize::MIN);
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: as above.
        let start = unsafe { mmap_anonymous(None, whole, access, MapFlags::MAP_PRIVATE) }
            .map_err(os("mmap"))?;
        let map = Self { start: start.cast(), len_bytes: whole };
        // SAFETY: the last page of the mapping, to which no reference exists.
        unsafe { mprotect(start.byte_add(len_bytes), GUARD_BYTES, ProtFlags::PROT_NONE) }
            .map_err(os("mprotect"))?;
        Ok(map)
    }

    pub(crate) const fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }
}

// SAFETY: a mapping belongs to the process, not to a thread, and this value is its only owner.
unsafe impl Send for Map {}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: this value's own mapping, and its end.
        let _ = unsafe { munmap(self.start.cast(), self.len_bytes.get()) };
    }
}
