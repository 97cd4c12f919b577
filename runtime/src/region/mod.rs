#![allow(unsafe_code, reason = "the region is what promises that a block outlives everything carved from it")]
//! A region: one block of DMA memory, checked, and given out in pieces.

mod carve;

pub use carve::Carve;

use crate::{
    Align, Backend, BaseAddr, DevAddr, Direction, Error, Mapping, Port, Result, Stats, SyncScope,
    atomic::{AtomicUsize, Ordering},
    event::event,
    refused::Refused,
    span::{Maintenance, Span},
    stats::Counters,
};
use core::{fmt, mem::ManuallyDrop, ptr::NonNull};

/// What a block must be, for [`Region::with`].
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
    /// What the block's address must be a multiple of. At least one cache line is required whatever stands here.
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

/// One block of DMA memory. It owns its backend, and frees it only when everything carved from it has come back: what was
/// forgotten, or is still a device's, keeps the memory mapped for ever.
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
    backend: ManuallyDrop<B>,
    state: State,
}

/// What a region knows whatever its backend is.
pub(crate) struct State {
    pub(crate) mapping: Mapping,
    /// No line belongs to two owners: carves, slots and arena blocks are whole lines.
    pub(crate) line: Align,
    /// Everything below is given out. Only grows: carving is a plan, made once.
    carved_bytes: AtomicUsize,
    /// Carves, and buffers made of them, that have not come back.
    live: AtomicUsize,
    pub(crate) counters: Counters,
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
    pub fn new(backend: B) -> Result<Self, Refused<B>> {
        Self::with(backend, Requirements::default())
    }

    /// A region over all of `backend`'s block, when it is what `needs` says. Its caches are cleaned and invalidated once: a
    /// fresh CMA block can hold dirty lines that would later overwrite what a device wrote (amd/xdna-driver#1439).
    ///
    /// # Errors
    /// The backend comes back with [`Error::NotContiguous`], [`Error::Misaligned`], [`Error::BlockSize`],
    /// [`Error::TooHigh`], or what the backend's `segment` or sync says.
    pub fn with(backend: B, needs: Requirements) -> Result<Self, Refused<B>> {
        match State::checked(&backend, needs) {
            Ok(state) => Ok(Self { backend: ManuallyDrop::new(backend), state }),
            Err(error) => Err(Refused::new(error, backend)),
        }
    }

    /// Cuts the next `len_bytes`, rounded up to whole cache lines, at an address that is a multiple of `align` for the CPU and
    /// for the device. A bump at set-up time: what is carved stays carved.
    ///
    /// # Errors
    /// [`Error::Exhausted`] past the end; [`Error::BlockSize`] for no bytes; [`Error::Misaligned`] where the block's CPU
    /// address can never have that alignment together with its device address; [`Error::WholeBlock`] for a second carve
    /// beside a live one where the block can only be synchronised as a whole.
    pub fn carve(&self, len_bytes: usize, align: Align) -> Result<Carve<'_>> {
        let span = self.state.bump(len_bytes, align)?;
        event!("carve {} bytes at {}", span.len, span.start);
        Ok(Carve::new(self, span))
    }

    /// The bus address through `port` of `len_bytes` bytes at `ptr`, in O(1). It is a number: it gives no right to the bytes.
    ///
    /// # Errors
    /// [`Error::NotOurs`] where not all of them are this region's; [`Error::WrongBus`]; [`Error::Unreachable`].
    #[inline]
    pub fn dev_addr_of(&self, port: &Port, ptr: *const u8, len_bytes: usize) -> Result<DevAddr> {
        let mapping = &self.state.mapping;
        let offset = ptr.addr().wrapping_sub(mapping.cpu.as_ptr().addr());
        if offset >= mapping.len_bytes || len_bytes > mapping.len_bytes - offset {
            return Err(Error::NotOurs { addr: ptr.addr() as u64, len_bytes });
        }
        if port.bus != mapping.bus {
            return Err(Error::WrongBus { port: port.name, memory: mapping.bus });
        }
        port.dev_addr(mapping.base.plus(offset), len_bytes)
    }

    /// Where the CPU finds the byte at bus address `addr` of `port`, in O(1): a raw pointer, because the byte may be a
    /// device's at this moment.
    ///
    /// # Errors
    /// [`Error::NotOurs`], [`Error::WrongBus`].
    #[inline]
    pub fn host_ptr_of(&self, port: &Port, addr: DevAddr) -> Result<NonNull<u8>> {
        let mapping = &self.state.mapping;
        if port.bus != mapping.bus {
            return Err(Error::WrongBus { port: port.name, memory: mapping.bus });
        }
        match port.offset_in(mapping.base, addr).and_then(|offset| usize::try_from(offset).ok()) {
            // SAFETY: `offset` is below the mapping's length, so the sum stays inside the mapping.
            Some(offset) if offset < mapping.len_bytes => Ok(unsafe { mapping.cpu.add(offset) }),
            _ => Err(Error::NotOurs { addr: addr.0, len_bytes: 1 }),
        }
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

    /// What one cache maintenance call covers here.
    pub const fn scope(&self) -> SyncScope {
        self.state.mapping.scope
    }

    /// What this region has done so far.
    pub fn stats(&self) -> Stats {
        self.state.counters.snapshot()
    }

    /// The backend's name. The backend itself is out of reach: its syncs would change bytes under a view.
    pub fn name(&self) -> &'static str {
        self.backend.name()
    }
}

impl State {
    /// Every check that a block must pass, then the first touch.
    fn checked(backend: &dyn Backend, needs: Requirements) -> Result<Self> {
        let mapping = backend.mapping();
        let line = match mapping.scope {
            SyncScope::Range { granule_bytes } => Align::new(granule_bytes)?.max(Align::MIN),
            SyncScope::Coherent | SyncScope::Whole | SyncScope::None { .. } => Align::LINE,
        };
        let Mapping { len_bytes, base, .. } = mapping;
        if len_bytes < needs.len_bytes.max(1) || !line.divides(len_bytes as u64) {
            return Err(Error::BlockSize { len_bytes, need_bytes: needs.len_bytes.max(1), line_bytes: line.bytes() });
        }
        let align = needs.align.max(line);
        for addr in [base.raw(), mapping.cpu.as_ptr().addr() as u64] {
            if !align.divides(addr) {
                return Err(Error::Misaligned { addr, align_bytes: align.bytes() });
            }
        }
        contiguous(backend, &mapping)?;
        let last = base.raw().checked_add(len_bytes as u64 - 1);
        let reach = if needs.addr_bits >= 64 { u64::MAX } else { (1 << needs.addr_bits) - 1 };
        match last {
            Some(last) if last <= reach => {}
            _ => return Err(Error::TooHigh { last: last.unwrap_or(u64::MAX), addr_bits: needs.addr_bits }),
        }
        let (carved_bytes, live, counters) = (AtomicUsize::new(0), AtomicUsize::new(0), Counters::default());
        let state = Self { mapping, line, carved_bytes, live, counters };
        if matches!(mapping.scope, SyncScope::Range { .. } | SyncScope::Whole) {
            let whole = Maintenance { range: 0..len_bytes, direction: Direction::Bidirectional };
            state.sync_for_device(backend, &whole)?;
            state.sync_for_cpu(backend, &whole)?;
        }
        event!("map {} bytes at {}", len_bytes, base.raw());
        Ok(state)
    }

    /// Takes the next bytes. `fetch_update` repeats only while other threads carve at the same time, which set-up code does
    /// a bounded number of times: each repetition is another thread's success.
    fn bump(&self, len_bytes: usize, align: Align) -> Result<Span> {
        let (base, cpu) = (self.mapping.base.raw(), self.mapping.cpu.as_ptr().addr());
        let align = align.max(self.line);
        let (capacity_bytes, line_bytes) = (self.mapping.len_bytes, self.line.bytes());
        if len_bytes == 0 {
            return Err(Error::BlockSize { len_bytes, need_bytes: 1, line_bytes });
        }
        // How far the block's first byte is past a multiple of `align`: less than `align`, so it fits a `usize`.
        let phase = usize::try_from(base & (align.bytes() as u64 - 1)).unwrap_or(0);
        if phase != cpu & (align.bytes() - 1) {
            return Err(Error::Misaligned { addr: cpu as u64, align_bytes: align.bytes() });
        }
        // Counted before the bytes are taken, so that of two threads under `Whole` at least one sees the other.
        let others = self.live.fetch_add(1, Ordering::SeqCst);
        let carved = self.carved_bytes.load(Ordering::SeqCst);
        if self.mapping.scope == SyncScope::Whole && others > 0 {
            self.release();
            return Err(Error::WholeBlock { shared_bytes: carved });
        }
        if self.mapping.scope == SyncScope::Whole {
            // The only piece: what was carved before has come back, and nobody else gets past the check above.
            self.carved_bytes.store(0, Ordering::SeqCst);
        }
        let mut span = None;
        let taken = self.carved_bytes.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |carved| {
            let start = align.round_up(carved.checked_add(phase)?)? - phase;
            let end = start.checked_add(self.line.round_up(len_bytes)?)?;
            span = Some(Span::new(start, end - start));
            (end <= capacity_bytes).then_some(end)
        });
        match (taken, span) {
            (Ok(_), Some(span)) => Ok(span),
            _ => {
                self.release();
                Err(Error::Exhausted { need_bytes: len_bytes, capacity_bytes })
            }
        }
        .inspect(|_| self.counters.carves.add(1))
    }

    /// One carve, or one part of one, came back.
    pub(crate) fn release(&self) {
        self.live.fetch_sub(1, Ordering::Release);
    }

    /// One part more of a carve is out, for as long as it is remembered: a pool or an arena that lost a buffer, once.
    pub(crate) fn share(&self) {
        self.live.fetch_add(1, Ordering::Relaxed);
    }

    /// One part more of a buffer. Bounded, because forgotten parts stay counted, and a count that wraps would free the block
    /// under a device (on 32 bits after 2^32 `split_at`s, which is a minute).
    pub(crate) fn one_more(&self) -> Result<()> {
        /// Far above what anybody holds, and far below where threads that add at once could wrap it.
        const MAX_PARTS: usize = 1 << 20;
        if self.live.load(Ordering::Relaxed) >= MAX_PARTS {
            return Err(Error::TooManyParts { limit: 1 << 20 });
        }
        self.live.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Under `Whole`, does somebody else have bytes of this block?
    pub(crate) fn shared_with_others(&self, extent: Span) -> Option<Error> {
        let carved = self.carved_bytes.load(Ordering::SeqCst);
        (extent.len < carved).then_some(Error::WholeBlock { shared_bytes: carved - extent.len })
    }

    pub(crate) fn sync_for_device(&self, backend: &dyn Backend, what: &Maintenance) -> Result<()> {
        event!("sync for device {}..{}", what.range.start, what.range.end);
        self.counters.syncs.add(1);
        self.counters.bytes_synced_for_device.add(what.range.len());
        // SAFETY: where the device writes, `what` is whole lines of one chunk (`span.rs`), whose only handle is an `Operand` or a
        // `DevBuf`, which have no views; or it is the whole block, before anything was carved from it.
        unsafe { backend.sync_for_device(what.range.clone(), what.direction) }
    }

    pub(crate) fn sync_for_cpu(&self, backend: &dyn Backend, what: &Maintenance) -> Result<()> {
        event!("sync for cpu {}..{}", what.range.start, what.range.end);
        self.counters.syncs.add(1);
        self.counters.bytes_synced_for_cpu.add(what.range.len());
        // SAFETY: as in `sync_for_device`.
        unsafe { backend.sync_for_cpu(what.range.clone(), what.direction) }
    }
}

/// Walks the block's runs: each must begin where the one before it ended. Every run has at least one line, so there are at
/// most `len_bytes / 32` steps.
fn contiguous(backend: &dyn Backend, mapping: &Mapping) -> Result<()> {
    let mut offset_bytes = 0;
    while offset_bytes < mapping.len_bytes {
        let run = backend.segment(offset_bytes)?;
        let expected = mapping.base.raw().wrapping_add(offset_bytes as u64);
        if run.addr != expected || run.len_bytes < Align::MIN.bytes() {
            return Err(Error::NotContiguous { offset_bytes, expected, found: run.addr });
        }
        offset_bytes = offset_bytes.saturating_add(run.len_bytes);
    }
    Ok(())
}

// SAFETY: `State` is numbers and atomics. `Mapping::cpu` is an address, dereferenced only through a buffer, by its borrow
// rules.
unsafe impl Send for State {}
// SAFETY: as for `Send`.
unsafe impl Sync for State {}

impl<B: Backend> Block for Region<B> {
    fn state(&self) -> &State {
        &self.state
    }
    fn backend(&self) -> &dyn Backend {
        &*self.backend
    }
}

impl<B: Backend> Drop for Region<B> {
    /// Frees the block when everything came back, and leaks it otherwise: a device may still write into it.
    fn drop(&mut self) {
        if self.state.live.load(Ordering::Acquire) != 0 {
            event!("leak {} bytes: {} pieces are out", self.len_bytes(), self.state.live.load(Ordering::Relaxed));
            return;
        }
        // SAFETY: 1. `drop` runs once. 2. Every piece borrows the region, and none is alive: `live` counts carves and their
        // buffers from `bump` and `share` to `release`, whatever was forgotten stays counted.
        unsafe { ManuallyDrop::drop(&mut self.backend) }
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
