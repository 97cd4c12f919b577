#![allow(unsafe_code, reason = "implements the unsafe trait Backend")]
//! Memory of an I/O address space.

use super::Vfio;
use super::iova::State;
use crate::linux::os::{cache, map, pagemap};
use crate::mem::{Backend, Mapping, SyncRange, SyncScope};
use crate::trace::{self, Event, Site};
use crate::types::{BaseAddr, DevAddr, Direction, Error, Refused, lock};
use core::fmt;
use core::mem::ManuallyDrop;
use core::ops::Range;
use core::slice;
use memmap2::{MmapOptions, MmapRaw};

/// One block of this process's memory that a device behind an IOMMU reaches at one run of I/O
/// addresses. This value owns it: dropping it first unmaps the block from the device, and then
/// frees it. A block that the kernel would not unmap is leaked, never freed
/// ([`Vfio::leaked_bytes`]).
///
/// - The pages are ordinary ones, anywhere in memory; they are pinned, count against
///   RLIMIT_MEMLOCK, and are not copied into children of fork(2).
/// - Byte 0 is page-aligned for the process and for the device. A buffer may ask for any alignment
///   up to the block's own size (2 MiB at most): it is aligned for both.
/// - The I/O address is as low as possible, and never below 64 KiB. So a master with 32 address
///   lines, or edu with its 28, reaches memory that lies above 4 GiB. Addresses that the kernel
///   reserves for interrupts are left out.
/// - **Caches.** VFIO maps every page as cacheable for the device, and since Linux 6.1 refuses a
///   device whose IOMMU cannot do that. Only PCI Express's No Snoop attribute bypasses it; where
///   the IOMMU does not override that, it is forbidden to the function. So memory and port are
///   coherent. On an older kernel whose IOMMU cannot, they are not, and arm64 maintains the caches
///   as for [`HugeTlb`](crate::linux::memory::HugeTlb).
///
/// # References
/// Linux `drivers/vfio/vfio_iommu_type1.c` (`vfio_dma_do_map`, `vfio_iommu_map`),
/// `drivers/iommu/iommufd/ioas.c` (`conv_iommu_prot`), `drivers/vfio/vfio_main.c`
/// (`__vfio_register_dev`).
pub struct VfioMemory {
    vfio: Vfio,
    // INVARIANT: not null, whole pages, never remapped; unmapped from the process only after it was
    // unmapped from the device.
    map: ManuallyDrop<MmapRaw>,
    iova: u64,
}

impl VfioMemory {
    /// The most bytes in one block: 1 GiB, as for the other kinds of memory.
    pub(crate) const MAX_BYTES: usize = 1 << 30;

    /// As [`Vfio::memory`].
    #[cfg_attr(feature = "audit", track_caller)]
    pub(crate) fn new(vfio: &Vfio, len_bytes: usize) -> Result<Self, Error> {
        let page_bytes = pagemap::page_bytes()?;
        let whole_bytes = len_bytes
            .checked_next_multiple_of(page_bytes)
            .filter(|whole| (1..=Self::MAX_BYTES).contains(whole));
        let Some(whole_bytes) = whole_bytes else {
            let max = Self::MAX_BYTES as u64;
            return Err(Error::Argument {
                name: "len_bytes",
                value: len_bytes as u64,
                min: 1,
                max,
                multiple_of: 1,
            });
        };
        let map = map::anonymous(MmapOptions::new().len(whole_bytes), "mmap(MAP_ANONYMOUS)")?;
        let cpu = map.as_ptr().addr() as u64;
        let iova = lock::acquire(&vfio.0.table)?.place(cpu, whole_bytes, page_bytes)?;
        if let Err(error) = vfio.0.space.map(&vfio.0.kernel, cpu, iova, whole_bytes) {
            // Neither kernel path leaves a part of it mapped (`vfio_remove_dma`,
            // `iopt_abort_area`). If the lock cannot be acquired, the address range is lost, but no
            // memory.
            if let Ok(mut table) = lock::acquire(&vfio.0.table) {
                table.remove(iova);
            }
            return Err(error);
        }
        trace::happened(Event::MapForDevice { iova, len_bytes: whole_bytes }, Site::here());
        Ok(Self { vfio: vfio.clone(), map: ManuallyDrop::new(map), iova })
    }

    /// Unmaps the block from the device and frees it, as dropping it does, but reports the error.
    ///
    /// # Errors
    /// The block comes back with the kernel's error, or with [`Error::Contended`].
    pub fn unmap(self) -> Result<(), Refused<Self>> {
        let mut this = ManuallyDrop::new(self);
        match this.take_from_device() {
            Ok(()) => {
                this.free();
                Ok(())
            }
            Err(error) => Err(Refused::new(error, ManuallyDrop::into_inner(this))),
        }
    }

    /// After `Ok` the device does not reach the block, and its address range is free again.
    fn take_from_device(&self) -> Result<(), Error> {
        let mut table = lock::acquire(&self.vfio.0.table)?;
        let len_bytes = self.map.len() as u64;
        let is_mapped = table.get(self.iova).is_none_or(|block| block.state != State::Revoked);
        if is_mapped {
            self.vfio.0.space.unmap(&self.vfio.0.kernel, self.iova, len_bytes)?;
        }
        table.remove(self.iova);
        drop(table);
        if is_mapped {
            trace::happened(
                Event::UnmapForDevice { iova: self.iova, len_bytes: self.map.len() },
                Site::NONE,
            );
        }
        Ok(())
    }

    /// Frees the pages. Called once, after `take_from_device` succeeded.
    fn free(&mut self) {
        // SAFETY: called once, at the end of this value's life: in `drop`, or in `unmap`, which
        // keeps `drop` from running.
        unsafe { ManuallyDrop::drop(&mut self.map) };
    }
}

impl Drop for VfioMemory {
    fn drop(&mut self) {
        if self.take_from_device().is_ok() {
            self.free();
            return;
        }
        // The device may still reach the pages, so they stay, and so does their address range.
        // (Without the lock they are not counted.)
        trace::happened(Event::Leak { len_bytes: self.map.len() }, Site::NONE);
        if let Ok(mut table) = lock::acquire(&self.vfio.0.table)
            && let Some(block) = table.get(self.iova)
        {
            block.state = State::Leaked;
        }
    }
}

// SAFETY: 1. The mapping is owned by `self` and never remapped, the address was chosen in `new`;
// moving `self` moves neither. 2. The memory is anonymous, private and not copied into children, so
// nothing else has it; it is readable and writable, and the kernel zeroed it; munmap comes at the
// end of `self`. 3. `cache` touches only the lines of the range, or nothing. 4. The kernel mapped
// all of these pages at the address, and for this address space alone (`calls.rs`, 2): no other
// `Vfio` has its bus. 5. Where `coherent` is true, the kernel mapped the memory as cacheable, and
// the function may not set No Snoop (`Vfio::asking`).
unsafe impl Backend for VfioMemory {
    fn name(&self) -> &'static str {
        "vfio"
    }

    fn mapping(&self) -> Mapping {
        Mapping {
            cpu: map::start(&self.map),
            len_bytes: self.map.len(),
            base: BaseAddr::Dev(DevAddr(self.iova)),
            bus: self.vfio.port_bus(),
            scope: if self.vfio.0.coherent { SyncScope::Coherent } else { cache::scope() },
            coherent: Some(self.vfio.0.coherent),
        }
    }

    unsafe fn sync_for_device(
        &self,
        range: Range<usize>,
        direction: Direction,
    ) -> Result<(), Error> {
        cache::for_device(&self.map, slice::from_ref(&SyncRange { range, direction }))
    }

    unsafe fn sync_for_cpu(&self, range: Range<usize>, direction: Direction) -> Result<(), Error> {
        cache::for_cpu(&self.map, slice::from_ref(&SyncRange { range, direction }))
    }

    unsafe fn sync_all_for_device(&self, ranges: &[SyncRange]) -> Result<(), Error> {
        cache::for_device(&self.map, ranges)
    }

    unsafe fn sync_all_for_cpu(&self, ranges: &[SyncRange]) -> Result<(), Error> {
        cache::for_cpu(&self.map, ranges)
    }
}

impl fmt::Debug for VfioMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VfioMemory")
            .field("iova", &DevAddr(self.iova))
            .field("len_bytes", &self.map.len())
            .finish_non_exhaustive()
    }
}
