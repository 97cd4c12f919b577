#![allow(
    unsafe_code,
    reason = "a backend that lies hands out memory that is not there: implementing it is a promise"
)]
//! Where contiguous memory comes from: one trait, one file for each kind of memory.

use crate::types::platform::OwnedFd;
use crate::types::{BaseAddr, Bus, Direction, Error};
use core::ops::Range;
use core::ptr::NonNull;

/// The bytes that one cache-maintenance call covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum SyncScope {
    /// The hardware keeps this memory coherent for every master: nothing to maintain.
    Coherent,
    /// Any range. The backend rounds it out to `granule_bytes` itself.
    Range {
        /// The unit of maintenance: one cache line, a power of two.
        granule_bytes: usize,
    },
    /// The whole block at once, as for another driver's dma-buf: two buffers may not share the
    /// block on a non-coherent port.
    Whole,
    /// No code can maintain the caches for this memory: it is refused on a non-coherent port,
    /// because there it would work in an emulator and corrupt on silicon. `install` says what would
    /// help.
    None {
        /// Advice in words: a package to install, or an option to enable.
        install: &'static str,
    },
}

/// One block, as a backend mapped it. Plain numbers: it owns nothing.
#[derive(Clone, Copy, Debug)]
pub struct Mapping {
    /// The CPU's view of byte 0.
    pub cpu: NonNull<u8>,
    /// How many bytes are mapped.
    pub len_bytes: usize,
    /// Where byte 0 lies for a device.
    pub base: BaseAddr,
    /// The bus on which `base` is valid.
    pub bus: Bus,
    /// The bytes that one sync call covers.
    pub scope: SyncScope,
    /// What the kernel states about this memory's coherency (`dma_coherent`), if anything.
    pub coherent: Option<bool>,
}

/// A run of bytes that are contiguous on the bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Segment {
    /// Where the run begins, in the same space as [`Mapping::base`].
    pub addr: u64,
    /// How long it is, in bytes; at least 1.
    pub len_bytes: usize,
}

/// The most ranges of one list: what a burst's caches are maintained with lies on the stack.
pub const MAX_SYNC_RANGES: usize = 32;

/// A range of a block, and what its device does with the bytes: one entry of a list for
/// [`Backend::sync_all_for_device`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyncRange {
    /// The bytes, counted from the block's first one.
    pub range: Range<usize>,
    /// What the device does with them.
    pub direction: Direction,
}

/// One block of DMA memory: `HugeTlb`, `UDmaBuf`, `DmaHeap`, `sim::Sim`, or one of your own.
///
/// The backend owns the memory until it is dropped, and [`Region`](crate::Region) owns the backend.
/// A region leaks its backend rather than drop it while anything allocated from it is still out.
/// The last of the region's handles, buffers and pools drops the backend, on the thread that has
/// it, maybe in a buffer's drop: so the backend's drop does not panic, and does not wait long. (If
/// it panics all the same, what is left is leaked.)
///
/// # Safety
/// The two syncs are unsafe to call: they change what the CPU sees. So is `export`, which gives
/// others access to the memory. Everything else is safe.
///
/// # Implementation safety
/// 1. [`mapping`](Self::mapping) returns the same values at every call, however often the backend
///    itself is moved.
/// 2. `cpu .. cpu + len_bytes` is mapped, readable, writable and initialised, and stays so until
///    `self` is dropped: for ever, if it never is. A region leaks its backend if a device may
///    still write. The bytes are accessed only by the holder of the mapping and by the devices that
///    they are handed to. They change under a view for no other reason.
/// 3. `sync_for_device` and `sync_for_cpu` touch no byte outside `range`, which is rounded out to
///    the granule if the device writes. If the device only reads, they read no byte outside
///    `range`: a neighbour may be borrowed.
/// 4. [`segment`](Self::segment) tells the truth about where the device finds each byte, and so do
///    `base` and `bus`: no other memory answers there.
/// 5. [`handle`](Self::handle) is the block's for as long as `self` lives, and byte 0 of the block
///    is its byte 0.
/// 6. `scope` and `coherent` are true, and a sync that returns `Ok` was done: after `sync_for_cpu`
///    no later event in the caches changes a byte of the range. For bytes that the device has only
///    read, [`settled`](Self::settled) reports that.
/// 7. What `export` returns is a descriptor of a dma-buf that holds the whole block. It stays one
///    after `self` is dropped.
pub unsafe trait Backend: Send + Sync {
    /// A short name for tables and messages: `sim`, `hugetlb`, `u-dma-buf`.
    fn name(&self) -> &'static str;

    /// The block.
    fn mapping(&self) -> Mapping;

    /// The contiguous run that begins at byte `offset_bytes` of the block.
    ///
    /// # Errors
    /// The reason why the backend cannot know. The default reports the whole block as one run.
    fn segment(&self, offset_bytes: usize) -> Result<Segment, Error> {
        let mapping = self.mapping();
        Ok(Segment {
            addr: mapping.base.raw().wrapping_add(offset_bytes as u64),
            len_bytes: mapping.len_bytes.saturating_sub(offset_bytes),
        })
    }

    /// Hands `range` to the device: what the CPU wrote becomes visible to it, and no dirty line is
    /// left that could later overwrite what it writes. Called only for memory whose scope is
    /// `Range` or `Whole`, on a non-coherent port. Under `Whole` the range is advice. Under
    /// `Range` it is left out for a buffer that the CPU has only read since `sync_for_cpu`.
    ///
    /// # Errors
    /// The kernel's refusal, or [`Error::Contended`].
    ///
    /// # Safety
    /// If `direction` says that the device writes, no reference to a byte of the range, rounded out
    /// to the granule, is alive.
    unsafe fn sync_for_device(
        &self,
        range: Range<usize>,
        direction: Direction,
    ) -> Result<(), Error>;

    /// Takes `range` back for the CPU: what the device wrote becomes visible to it.
    ///
    /// # Errors
    /// As [`sync_for_device`](Self::sync_for_device).
    ///
    /// # Safety
    /// As [`sync_for_device`](Self::sync_for_device).
    unsafe fn sync_for_cpu(&self, range: Range<usize>, direction: Direction) -> Result<(), Error>;

    /// As [`sync_for_device`](Self::sync_for_device) for each of `ranges`, at most
    /// [`MAX_SYNC_RANGES`] of them: for a backend whose kernel takes a list, or that can make one
    /// of ranges that touch. The default syncs them one after another.
    ///
    /// # Errors
    /// As `sync_for_device`. Any number of them may have been synced.
    ///
    /// # Safety
    /// As `sync_for_device`, for each.
    unsafe fn sync_all_for_device(&self, ranges: &[SyncRange]) -> Result<(), Error> {
        ranges.iter().try_for_each(|each| {
            // SAFETY: the caller's promise.
            unsafe { self.sync_for_device(each.range.clone(), each.direction) }
        })
    }

    /// As [`sync_for_cpu`](Self::sync_for_cpu) for each of `ranges`, at most [`MAX_SYNC_RANGES`] of
    /// them. The default syncs them one after another.
    ///
    /// # Errors
    /// As `sync_for_cpu`. Any number of them may have been synced.
    ///
    /// # Safety
    /// As `sync_for_cpu`, for each.
    unsafe fn sync_all_for_cpu(&self, ranges: &[SyncRange]) -> Result<(), Error> {
        ranges.iter().try_for_each(|each| {
            // SAFETY: the caller's promise.
            unsafe { self.sync_for_cpu(each.range.clone(), each.direction) }
        })
    }

    /// Checks that everything this backend began for `range` has ended. A hand-over calls it before
    /// bytes come back to the CPU, also if the device has only read them, and before a tensor of
    /// them is lent. It does so on a bus of objects ([`Bus::Objects`]) and on a simulated board, if
    /// the port does not snoop. The default is for a backend whose syncs have ended when they
    /// return. A backend over another one passes the call on.
    ///
    /// # Errors
    /// Something has not ended, or the backend cannot tell: the bytes stay with the device.
    /// [`Error::Timeout`], and the backend's own errors.
    fn settled(&self, range: Range<usize>) -> Result<(), Error> {
        let _ = range;
        Ok(())
    }

    /// The block as an object, if its device takes objects and no addresses. The addresses of
    /// [`mapping`](Self::mapping) are then numbers of the device's own bus ([`Bus::Objects`]). The
    /// default, `None`: it is no object.
    fn handle(&self) -> Option<super::Handle> {
        None
    }

    /// Tells a simulated board who may touch `range` from here on. A backend over another one
    /// passes the call on: otherwise the board counts each access as one to bytes that were not
    /// handed over. The default is for memory that no simulated device reaches.
    fn held_by(&self, range: Range<usize>, holder: super::Holder<'_>) {
        let _ = (range, holder);
    }

    /// How often the devices of this memory's simulated board touched memory that was not handed
    /// over to them. The job layer asks if a driver does not say which device it has
    /// ([`Driver::simulated`](crate::Driver::simulated)). A backend over another one passes the
    /// call on: otherwise wrong accesses go unnoticed. The default is for memory that no simulated
    /// device reaches.
    ///
    /// # Errors
    /// As [`SimulatedDevice::wrong_accesses`](super::SimulatedDevice::wrong_accesses).
    fn wrong_accesses(&self) -> Result<super::WrongAccesses, Error> {
        Ok(super::WrongAccesses::default())
    }

    /// A new descriptor of a dma-buf that holds the whole block, for another importer. The default
    /// is for memory that is no dma-buf: huge pages, VFIO's, a simulated board's.
    ///
    /// # Errors
    /// [`Error::Unsupported`]: the memory is no dma-buf. [`Error::Os`]: the kernel's error.
    ///
    /// # Safety
    /// As [`Region::export`](crate::Region::export).
    unsafe fn export(&self) -> Result<OwnedFd, Error> {
        let fix = "use u-dma-buf, dma-heap or an imported dma-buf";
        Err(Error::Unsupported {
            what: "this memory is no dma-buf, which another importer could take",
            fix,
        })
    }
}
