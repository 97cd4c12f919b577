#![allow(unsafe_code, reason = "the only calls of a backend's syncs, and a pointer that crosses threads as a number")]
//! The part of a region that is the same for every backend: the block's facts, the pieces that are
//! out, and the syncs.

use super::Requirements;
use crate::{
    mem::{
        Backend, Mapping, Port, SyncScope,
        span::{Maintenance, Span},
    },
    trace::{self, Event, Site, stats::Counters},
    types::{
        Align, DevAddr, Direction, Error, Result,
        atomic::{AtomicUsize, Ordering},
    },
};
use core::ptr::NonNull;

/// The part of a region that is the same for every backend.
pub(crate) struct State {
    pub(crate) mapping: Mapping,
    /// No line belongs to two owners: carves, slots and arena blocks are whole lines.
    pub(crate) line: Align,
    /// Everything below is given out. Only grows: carving is a plan, made once. (Under `Whole` it
    /// begins anew once all came back.)
    pub(in crate::mem) carved_bytes: AtomicUsize,
    /// Carves, and buffers made of them, that have not come back.
    pub(super) live: AtomicUsize,
    pub(crate) counters: Counters,
}

impl State {
    /// The cache line of memory whose syncs are such.
    pub(in crate::mem) fn line_of(scope: SyncScope) -> Result<Align> {
        match scope {
            SyncScope::Range { granule_bytes } => Ok(Align::new(granule_bytes)?.max(Align::MIN)),
            SyncScope::Coherent | SyncScope::Whole | SyncScope::None { .. } => Ok(Align::LINE),
        }
    }

    /// Every check that a block must pass, then the first touch.
    pub(in crate::mem) fn checked(backend: &dyn Backend, needs: Requirements, site: Site) -> Result<Self> {
        let mapping = backend.mapping();
        let line = Self::line_of(mapping.scope)?;
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
            state.sync_for_device(backend, &whole, site)?;
            state.sync_for_cpu(backend, &whole, site)?;
        }
        trace::happened(Event::Map { memory: backend.name(), base, len_bytes }, site);
        Ok(state)
    }

    /// Takes the next bytes. `fetch_update` repeats only while other threads carve at the same
    /// time, which set-up code does a bounded number of times: each repetition is another thread's
    /// success.
    pub(super) fn bump(&self, len_bytes: usize, align: Align) -> Result<Span> {
        let align = align.max(self.line);
        let capacity_bytes = self.mapping.len_bytes;
        if len_bytes == 0 {
            return Err(Error::Argument { name: "the length of a carve", value: 0, min: 1, max: capacity_bytes as u64, multiple_of: 1 });
        }
        let phase = self.phase(align)?;
        // Counted before the bytes are taken, so that of two threads under `Whole` at least one
        // sees the other.
        let others = self.live.fetch_add(1, Ordering::SeqCst);
        let carved = self.carved_bytes.load(Ordering::SeqCst);
        if self.mapping.scope == SyncScope::Whole && others > 0 {
            self.release();
            return Err(Error::WholeBlock { shared_bytes: carved });
        }
        if self.mapping.scope == SyncScope::Whole {
            // The only piece: what was carved before has come back, and nobody else gets past the
            // check above.
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

    /// How far the block's first byte is past a multiple of `align`, for the device and for the
    /// CPU.
    pub(in crate::mem) fn phase(&self, align: Align) -> Result<usize> {
        let (base, cpu) = (self.mapping.base.raw(), self.mapping.cpu.as_ptr().addr());
        // Less than `align`, so it fits a `usize`.
        let phase = usize::try_from(base & (align.bytes() as u64 - 1)).unwrap_or(0);
        if phase != cpu & (align.bytes() - 1) {
            return Err(Error::Misaligned { addr: cpu as u64, align_bytes: align.bytes() });
        }
        Ok(phase)
    }

    /// The bus address through `port` of `len_bytes` bytes at `ptr`.
    #[inline]
    pub(in crate::mem) fn dev_addr_of(&self, port: &Port, ptr: *const u8, len_bytes: usize) -> Result<DevAddr> {
        let mapping = &self.mapping;
        let offset = ptr.addr().wrapping_sub(mapping.cpu.as_ptr().addr());
        if offset >= mapping.len_bytes || len_bytes > mapping.len_bytes - offset {
            return Err(Error::NotOurs { addr: ptr.addr() as u64, len_bytes });
        }
        if port.bus != mapping.bus {
            return Err(Error::WrongBus { port: port.name, memory: mapping.bus });
        }
        port.dev_addr(mapping.base.plus(offset), len_bytes)
    }

    /// Where the CPU finds the byte at bus address `addr` of `port`.
    #[inline]
    pub(in crate::mem) fn host_ptr_of(&self, port: &Port, addr: DevAddr) -> Result<NonNull<u8>> {
        let mapping = &self.mapping;
        if port.bus != mapping.bus {
            return Err(Error::WrongBus { port: port.name, memory: mapping.bus });
        }
        match port.offset_in(mapping.base, addr).and_then(|offset| usize::try_from(offset).ok()) {
            // SAFETY: `offset` is below the mapping's length, so the sum stays inside the mapping.
            Some(offset) if offset < mapping.len_bytes => Ok(unsafe { mapping.cpu.add(offset) }),
            _ => Err(Error::NotOurs { addr: addr.0, len_bytes: 1 }),
        }
    }

    /// One carve, or one part of one, came back.
    pub(crate) fn release(&self) {
        self.live.fetch_sub(1, Ordering::Release);
    }

    /// One part more of a carve is out, for as long as it is remembered: a pool or an arena that
    /// lost a buffer, once.
    pub(crate) fn share(&self) {
        self.live.fetch_add(1, Ordering::Relaxed);
    }

    /// One part more of a buffer. Bounded, because forgotten parts stay counted, and a count that
    /// wraps would free the block under a device (on 32 bits after 2^32 `split_at`s, which is a
    /// minute).
    pub(crate) fn one_more(&self) -> Result<()> {
        /// Far above what anybody holds, and far below where threads that add at once could wrap
        /// it.
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

    pub(crate) fn sync_for_device(&self, backend: &dyn Backend, what: &Maintenance, site: Site) -> Result<()> {
        let event = Event::SyncForDevice { offset_bytes: what.range.start, len_bytes: what.range.len() };
        trace::begins(event, site);
        self.counters.syncs.add(1);
        self.counters.bytes_synced_for_device.add(what.range.len());
        // SAFETY: where the device writes, `what` is whole lines of one chunk (`span.rs`). The only
        // handle of that chunk is an `Operand` or a `DevBuf`, which have no views. Or `what` is the
        // whole block, before anything was carved from it.
        let done = unsafe { backend.sync_for_device(what.range.clone(), what.direction) };
        trace::happened(event, site);
        done
    }

    pub(crate) fn sync_for_cpu(&self, backend: &dyn Backend, what: &Maintenance, site: Site) -> Result<()> {
        let event = Event::SyncForCpu { offset_bytes: what.range.start, len_bytes: what.range.len() };
        trace::begins(event, site);
        self.counters.syncs.add(1);
        self.counters.bytes_synced_for_cpu.add(what.range.len());
        // SAFETY: as in `sync_for_device`.
        let done = unsafe { backend.sync_for_cpu(what.range.clone(), what.direction) };
        trace::happened(event, site);
        done
    }
}

/// Walks the block's runs: each must begin where the one before it ended. Every run has at least
/// one line, so there are at most `len_bytes / 32` steps.
pub(crate) fn contiguous(backend: &dyn Backend, mapping: &Mapping) -> Result<()> {
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

// SAFETY: `State` is numbers and atomics. `Mapping::cpu` is an address, dereferenced only through a
// buffer, by its borrow rules.
unsafe impl Send for State {}
// SAFETY: as for `Send`.
unsafe impl Sync for State {}
