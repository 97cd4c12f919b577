#![allow(unsafe_code, reason = "an ioctl and the descriptor that it makes, and the promises of an import")]
//! The memory of a test: a block of 2 MiB that is in one piece, by what this kernel has.

use crate::{heap, machine::heaps};
use contigo::{DmaBuf, DmaHeap, Error, HugeTlb, Result, names::OpenDevice};
use nix::{
    fcntl::{FallocateFlags, FcntlArg, SealFlag, fallocate, fcntl},
    sys::memfd::{MFdFlags, memfd_create},
};
use std::{
    fs::OpenOptions,
    os::fd::{AsFd as _, AsRawFd as _, FromRawFd as _, OwnedFd},
};

/// A huge page, which is one run, and as much of a heap.
pub(super) const BYTES: usize = HugeTlb::PAGE_BYTES;

/// Memory for the device.
pub(super) enum Ground<'g> {
    /// Without the module, on a kernel without heaps.
    Huge(HugeTlb),
    /// Without the module: pagemap tells its address (before 6.9).
    Heap(DmaHeap),
    /// By the module.
    Imported(DmaBuf<'g>),
}

impl<'g> Ground<'g> {
    /// A block for the device `opened`.
    pub(super) fn of(opened: &'g OpenDevice) -> Result<Self> {
        match (opened.guard(), heaps().first()) {
            // SAFETY: the block is new, and nobody else has it.
            (Some(guard), _) => Ok(Self::Imported(unsafe { DmaBuf::import(guard, block()?.as_fd())? })),
            (None, Some(heap)) => Ok(Self::Heap(DmaHeap::allocate(heap, BYTES)?)),
            (None, None) => Ok(Self::Huge(HugeTlb::new(BYTES)?)),
        }
    }
}

/// A dma-buf of [`BYTES`]: a heap's, or a huge page as udmabuf.
pub(super) fn block() -> Result<OwnedFd> {
    match heaps().first() {
        Some(heap) => heap::block(heap, BYTES),
        None => huge_page(),
    }
}

/// `struct udmabuf_create` of Linux `include/uapi/linux/udmabuf.h`.
#[repr(C)]
#[derive(Debug)]
struct Create {
    memfd: u32,
    flags: u32,
    offset: u64,
    size: u64,
}

mod raw {
    #![allow(missing_docs, reason = "nix's macro writes a public function")]
    nix::ioctl_write_ptr!(create, b'u', 0x42, super::Create);
}

fn huge_page() -> Result<OwnedFd> {
    let os = |call| move |errno: nix::Error| Error::Os { call, errno: errno as i32 };
    let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_HUGETLB | MFdFlags::MFD_ALLOW_SEALING;
    let page = memfd_create(c"block", flags).map_err(os("memfd_create"))?;
    // It is there from here on, or there is none.
    fallocate(&page, FallocateFlags::empty(), 0, BYTES as nix::libc::off_t).map_err(os("fallocate"))?;
    fcntl(&page, FcntlArg::F_ADD_SEALS(SealFlag::F_SEAL_SHRINK)).map_err(os("fcntl(F_ADD_SEALS)"))?;
    let device = OpenOptions::new().read(true).write(true).open("/dev/udmabuf");
    let device = device.map_err(|error| Error::Os { call: "open(/dev/udmabuf)", errno: error.raw_os_error().unwrap_or(0) })?;
    let create = Create { memfd: page.as_raw_fd().unsigned_abs(), flags: 1, offset: 0, size: BYTES as u64 };
    // SAFETY: the struct is the request's, and lives until the call returns.
    let made = unsafe { raw::create(device.as_raw_fd(), &raw const create) }.map_err(os("ioctl(UDMABUF_CREATE)"))?;
    // SAFETY: the kernel has just made this descriptor for this call.
    Ok(unsafe { OwnedFd::from_raw_fd(made) })
}
