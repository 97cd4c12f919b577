//! [`UDmaBuf`]: a block of CMA memory from the kernel module u-dma-buf
//! (<https://github.com/ikwzm/udmabuf>, 5.5.0 read).
//!
//! # Why the mapping is cached
//! The device is opened without `O_SYNC`, so the CPU's view is ordinary cached memory, and ranges
//! are synchronised by [`Backend::sync_for_device`] and [`Backend::sync_for_cpu`]. With `O_SYNC`
//! the module's `sync_mode` would decide, and mode 1 maps device memory on arm64, where `memset`
//! and any unaligned access fault (Readme.md, "Note: on using `O_SYNC` flag on ARM64"). `sync_mode`
//! has one bit, 4, that does the same without `O_SYNC` (device-tree property `sync-always`): 5, 6
//! and 7 are refused, 0 to 4 are cached. One case the module decides alone: with `quirk_mmap_mode`
//! off on ARM and a non-coherent device, the kernel maps write-combined. That is correct and slow
//! to read.
//!
//! # Why `SET_SYNC`
//! The module stores the offset, size and direction of the last call, and a command runs on what is
//! stored. `SET_SYNC` carries all of them with the command in one call and in 64 bits. The packed
//! word of `SET_SYNC_FOR_CPU` has 32 bits for the offset, cuts the size to 16 bytes, and falls back
//! to what is stored when it is only a command. Neither takes a lock in the kernel: two calls at
//! once would sync each other's ranges, so the backend has a lock.

#![allow(unsafe_code, reason = "`unsafe impl Backend`, and the one pointer it hands out")]

mod facts;
mod ioctl;
mod sysfs;

pub use self::sysfs::{CLASSES, is_translated};

use self::facts::Facts;
use self::ioctl::SyncArgs;
use self::sysfs::{Directory, SyncFiles};
use crate::linux::os::cache::TOO_MANY_RANGES;
use crate::linux::os::fd::Fd;
use crate::linux::os::path::{Path, check_name};
use crate::linux::os::{Kernel, RUNNING, SystemCalls, cache, map};
use crate::mem::{Backend, MAX_SYNC_RANGES, Mapping, SyncRange, SyncScope};
use crate::types::platform::OwnedFd;
use crate::types::{Align, BaseAddr, Bus, DevAddr, Direction, Error, PhysAddr, lock};
use core::ops::Range;
use core::slice;
use memmap2::MmapRaw;
use nix::libc::{EWOULDBLOCK, O_RDWR};
use spin::Mutex;

/// A u-dma-buf device's block: physically contiguous, mapped into this process, synchronised range
/// by range.
///
/// It owns the mapping and an exclusive advisory lock (`flock`) on `/dev/<name>`. The memory itself
/// belongs to the module. It outlives the process, with whatever that left in it. `flock` keeps out
/// a second program of this runtime, not one that takes no lock. An open device keeps the module
/// from being unloaded, not from being unbound by root, which frees the memory under its users.
///
/// - Sizes and offsets are bytes. The block must be a whole number of cache lines: 64 bytes, or on
///   arm64 the machine's granule (`CTR_EL0.CWG`), where that is larger. The kernel aligns it to a
///   page.
/// - The address is the module's `phys_addr`: a bus address for the device-tree node it was made
///   for. [`open`](Self::open) takes a node with neither `dma-ranges` nor `iommus`, where it equals
///   the physical address and each [`Port`](crate::Port) adds its own offset.
///   [`open_translated`](Self::open_translated) takes a node behind the accelerator's own
///   translation.
/// - Ranges are rounded out to whole lines; an empty range does nothing at all.
///
/// Source: u-dma-buf's Readme.md, "Device file" and "ioctl", and `u-dma-buf-ioctl.h`.
///
/// ```no_run
/// use contigo::{Backend, linux::memory::UDmaBuf};
/// let block = UDmaBuf::open("udmabuf0")?;
/// let mapping = block.mapping();
/// assert!(mapping.len_bytes % 64 == 0 && mapping.base.raw() != 0);
/// # Ok::<(), contigo::Error>(())
/// ```
#[derive(Debug)]
pub struct UDmaBuf {
    // INVARIANT: maps the whole block from its first byte, until `self` is dropped.
    map: MmapRaw,
    base: BaseAddr,
    coherent: Option<bool>,
    dma_mask_bits: Option<u8>,
    way: SyncWay,
    // INVARIANT: the block is a multiple of it, so that rounding out never leaves the block.
    granule: Align,
    // Held during a sync, however many calls it takes: see the module's documentation.
    serial: Mutex<()>,
    device: Fd,
    kernel: Kernel,
}

/// How ranges are synchronised. `Nothing` is for memory that the hardware keeps coherent.
#[derive(Debug)]
enum SyncWay {
    Nothing,
    Ioctl,
    Sysfs(SyncFiles),
}

impl UDmaBuf {
    /// Opens `/dev/<name>`, whose addresses are physical ones ([`BaseAddr::Phys`]).
    ///
    /// A node behind an IOMMU or a bus with `dma-ranges` is refused: its address is not the
    /// physical one, and the accelerator would be given a wrong one. There, use
    /// [`open_translated`](Self::open_translated).
    ///
    /// # Errors
    /// - [`Error::BadName`]: not 1 to 63 bytes, or `.`, `..`, or with a `/` or a NUL.
    /// - [`Error::Os`]: the module has no such device, its file cannot be opened or mapped, or an
    ///   ioctl failed. [`Error::InUse`]: it is open elsewhere.
    /// - [`Error::AttributeMissing`], [`Error::AttributeUnreadable`], [`Error::AttributeEmpty`],
    ///   [`Error::Unexpected`]: what the module says of the block is absent, or cannot be.
    /// - [`Error::BlockSize`]: the block is empty or not a whole number of lines.
    ///   [`Error::Setting`]: it would be mapped uncached. [`Error::Unsupported`]: its address is
    ///   translated.
    pub fn open(name: &str) -> Result<Self, Error> {
        // SAFETY: `translated` is false: such an address is refused.
        unsafe { Self::open_in(name, RUNNING, cache::granule(), false) }
    }

    /// Opens `/dev/<name>`, made for a node that has the accelerator's own `dma-ranges` or
    /// `iommus`: its address is what that accelerator must use, and no port adds anything
    /// ([`BaseAddr::Dev`]). Such memory has no name (`contigo::names`), because a user who types
    /// one can promise nothing.
    ///
    /// ```no_run
    /// // SAFETY: the capture engine, which alone is given this memory, has the node's `iommus`.
    /// let behind_smmu = unsafe { contigo::linux::memory::UDmaBuf::open_translated("udmabuf-capture")? };
    /// # Ok::<(), contigo::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`open`](Self::open), and [`Error::Unsupported`] where nothing translates the node's
    /// addresses. The same error says that the module would map the bus address as if it were a
    /// physical one: `quirk_mmap_mode` must be off there (device-tree property `quirk-mmap-off`).
    ///
    /// # Safety
    /// Every device that is given this memory's addresses through a port of [`Bus::Soc`] is behind
    /// the same translation as the node (`iommus` or `dma-ranges`). To another device they are
    /// physical addresses, of memory that is not this block's.
    pub unsafe fn open_translated(name: &str) -> Result<Self, Error> {
        // SAFETY: the caller's promise.
        unsafe { Self::open_in(name, RUNNING, cache::granule(), true) }
    }

    /// As [`open`](Self::open), or where it is `translated`, [`open_translated`](
    /// Self::open_translated), with a kernel that the test provides, on a machine of this granule.
    ///
    /// # Errors
    /// As these.
    ///
    /// # Safety
    /// Where it is `translated`, as [`open_translated`](Self::open_translated).
    #[cfg(feature = "testkit")]
    pub unsafe fn open_from(
        kernel: crate::linux::os::seam::Test,
        name: &str,
        granule: Align,
        translated: bool,
    ) -> Result<Self, Error> {
        // SAFETY: the caller's promise.
        unsafe { Self::open_in(name, Kernel::Test(kernel), granule, translated) }
    }

    /// # Safety
    /// Where it is `translated`, as [`open_translated`](Self::open_translated).
    unsafe fn open_in(
        name: &str,
        kernel: Kernel,
        granule: Align,
        translated: bool,
    ) -> Result<Self, Error> {
        check_name(name)?;
        // First, because a file that is no device of the module is never opened: that can have
        // effects of its own.
        let directory = Directory::find(&kernel, name)?;
        if translated != directory.is_translated() {
            let (what, fix) = if translated {
                (
                    "nothing translates this device's addresses (iommu_group, iommus, dma-ranges)",
                    "open it as an untranslated one",
                )
            } else {
                (
                    "the device's addresses are translated (iommu_group, iommus or dma-ranges)",
                    "open it as a translated one",
                )
            };
            return Err(Error::Unsupported { what, fix });
        }
        // Without O_SYNC: the module maps the block cached.
        let device = kernel
            .open(Path::join(&["/dev", name])?.as_c_str(), O_RDWR)
            .map_err(|errno| os("open(/dev/<name>)", errno))?;
        device.try_lock().map_err(|errno| {
            if errno == EWOULDBLOCK {
                Error::InUse { errno }
            } else {
                os("flock(/dev/<name>)", errno)
            }
        })?;
        let facts = Facts::ask(&directory, &kernel, &device, granule)?;
        facts.refuse_uncached()?;
        if translated {
            facts.refuse_quirk(&directory)?;
        }

        let way = match facts {
            Facts { coherent: Some(true), .. } => SyncWay::Nothing,
            Facts { sync_by_ioctl: true, .. } => SyncWay::Ioctl,
            Facts { sync_by_ioctl: false, .. } => SyncWay::Sysfs(SyncFiles::open(&directory)?),
        };
        let map = kernel.map(&device, 0, facts.len_bytes, "mmap(/dev/<name>)")?;
        Ok(Self {
            map,
            base: if translated {
                BaseAddr::Dev(DevAddr(facts.addr))
            } else {
                BaseAddr::Phys(PhysAddr(facts.addr))
            },
            coherent: facts.coherent,
            dma_mask_bits: facts.info.and_then(|info| info.dma_mask_bits()),
            way,
            granule,
            serial: Mutex::new(()),
            device,
            kernel,
        })
    }

    /// The width in bits of the DMA mask that the kernel has for the device, where the module
    /// reports it (ioctl `GET_DEV_INFO`, from 4.7.0).
    ///
    /// ```no_run
    /// println!("DMA mask: {:?} bits", contigo::linux::memory::UDmaBuf::open("udmabuf0")?.dma_mask_bits());
    /// # Ok::<(), contigo::Error>(())
    /// ```
    #[must_use]
    pub const fn dma_mask_bits(&self) -> Option<u8> {
        self.dma_mask_bits
    }

    /// Syncs `ranges`, after all of them were checked, in as few calls as cover them.
    fn sync(&self, command: u64, ranges: &[SyncRange]) -> Result<(), Error> {
        let mut runs = heapless::Vec::<SyncRange, MAX_SYNC_RANGES>::new();
        for each in ranges {
            let lines = self.lines(&each.range)?;
            // A size of 0 would run the command on the range of an earlier call.
            if !each.range.is_empty() {
                joined(&mut runs, SyncRange { range: lines, direction: each.direction })?;
            }
        }
        if runs.is_empty() || matches!(self.way, SyncWay::Nothing) {
            return Ok(());
        }
        let _serial = lock::acquire(&self.serial)?;
        runs.iter().try_for_each(|run| self.sync_run(command, run))
    }

    /// The whole lines that hold `range`.
    fn lines(&self, range: &Range<usize>) -> Result<Range<usize>, Error> {
        let len_bytes = self.map.len();
        if range.start > range.end || range.end > len_bytes {
            return Err(Error::OutOfRange { start: range.start, end: range.end, len_bytes });
        }
        // The block is a multiple of the granule: rounding up ends at its end at most.
        let end = self.granule.round_up(range.end).map_or(len_bytes, |end| end.min(len_bytes));
        Ok(self.granule.round_down(range.start)..end)
    }

    /// One sync. The caller holds the lock.
    fn sync_run(&self, command: u64, run: &SyncRange) -> Result<(), Error> {
        let SyncRange { range, direction } = run;
        let (offset, size) = (range.start as u64, range.len() as u64);
        match &self.way {
            SyncWay::Nothing => Ok(()),
            SyncWay::Ioctl => {
                let args =
                    SyncArgs { flags: command | (direction_code(*direction) << 2), size, offset };
                ioctl::set_sync(&self.kernel, &self.device, &args)
                    .map_err(|errno| os("ioctl(U_DMA_BUF_IOCTL_SET_SYNC)", errno))
            }
            SyncWay::Sysfs(files) => files.sync(&self.kernel, command, *direction, offset, size),
        }
    }
}

// SAFETY: 1. `map` is never remapped, and an `MmapRaw` points at its bytes from wherever it is
// moved: `mapping` says the same at every call. 2. `open_in` maps `len_bytes` readable, writable
// bytes until `self` is dropped; memory from the kernel is initialised, and the open device keeps
// the module loaded. The `flock` keeps out other users of this runtime. Two things no process can
// keep out: a program that ignores the lock, and root unbinding the device, which frees the block
// under everyone.
//    3. `sync` rounds out to the granule within the block, and the kernel reads no byte of it: it
//       cleans or invalidates lines.
//    4. The whole block is one run: the default `segment`.
unsafe impl Backend for UDmaBuf {
    fn name(&self) -> &'static str {
        "u-dma-buf"
    }

    fn mapping(&self) -> Mapping {
        Mapping {
            cpu: map::start(&self.map),
            len_bytes: self.map.len(),
            base: self.base,
            bus: Bus::Soc,
            scope: match self.way {
                SyncWay::Nothing => SyncScope::Coherent,
                SyncWay::Ioctl | SyncWay::Sysfs(_) => {
                    SyncScope::Range { granule_bytes: self.granule.bytes() }
                }
            },
            coherent: self.coherent,
        }
    }

    unsafe fn sync_for_device(
        &self,
        range: Range<usize>,
        direction: Direction,
    ) -> Result<(), Error> {
        self.sync(SyncArgs::FOR_DEVICE, slice::from_ref(&SyncRange { range, direction }))
    }

    unsafe fn sync_for_cpu(&self, range: Range<usize>, direction: Direction) -> Result<(), Error> {
        self.sync(SyncArgs::FOR_CPU, slice::from_ref(&SyncRange { range, direction }))
    }

    unsafe fn sync_all_for_device(&self, ranges: &[SyncRange]) -> Result<(), Error> {
        self.sync(SyncArgs::FOR_DEVICE, ranges)
    }

    unsafe fn sync_all_for_cpu(&self, ranges: &[SyncRange]) -> Result<(), Error> {
        self.sync(SyncArgs::FOR_CPU, ranges)
    }

    /// The module makes a dma-buf of the whole block, which it holds as long as an importer does,
    /// where it has `U_DMA_BUF_IOCTL_EXPORT`. It refuses a block that is no multiple of a page.
    unsafe fn export(&self) -> Result<OwnedFd, Error> {
        ioctl::export(&self.kernel, &self.device, self.map.len() as u64)
            .and_then(Fd::into_owned)
            .map_err(|errno| os("ioctl(U_DMA_BUF_IOCTL_EXPORT)", errno))
    }
}

/// Adds `next` to `runs`. What touches it or overlaps with it, in the same direction, becomes one
/// run with it: slots of a ring come in order, or reversed, or with other buffers between them.
fn joined(
    runs: &mut heapless::Vec<SyncRange, MAX_SYNC_RANGES>,
    mut next: SyncRange,
) -> Result<(), Error> {
    // At most one round for each run, because each takes one out.
    while let Some(at) = runs.iter().position(|run| {
        run.direction == next.direction
            && run.range.start <= next.range.end
            && next.range.start <= run.range.end
    }) {
        let run = runs.swap_remove(at).range;
        next.range = run.start.min(next.range.start)..run.end.max(next.range.end);
    }
    runs.push(next).map_err(|_| TOO_MANY_RANGES)
}

/// The module's numbers for a direction (Readme.md, "`sync_direction`"). Some of its interfaces
/// refuse 3, and others ignore it.
const fn direction_code(direction: Direction) -> u64 {
    match direction {
        Direction::Bidirectional => 0,
        Direction::ToDevice => 1,
        Direction::FromDevice => 2,
    }
}

const fn os(call: &'static str, errno: i32) -> Error {
    Error::Os { call, errno }
}
