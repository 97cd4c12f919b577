#![allow(unsafe_code, reason = "the region is what promises that a block outlives everything carved from it")]
//! A region: one block of DMA memory, checked, and given out in pieces.

mod carve;
pub(crate) mod state;

pub use carve::Carve;
pub(crate) use state::State;

#[cfg(doc)]
use crate::types::Error;
use crate::{
    mem::{Backend, Port, SyncScope},
    trace::{self, Event, Site, Stats},
    types::{Align, BaseAddr, DevAddr, Refused, Result, atomic::Ordering, platform::OwnedFd},
};
use core::{fmt, mem::ManuallyDrop, ptr::NonNull};

/// The requirements on a block, for [`Region::with`].
///
/// ```
/// use contigo::{Align, Requirements};
/// // DLPack's alignment, below 4 GiB, and room for one 1080p frame.
/// let needs = Requirements { align: Align::DLPACK, addr_bits: 32, len_bytes: 1920 * 1080 * 4 };
/// assert_eq!(Requirements::default(), Requirements { align: Align::LINE, addr_bits: 64, len_bytes: 1 });
/// # let _ = needs;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Requirements {
    /// The block's address must be a multiple of this. At least one cache line is required in any
    /// case.
    pub align: Align,
    /// The block's last byte must be reachable with so many address bits.
    pub addr_bits: u32,
    /// The block must have so many bytes at least.
    pub len_bytes: usize,
}

impl Default for Requirements {
    fn default() -> Self {
        Self { align: Align::LINE, addr_bits: 64, len_bytes: 1 }
    }
}

/// One block of DMA memory. It owns its backend, and frees it only when everything carved from it
/// has come back. A piece that was forgotten, or that a device still has, keeps the memory mapped
/// for ever.
///
/// A child of fork(2) does not get the block, and must not drop what it has of it: see the crate's
/// "Programs that fork".
///
/// ```
/// use contigo::{Align, Region, sim::SimBoard};
/// let board = SimBoard::new(1);
/// let region = Region::new(board.memory(64 * 1024)?)?;
/// let mut weights = region.carve(4_096, Align::DLPACK)?.into_buf();
/// weights.view_mut::<i8>()?.fill(3);
/// # Ok::<(), contigo::Error>(())
/// ```
pub struct Region<B: Backend> {
    /// The backend, for calls that only some memory has.
    pub(crate) backend: ManuallyDrop<B>,
    state: State,
}

/// A region behind one type, for what holds pieces of it.
pub(crate) trait Block: Sync {
    fn state(&self) -> &State;
    fn backend(&self) -> &dyn Backend;
}

impl<B: Backend> Region<B> {
    /// A region over all of `backend`'s block: contiguous, aligned to one line (64 bytes).
    ///
    /// # Errors
    /// As [`with`](Self::with).
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn new(backend: B) -> Result<Self, Refused<B>> {
        Self::with(backend, Requirements::default())
    }

    /// A region over all of `backend`'s block, when it is what `needs` says. Its caches are cleaned
    /// and invalidated once: a fresh CMA block can hold dirty lines that would later overwrite what
    /// a device wrote (amd/xdna-driver#1439).
    ///
    /// # Errors
    /// The backend comes back with [`Error::NotContiguous`], [`Error::Misaligned`],
    /// [`Error::BlockSize`], [`Error::TooHigh`], or what the backend's `segment` or sync says.
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn with(backend: B, needs: Requirements) -> Result<Self, Refused<B>> {
        match State::checked(&backend, needs, Site::here()) {
            Ok(state) => Ok(Self { backend: ManuallyDrop::new(backend), state }),
            Err(error) => Err(Refused::new(error, backend)),
        }
    }

    /// Cuts the next `len_bytes`, rounded up to whole cache lines, at an address that is a multiple
    /// of `align` for the CPU and for the device. A bump at set-up time: what is carved stays
    /// carved.
    ///
    /// # Errors
    /// [`Error::Exhausted`]: past the end. [`Error::Argument`]: no bytes. [`Error::Misaligned`]:
    /// the block's CPU address can never have that alignment together with its device address.
    /// [`Error::WholeBlock`]: another carve is alive, and the block can only be synchronised as a
    /// whole.
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn carve(&self, len_bytes: usize, align: Align) -> Result<Carve<'_>> {
        let span = self.state.bump(len_bytes, align)?;
        trace::happened(Event::CarveBytes { offset_bytes: span.start, len_bytes: span.len }, Site::here());
        Ok(Carve::new(self, span))
    }

    /// The bus address through `port` of `len_bytes` bytes at `ptr`, in O(1). It is a number: it
    /// gives no right to the bytes.
    ///
    /// # Errors
    /// [`Error::NotOurs`] where not all of them belong to this region; [`Error::WrongBus`];
    /// [`Error::Unreachable`].
    #[inline]
    pub fn dev_addr_of(&self, port: &Port, ptr: *const u8, len_bytes: usize) -> Result<DevAddr> {
        self.state.dev_addr_of(port, ptr, len_bytes)
    }

    /// Where the CPU finds the byte at bus address `addr` of `port`, in O(1): a raw pointer,
    /// because the byte may be a device's at this moment.
    ///
    /// # Errors
    /// [`Error::NotOurs`], [`Error::WrongBus`].
    #[inline]
    pub fn host_ptr_of(&self, port: &Port, addr: DevAddr) -> Result<NonNull<u8>> {
        self.state.host_ptr_of(port, addr)
    }

    /// Asks the backend anew where the block lies, and compares. Memory that may be migrated, as
    /// huge pages without a pin, wants it before the first job and now and then: `HugeTlb` says
    /// when. No other backend's memory moves.
    ///
    /// # Errors
    /// [`Error::NotContiguous`]: from byte `offset_bytes` on the block is elsewhere. Stop the
    /// device. Or what the backend's `segment` says, where it cannot know any more.
    ///
    /// ```
    /// # use contigo::{Region, sim::SimBoard};
    /// # let board = SimBoard::new(1);
    /// let region = Region::new(board.memory(64 * 1024)?)?;
    /// region.verify()?;
    /// # Ok::<(), contigo::Error>(())
    /// ```
    pub fn verify(&self) -> Result<()> {
        state::contiguous(&*self.backend, &self.state.mapping)
    }

    /// As [`own::Region::export`](crate::own::Region::export).
    ///
    /// # Errors
    /// As there.
    ///
    /// # Safety
    /// As there.
    pub unsafe fn export(&self) -> Result<OwnedFd> {
        // SAFETY: the caller's promise.
        unsafe { self.backend.export() }
    }

    /// The block's size in bytes.
    pub const fn len_bytes(&self) -> usize {
        self.state.mapping.len_bytes
    }

    /// How many bytes can still be carved, before alignment.
    pub fn free_bytes(&self) -> usize {
        self.len_bytes() - self.state.carved_bytes.load(Ordering::Relaxed)
    }

    /// The cache line: what slots must be multiples of.
    pub const fn line(&self) -> Align {
        self.state.line
    }

    /// Where the block lies.
    pub const fn base(&self) -> BaseAddr {
        self.state.mapping.base
    }

    /// The bytes that one cache maintenance call covers here.
    pub const fn scope(&self) -> SyncScope {
        self.state.mapping.scope
    }

    /// The counts of this region's work so far.
    pub fn stats(&self) -> Stats {
        self.state.counters.snapshot()
    }

    /// The backend's name. The backend itself is out of reach: its syncs would change bytes under a
    /// view.
    pub fn name(&self) -> &'static str {
        self.backend.name()
    }
}

impl<B: Backend> Block for Region<B> {
    fn state(&self) -> &State {
        &self.state
    }
    fn backend(&self) -> &dyn Backend {
        &*self.backend
    }
}

impl<B: Backend> Drop for Region<B> {
    /// Frees the block when everything came back, and leaks it otherwise: a device may still write
    /// into it.
    fn drop(&mut self) {
        if self.state.live.load(Ordering::Acquire) != 0 {
            trace::happened(Event::Leak { len_bytes: self.len_bytes() }, Site::NONE);
            return;
        }
        // SAFETY: 1. `drop` runs once. 2. Every piece borrows the region, and none is alive: `live`
        // counts carves and their buffers from `bump` and `share` to `release`, whatever was
        // forgotten stays counted.
        unsafe { ManuallyDrop::drop(&mut self.backend) };
        trace::happened(Event::Unmap { len_bytes: self.len_bytes() }, Site::NONE);
    }
}

impl<B: Backend> fmt::Debug for Region<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Region")
            .field("backend", &self.backend.name())
            .field("base", &self.base())
            .field("len_bytes", &self.len_bytes())
            .field("free_bytes", &self.free_bytes())
            .finish_non_exhaustive()
    }
}
