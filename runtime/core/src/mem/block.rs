#![allow(
    unsafe_code,
    reason = "the only calls of a backend's syncs, and a pointer that crosses threads as a number"
)]
//! The block behind a region: its facts, whatever the backend, and the syncs.

use crate::mem::SyncRange;
use crate::mem::span::Span;
use crate::mem::{Backend, Mapping, Port, SyncScope};
use crate::trace::stats::Counters;
use crate::trace::{self, Event, Site};
use crate::types::atomic::{AtomicUsize, Ordering};
use crate::types::{Align, DevAddr, Direction, Error, Result};
use core::ptr::NonNull;

/// The requirements on a block, for [`Region::with`](crate::Region::with).
///
/// ```
/// use contigo::{Align, mem::Requirements};
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

/// A block of any backend, for the handles that hold its bytes.
pub(crate) trait Block: Sync {
    fn state(&self) -> &State;
    fn backend(&self) -> &dyn Backend;
}

/// The part of a region that is the same for every backend.
pub(crate) struct State {
    pub(crate) mapping: Mapping,
    /// No line belongs to two owners: buffers, pools and slots are whole lines.
    pub(crate) line: Align,
    /// How many bytes buffers and pools hold.
    pub(in crate::mem) taken_bytes: AtomicUsize,
    pub(crate) counters: Counters,
}

impl State {
    /// The cache line of memory that has this sync scope.
    pub(in crate::mem) fn line_of(scope: SyncScope) -> Result<Align> {
        match scope {
            SyncScope::Range { granule_bytes } => Ok(Align::new(granule_bytes)?.max(Align::MIN)),
            SyncScope::Coherent | SyncScope::Whole | SyncScope::None { .. } => Ok(Align::LINE),
        }
    }

    /// Every check that a block must pass, then the first touch.
    pub(in crate::mem) fn checked(
        backend: &dyn Backend,
        needs: Requirements,
        site: Site,
    ) -> Result<Self> {
        let mapping = backend.mapping();
        let line = Self::line_of(mapping.scope)?;
        let Mapping { len_bytes, base, .. } = mapping;
        if len_bytes < needs.len_bytes.max(1) || !line.divides(len_bytes as u64) {
            return Err(Error::BlockSize {
                len_bytes,
                need_bytes: needs.len_bytes.max(1),
                line_bytes: line.bytes(),
            });
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
            _ => {
                return Err(Error::TooHigh {
                    last: last.unwrap_or(u64::MAX),
                    addr_bits: needs.addr_bits,
                });
            }
        }
        let state =
            Self { mapping, line, taken_bytes: AtomicUsize::new(0), counters: Counters::default() };
        if matches!(mapping.scope, SyncScope::Range { .. } | SyncScope::Whole) {
            let whole = [SyncRange { range: 0..len_bytes, direction: Direction::Bidirectional }];
            state.sync_for_device(backend, &whole, site)?;
            state.sync_for_cpu(backend, &whole, site)?;
        }
        trace::happened(Event::Map { memory: backend.name(), base, len_bytes }, site);
        Ok(state)
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
    pub(in crate::mem) fn dev_addr_of(
        &self,
        port: &Port,
        ptr: *const u8,
        len_bytes: usize,
    ) -> Result<DevAddr> {
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

    /// Under `Whole`, the error if bytes of this block outside `extent` are taken.
    pub(crate) fn shared_with_others(&self, extent: Span) -> Option<Error> {
        let taken = self.taken_bytes.load(Ordering::SeqCst);
        (extent.len < taken).then_some(Error::WholeBlock { shared_bytes: taken - extent.len })
    }

    pub(crate) fn sync_for_device(
        &self,
        backend: &dyn Backend,
        ranges: &[SyncRange],
        site: Site,
    ) -> Result<()> {
        let event = |range: &SyncRange| Event::SyncForDevice {
            offset_bytes: range.range.start,
            len_bytes: range.range.len(),
        };
        for range in ranges {
            trace::begins(event(range), site);
            self.counters.bytes_synced_for_device.add(range.range.len());
        }
        self.counters.syncs.add(1);
        // SAFETY: if the device writes, each range is whole lines of one chunk (`span.rs`). The
        // only handle of that chunk is an `Operand` or a `DevBuf`, which have no views. Or it is
        // the whole block, before any buffer of it was given out.
        let done = unsafe { backend.sync_all_for_device(ranges) };
        ranges.iter().for_each(|range| trace::happened(event(range), site));
        done
    }

    pub(crate) fn sync_for_cpu(
        &self,
        backend: &dyn Backend,
        ranges: &[SyncRange],
        site: Site,
    ) -> Result<()> {
        let event = |range: &SyncRange| Event::SyncForCpu {
            offset_bytes: range.range.start,
            len_bytes: range.range.len(),
        };
        for range in ranges {
            trace::begins(event(range), site);
            self.counters.bytes_synced_for_cpu.add(range.range.len());
        }
        self.counters.syncs.add(1);
        // SAFETY: as in `sync_for_device`.
        let done = unsafe { backend.sync_all_for_cpu(ranges) };
        ranges.iter().for_each(|range| trace::happened(event(range), site));
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
