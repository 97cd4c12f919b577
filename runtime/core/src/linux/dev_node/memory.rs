#![allow(unsafe_code, reason = "implements the unsafe trait Backend on a raw mapping")]
//! Memory that the kernel allocates for a contigo device, by the DMA API.

use super::abi::{ALLOC_COHERENT, Alloc, MAX_BUFFERS, SYNC_FOR_CPU, SYNC_FOR_DEVICE};
use super::{DevNode, DevNodeInfo, calls, check, os, to_sync};
use crate::linux::os::cache::TOO_MANY_RANGES;
use crate::linux::os::fd::Fd;
use crate::linux::os::{SystemCalls, pagemap};
use crate::mem::backend::{Backend, MAX_SYNC_RANGES, Mapping, SyncRange, SyncScope};
use crate::types::platform::OwnedFd;
use crate::types::{Direction, Error};
use core::fmt;
use core::ops::Range;
use core::slice;
use memmap2::MmapRaw;
use nix::libc::{EDQUOT, ENOMEM, ENOSPC};

/// Memory of a contigo device's own: the kernel has allocated it for that device, in one run of
/// addresses that the device reaches ([`DevNode::allocate`]). It is the first choice for a contigo
/// device device, and the only one of its memories that holds many buffers where the device does
/// not snoop.
///
/// It owns the mapping and the allocation. The kernel gives its address and maintains the caches of
/// exactly the bytes that change hands: one system call for each hand-over on a port that does not
/// snoop, none on one that does. Dropping it frees the pages. On a port that does not snoop, that
/// may discard what the CPU wrote since the last hand-over to the device: first hand over what
/// another holder of an [`export`](crate::Region::export) is to see.
///
/// A [`Region`](crate::Region) leaks it rather than drop it while a buffer is out. The mapping then
/// keeps the contigo device's file open, as its registers do: the kernel stops the device when the
/// process ends.
///
/// References: Linux `Documentation/core-api/dma-api.rst`; `kernel-helpers/uapi/contigo.h`.
pub struct OwnMemory {
    dev_node: DevNode,
    // INVARIANT: not null, maps all of the memory, never remapped.
    map: MmapRaw,
    handle: u32,
    addr: u64,
    /// The CPU's view is not cached where the device does not snoop.
    is_coherent: bool,
}

impl DevNode {
    /// Allocates `len_bytes`, rounded up to whole pages and zeroed, for this device, and maps them.
    /// They come from the node's `memory-region` where it has one that is `reusable`, or else from
    /// the kernel's CMA pool, within reach of the device's address lines
    /// ([`set_addr_bits`](Self::set_addr_bits)).
    ///
    /// ```no_run
    /// use contigo::{Region, linux::dev_node::DevNode};
    /// let dev_node = DevNode::open("40000000.gemm8")?;
    /// let region = Region::new(dev_node.allocate(4 << 20)?)?;
    /// let frames = region.pool(8, 256 << 10)?;
    /// # Ok::<(), contigo::Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`Error::Argument`]: `len_bytes` is 0, or more than a process can map.
    /// - [`Error::NoMemory`]: ENOMEM, the kernel has no such run of pages left. EDQUOT, more than
    ///   the module's parameter `max_mib` allows a device, counting what is in quarantine or still
    ///   mapped. The text says what to change.
    /// - [`Error::TooMany`]: the file has 256 buffers, counting those in quarantine.
    /// - [`Error::Os`] with `ioctl(CONTIGO_ALLOC)`: ENODEV, the device was taken away. With
    ///   `mmap(/dev/contigo/)`: the errno.
    /// - [`Error::Unexpected`]: the module reports impossible values.
    pub fn allocate(&self, len_bytes: usize) -> Result<OwnMemory, Error> {
        OwnMemory::new(self, len_bytes, false)
    }

    /// As [`allocate`](Self::allocate), but the CPU and the device see this memory alike at all
    /// times: its hand-overs make no system call. Where the device does not snoop, the CPU does not
    /// cache it, so reading it is slow. It is for rings of descriptors that both sides write, and
    /// no other importer can have it.
    ///
    /// # Errors
    /// As [`allocate`](Self::allocate).
    pub fn allocate_coherent(&self, len_bytes: usize) -> Result<OwnMemory, Error> {
        OwnMemory::new(self, len_bytes, true)
    }
}

impl OwnMemory {
    fn new(dev_node: &DevNode, len_bytes: usize, is_coherent: bool) -> Result<Self, Error> {
        const MAX_BYTES: usize = isize::MAX as usize;
        let page_bytes = pagemap::page_bytes()?;
        let whole_bytes = len_bytes
            .checked_next_multiple_of(page_bytes)
            .filter(|whole| (1..=MAX_BYTES).contains(whole));
        let Some(whole_bytes) = whole_bytes else {
            return Err(Error::Argument {
                name: "len_bytes",
                value: len_bytes as u64,
                min: 1,
                max: MAX_BYTES as u64,
                multiple_of: 1,
            });
        };
        let flags = if is_coherent { ALLOC_COHERENT } else { 0 };
        let mut alloc = Alloc { len_bytes: whole_bytes as u64, flags, ..Alloc::default() };
        dev_node.0.ask(&mut alloc).map_err(|errno| refused(errno, whole_bytes))?;
        match map(dev_node, &alloc, whole_bytes, page_bytes) {
            Ok(map) => Ok(Self {
                dev_node: dev_node.clone(),
                map,
                handle: alloc.handle,
                addr: alloc.addr,
                is_coherent,
            }),
            Err(error) => {
                // No device received its address.
                dev_node.release(alloc.handle);
                Err(error)
            }
        }
    }

    /// Syncs `ranges` in one call, after all of them were checked. Of what the device writes, the
    /// whole granules: it is invalidated by lines, and a region hands over no part of one.
    fn sync(&self, ranges: &[SyncRange], flags: u32) -> Result<(), Error> {
        let (len_bytes, granule) = (self.map.len(), self.dev_node.0.granule);
        let mut list = heapless::Vec::<_, MAX_SYNC_RANGES>::new();
        for SyncRange { range, direction } in ranges {
            check(range, len_bytes)?;
            // Bytes that the device only read are as they were. To invalidate a part of a line
            // would throw away a neighbour's writes.
            let is_unchanged = flags == SYNC_FOR_CPU && !direction.device_writes();
            if range.is_empty() || self.is_coherent || is_unchanged {
                continue;
            }
            let lines = if direction.device_writes() {
                granule.round_down(range.start)
                    ..granule.round_up(range.end).unwrap_or(len_bytes).min(len_bytes)
            } else {
                range.clone()
            };
            list.push(to_sync(self.handle, &lines, flags)).map_err(|_| TOO_MANY_RANGES)?;
        }
        self.dev_node.sync(&list)
    }
}

/// The error if the kernel does not allocate `need_bytes` bytes.
const fn refused(errno: i32, need_bytes: usize) -> Error {
    let fix = match errno {
        EDQUOT => "give some back, or raise the parameter max_mib of the module contigo",
        ENOMEM => {
            "ask for less, or for more CMA (cma= on the kernel's command line, or a memory-region \
             of the node)"
        }
        ENOSPC => {
            return Error::TooMany {
                what: "buffers of a contigo device, with those in quarantine",
                most: MAX_BUFFERS as u64,
            };
        }
        errno => return os("ioctl(CONTIGO_ALLOC)", errno),
    };
    Error::NoMemory { need_bytes, errno, fix }
}

/// Maps the whole allocation.
fn map(
    dev_node: &DevNode,
    alloc: &Alloc,
    len_bytes: usize,
    page_bytes: usize,
) -> Result<MmapRaw, Error> {
    const CALL: &str = "mmap(/dev/contigo/)";
    if !alloc.mmap_offset.is_multiple_of(page_bytes as u64) {
        return Err(Error::Unexpected {
            name: "mmap_offset of CONTIGO_ALLOC",
            value: alloc.mmap_offset,
        });
    }
    // The kernel refuses more than was allocated: a mapped byte is a byte that exists.
    dev_node.0.kernel.map(&dev_node.0.file, alloc.mmap_offset, len_bytes, CALL)
}

impl Drop for OwnMemory {
    fn drop(&mut self) {
        self.dev_node.release(self.handle);
    }
}

// SAFETY: 1. The mapping is owned by `self` and never remapped, and the address was fixed in `new`.
// 2. It maps all of the memory, readable and writable, cleared and in no other use. The kernel
// keeps the pages as long as the mapping (`calls.rs`, 1); munmap is in MmapRaw's drop, after the
// device has lost it. 3. Only `range` is synchronised, whole lines of it where the device writes.
// 4. It is one run from its address on (`calls.rs`, 1): a physical one where nothing translates,
// else on a bus that this contigo device alone is on. 6. `calls.rs`, 2. Of coherent memory no
// line is in a cache that the device does not snoop, so each sync is done.
unsafe impl Backend for OwnMemory {
    fn name(&self) -> &'static str {
        "contigo"
    }

    fn mapping(&self) -> Mapping {
        // Coherent memory too: `SyncScope::Coherent` is refused on a port that does not snoop.
        self.dev_node.mapping(
            &self.map,
            self.addr,
            SyncScope::Range { granule_bytes: self.dev_node.0.granule.bytes() },
        )
    }

    unsafe fn sync_for_device(
        &self,
        range: Range<usize>,
        direction: Direction,
    ) -> Result<(), Error> {
        self.sync(slice::from_ref(&SyncRange { range, direction }), SYNC_FOR_DEVICE)
    }

    unsafe fn sync_for_cpu(&self, range: Range<usize>, direction: Direction) -> Result<(), Error> {
        self.sync(slice::from_ref(&SyncRange { range, direction }), SYNC_FOR_CPU)
    }

    unsafe fn sync_all_for_device(&self, ranges: &[SyncRange]) -> Result<(), Error> {
        self.sync(ranges, SYNC_FOR_DEVICE)
    }

    unsafe fn sync_all_for_cpu(&self, ranges: &[SyncRange]) -> Result<(), Error> {
        self.sync(ranges, SYNC_FOR_CPU)
    }

    /// The module makes a dma-buf of the whole memory, which has a reference of its own.
    unsafe fn export(&self) -> Result<OwnedFd, Error> {
        const COHERENT: Error = Error::Unsupported {
            what: "memory that is coherent for its own device is no dma-buf",
            fix: "export memory of DevNode::allocate",
        };
        const TRANSLATED: Error = Error::Unsupported {
            what: "memory of a device behind an IOMMU is no dma-buf: the device's next user would \
             reach it",
            fix: "allocate it from a dma-heap, and import that for each device",
        };
        const CALL: &str = "ioctl(CONTIGO_EXPORT)";
        if self.is_coherent {
            return Err(COHERENT);
        }
        if DevNodeInfo::from(&self.dev_node.0.info).iommu {
            return Err(TRANSLATED);
        }
        let dev_node = &self.dev_node.0;
        calls::export(&dev_node.kernel, &dev_node.file, self.handle)
            .and_then(Fd::into_owned)
            .map_err(|errno| os(CALL, errno))
    }
}

impl fmt::Debug for OwnMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnMemory")
            .field("addr", &self.addr)
            .field("len_bytes", &self.map.len())
            .finish_non_exhaustive()
    }
}
