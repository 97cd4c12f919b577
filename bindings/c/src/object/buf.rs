#![allow(
    unsafe_code,
    reason = "a hand-over to a device is the C program's promise; the entry of a pool's slot is \
              filled by the call that takes the slot, and freed with the pool"
)]
//! Buffers: what each is of, and where it goes when it is released. Pools: the runtime's, with a
//! handle for each slot that is out.
//!
//! Each slot has its own entry in the table of buffers from the beginning, so that no take finds
//! the table full. The call that takes the slot fills the entry.

use super::region::{REGIONS, Region};
use crate::fault::{Fault, Misuse};
use crate::handles::{
    CONTIGO_MAX_BUFS, CONTIGO_MAX_POOL_SLOTS, CONTIGO_MAX_POOLS, CONTIGO_MAX_TENSORS,
};
use contigo::dlpack::TensorTable;
use contigo::{Align, CpuBuf, Direction, Error, Port};
use contigo_objects::{Access, Buffer, Claimed, Handle, Kind, Lease, Refusal, Slot, Table, Views};
use core::mem;

/// As many slots as a pool has at most.
const SLOTS: usize = CONTIGO_MAX_POOL_SLOTS as usize;

/// The tensors that frameworks have.
pub(crate) static TENSORS: TensorTable<{ CONTIGO_MAX_TENSORS as usize }> = TensorTable::new();

/// Buffers. The pools' free slots have entries too, which are kept for them.
pub(crate) static BUFS: Table<Buf, { Kind::Buf as u8 }, { CONTIGO_MAX_BUFS as usize }> =
    Table::new();

/// One buffer: who has it, its views, and what it is of.
pub(crate) struct Buf {
    pub(crate) state: Buffer,
    pub(crate) views: Views,
    origin: Origin,
}

/// What a buffer is of, and is not closed while the buffer is there.
enum Origin {
    /// A slot, or a part of one. Is it in the slot's own entry?
    Slot {
        pool: Lease<Pool>,
        has_entry: bool,
    },
    Region(Lease<Region>),
}

impl Origin {
    /// That of a part that is cut off.
    fn of_rest(&self) -> Result<Self, Refusal> {
        Ok(match self {
            Self::Slot { pool, .. } => {
                Self::Slot { pool: pool.again(Kind::Pool)?, has_entry: false }
            }
            Self::Region(region) => Self::Region(region.again(Kind::Region)?),
        })
    }
}

impl Buf {
    const fn new(buf: CpuBuf, origin: Origin) -> Self {
        Self { state: Buffer::new(buf), views: Views::new(), origin }
    }

    /// Allocates one buffer.
    pub(crate) fn carve(region: u64, len_bytes: usize, align: Align) -> Result<u64, Fault> {
        let region = REGIONS.lease(region)?;
        let claimed = BUFS.claim()?;
        let buf = region.memory().alloc(len_bytes, align)?;
        Ok(claimed.put(Self::new(buf, Origin::Region(region))))
    }

    /// Gives the buffer back to its pool, or for good. Refused while it is mapped or a device's.
    #[inline]
    pub(crate) fn release(raw: u64) -> Result<(), Fault> {
        let mut locked = BUFS.lock(raw)?;
        let Some(Self { state, views, origin }) = locked.value() else {
            return Err(Refusal::Stale { kind: Kind::Buf }.into());
        };
        state.is_idle(views)?;
        let has_entry = matches!(origin, Origin::Slot { has_entry: true, .. });
        // Dropped after that: the call that takes the slot next finds its entry kept. The pool may
        // be closed at once.
        drop(if has_entry { locked.keep() } else { locked.take() });
        Ok(())
    }

    /// Cuts a buffer at byte `at_bytes`: it keeps what is before, and what is behind gets the
    /// handle that is returned. Where it is refused, the buffer is as it was.
    pub(crate) fn split(raw: u64, at_bytes: usize) -> Result<u64, Fault> {
        BUFS.with(raw, |Self { state, views, origin }| {
            // Before anything is cut: a full table leaves the buffer as it is.
            let rest = BUFS.claim()?;
            let origin = origin.of_rest()?;
            Ok(rest.put(Self::new(state.split(views, at_bytes)?, origin)))
        })
    }

    /// The CPU's address of the buffer, for as long as `unmap` is not called.
    pub(crate) fn map(&mut self, access: Access) -> Result<(*mut u8, usize), Fault> {
        self.state.open_view(&self.views, access)?;
        let shown = match access {
            // Readers may be many, so the pointer comes from a shared borrow; nothing is written
            // through it (contigo.h).
            Access::Read => {
                self.state.cpu()?.view::<u8>().map(|bytes| (bytes.as_ptr().cast_mut(), bytes.len()))
            }
            Access::Write => self
                .state
                .cpu_mut()?
                .view_mut::<u8>()
                .map(|bytes| (bytes.as_mut_ptr(), bytes.len())),
        };
        shown.map_err(|error| self.views.close().map_or_else(Fault::from, |_| error.into()))
    }

    /// Do `len_bytes` bytes fit, and is none of those at `addr` one of the buffer's?
    pub(crate) fn may_take(&self, addr: usize, len_bytes: usize) -> Result<(), Fault> {
        self.state.is_idle(&self.views)?;
        let shown = self.state.cpu()?.view::<u8>()?;
        if len_bytes > shown.len() {
            return Err(
                Error::OutOfRange { start: 0, end: len_bytes, len_bytes: shown.len() }.into()
            );
        }
        let shown = shown.as_ptr_range();
        let apart =
            addr >= shown.end.addr() || addr.saturating_add(len_bytes) <= shown.start.addr();
        if apart { Ok(()) } else { Err(Misuse::Overlap.into()) }
    }

    /// Makes a part of it a device's, and says where the device finds it.
    ///
    /// # Safety
    /// As `Buffer::give`.
    pub(crate) unsafe fn hand_to_device(
        &mut self,
        port: &Port,
        offset_bytes: usize,
        len_bytes: usize,
        direction: Direction,
    ) -> Result<u64, Fault> {
        // A sum past the end of all memory is past the end of the buffer, which is checked.
        let range = offset_bytes..offset_bytes.saturating_add(len_bytes);
        // SAFETY: the caller's promise.
        Ok(unsafe { self.state.give(&self.views, port, range, direction)? }.slice().addr.0)
    }
}

/// Pools.
pub(crate) static POOLS: Table<Pool, { Kind::Pool as u8 }, { CONTIGO_MAX_POOLS as usize }> =
    Table::new();

/// Equal slots of a region. Every buffer of it has a lease on it.
pub(crate) struct Pool {
    pool: contigo::Pool,
    entries: Entries,
    /// A region with pools is not closed.
    _region: Lease<Region>,
}

/// The slots' entries in the table of buffers. Each is kept while its slot is not out.
struct Entries {
    indices: [u16; SLOTS],
    count: usize,
}

impl Entries {
    /// Keeps so many entries: or none, where there are not enough.
    fn keep(count: usize) -> Result<Self, Refusal> {
        const { assert!(CONTIGO_MAX_BUFS <= 1 << u16::BITS, "an entry's number fits 16 bits") };
        let mut entries = Self { indices: [0; SLOTS], count: 0 };
        let mut next = 0;
        for entry in entries.indices.iter_mut().take(count) {
            let Claimed { index, locked, .. } = BUFS.claim_from(next)?;
            drop(locked.keep());
            next = index + 1;
            *entry = u16::try_from(index).unwrap_or_default();
            entries.count += 1;
        }
        Ok(entries)
    }
}

impl Drop for Entries {
    /// Frees them. Every one is kept: no slot is out.
    fn drop(&mut self) {
        for entry in
            self.indices.iter().take(self.count).filter_map(|&index| BUFS.slot(index.into()))
        {
            // SAFETY: `keep` kept it. No buffer of the pool is there, which would have a lease on
            // the pool, nor can one be taken; what the last of each slot did happened before its
            // lease ended, and so before this.
            unsafe { entry.free_kept() }
        }
    }
}

impl Pool {
    /// Allocates a pool.
    pub(crate) fn open(
        region: u64,
        slot_bytes: usize,
        slots: usize,
        align: Align,
    ) -> Result<u64, Fault> {
        if !(1..=SLOTS).contains(&slots) {
            return Err(Fault::range("slots", slots as u64, 1, SLOTS as u64));
        }
        let region = REGIONS.lease(region)?;
        let line = region.memory().line();
        if slot_bytes == 0 || !line.divides(slot_bytes as u64) {
            return Err(Error::SlotSize { slot_bytes, line_bytes: line.bytes() }.into());
        }
        let claimed = POOLS.claim()?;
        let entries = Entries::keep(slots)?;
        let pool = region.memory().pool_aligned(slots, slot_bytes, align)?;
        Ok(claimed.put(Self { pool, entries, _region: region }))
    }

    /// A free slot, as a buffer with a handle.
    #[inline]
    pub(crate) fn take(raw: u64) -> Result<u64, Fault> {
        let pool = POOLS.lease(raw)?;
        let buf = pool.pool.take()?;
        let none = Error::NoSlots { slots: pool.pool.slots() };
        let (index, entry) = pool.entry(&buf).ok_or(none)?;
        // SAFETY: this call has the slot whose entry it is. Until the slot was taken the entry was
        // kept: by `Entries::keep`, or by `Buf::release`, which then gave the slot back.
        match unsafe { entry.fill(Buf::new(buf, Origin::Slot { pool, has_entry: true })) } {
            Ok(generation) => Ok(Handle { index, generation }.raw(Kind::Buf)),
            Err(buf) => {
                // The entry is used up, and the slot stays taken with it.
                mem::forget(buf);
                Err(none.into())
            }
        }
    }

    /// The entry of the slot that `buf` is.
    fn entry(&self, buf: &CpuBuf) -> Option<(usize, &'static Slot<Buf>)> {
        // The slots follow each other, so that these are as many numbers in a row: no two have the
        // same remainder.
        let number = buf.offset_bytes().checked_div(self.pool.slot_bytes())?;
        let index = (*self.entries.indices.get(number.checked_rem(self.pool.slots())?)?).into();
        Some((index, BUFS.slot(index)?))
    }

    /// How many slots are free.
    pub(crate) fn free(raw: u64) -> Result<usize, Fault> {
        let pool = POOLS.lease(raw)?;
        Ok(pool.pool.slots() - pool.pool.taken())
    }
}
