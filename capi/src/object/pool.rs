#![allow(unsafe_code, reason = "a pool's slots borrow from its heap for as long as its lease says")]
//! A pool whose number of slots is known at run time only: the runtime's `Pool` has it in its type, which C cannot name.
//!
//! A pool here is one carve that was split into equal buffers when it was opened. Each of them is parked in the table of buffers, and a
//! bitmap says which are there. So a pool has exactly the slots that were asked for and no byte is wasted; a claim is one atomic operation
//! on the bitmap and one on the entry; and every buffer is one of the runtime's, made by `CpuBuf::split_at`.

use super::{
    bitmap::Bitmap,
    buf::{BUFS, Buf, Whole},
    heap::{HEAPS, Heap, carve},
};
use crate::{
    fault::{Fault, Misuse},
    handle::Kind,
    limits,
    table::{Claimed, Lease, Object, Table},
};
use contigo::{Align, CpuBuf, Error};
use core::sync::atomic::{AtomicU16, Ordering};

/// Pools.
pub(crate) static POOLS: Table<Pool, { limits::POOLS }> = Table::new();

impl Object for Pool {
    const KIND: Kind = Kind::Pool;
}

/// Equal slots over one carve.
pub(crate) struct Pool {
    free: Bitmap,
    /// Where each slot is parked in the table of buffers. Changed by whoever has the slot.
    entries: [AtomicU16; limits::POOL_SLOTS],
    /// How many parts of each slot are out, where it was cut; 0 where it was not.
    parts: [AtomicU16; limits::POOL_SLOTS],
    slots: usize,
    slot_bytes: usize,
    /// INVARIANT: every parked buffer borrows from it.
    _heap: Lease<Heap>,
}

impl Pool {
    /// Carves a pool, and parks its slots.
    pub(crate) fn open(heap: u64, slot_bytes: usize, slots: usize, align: Align) -> Result<u64, Fault> {
        if slots == 0 || slots > limits::POOL_SLOTS {
            let (value, max) = (slots as u64, limits::POOL_SLOTS as u64);
            return Err(Error::Argument { name: "slots", value, min: 1, max, multiple_of: 1 }.into());
        }
        let heap = HEAPS.lease(heap)?;
        let line = heap.region().line();
        if slot_bytes == 0 || !line.divides(slot_bytes as u64) {
            return Err(Error::SlotSize { slot_bytes, line_bytes: line.bytes() }.into());
        }
        let too_large = Error::Exhausted { need_bytes: usize::MAX, capacity_bytes: heap.region().len_bytes() };
        let len_bytes = slot_bytes.checked_mul(slots).ok_or(too_large)?;
        let mut claimed = POOLS.claim()?;
        // Before anything is carved, which stays carved.
        Self::has_room(slots)?;
        // SAFETY: the slots are parked; `close` drops them before the pool, and the pool's lease comes last. What is out has a lease on the
        // pool. Where the parking fails, all of them are dropped before this function's lease.
        let mut rest = Some(unsafe { carve(&heap, len_bytes, align)? }.into_buf());
        let (entries, parts) = ([const { AtomicU16::new(0) }; limits::POOL_SLOTS], [const { AtomicU16::new(0) }; limits::POOL_SLOTS]);
        let mut pool = Self { free: Bitmap::new(0), entries, parts, slots: 0, slot_bytes, _heap: heap };
        let parked = pool.park_all(&mut rest, slots);
        drop(rest);
        if let Err(fault) = parked {
            pool.unpark_all();
            return Err(fault);
        }
        pool.free = Bitmap::new(slots);
        let raw = claimed.raw();
        claimed.guard.put(pool);
        Ok(raw)
    }

    /// Are there so many free entries? Others may take them meanwhile, which is found out later.
    fn has_room(slots: usize) -> Result<(), Fault> {
        if BUFS.free() < slots { Err(Misuse::TableFull { kind: Kind::Buf, entries: limits::BUFS }.into()) } else { Ok(()) }
    }

    fn park_all(&mut self, rest: &mut Option<CpuBuf<'static>>, slots: usize) -> Result<(), Fault> {
        let mut next = 0;
        for slot in 0..slots {
            let Claimed { index, mut guard } = BUFS.claim_from(next)?;
            next = index + 1;
            let Some(buf) = rest.take() else { break };
            let one = if slot + 1 == slots {
                buf
            } else {
                let (one, others) = buf.split_at(self.slot_bytes)?;
                *rest = Some(others);
                one
            };
            guard.put(Buf::parked(one));
            guard.park();
            self.park_at(slot, index);
            self.slots = slot + 1;
        }
        Ok(())
    }

    /// Slot `slot` is parked in entry `index` of the table of buffers.
    fn park_at(&self, slot: usize, index: usize) {
        const { assert!(limits::BUFS <= u16::MAX as usize, "an entry's number, and a count of entries, fit 16 bits") };
        if let (Some(entry), Ok(index)) = (self.entries.get(slot), u16::try_from(index)) {
            // Relaxed: the next owner of the slot sees it by the bit (`Bitmap`).
            entry.store(index, Ordering::Relaxed);
        }
    }

    /// Where slot `slot` is parked.
    fn parked_at(&self, slot: usize) -> usize {
        self.entries.get(slot).map_or(0, |entry| entry.load(Ordering::Relaxed).into())
    }

    /// Slot `slot` was cut in two: it is parked in `parking` as it was, and its bit stays taken. The slot's own entry is its first part's.
    pub(super) fn keep_whole(&self, slot: usize, parking: Claimed<Buf>, whole: Whole) {
        let Claimed { index, mut guard } = parking;
        guard.put(whole.parked());
        guard.park();
        self.park_at(slot, index);
        if let Some(parts) = self.parts.get(slot) {
            // Relaxed: whoever has a part has it from this call, or from one after it.
            parts.store(2, Ordering::Relaxed);
        }
    }

    /// A part of slot `slot` was cut in two: at most as many as the table has entries.
    pub(super) fn one_part_more(&self, slot: usize) {
        if let Some(parts) = self.parts.get(slot) {
            // Relaxed: the caller has a part, so that none of the others is the last.
            parts.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A part of slot `slot` is released: was it the last?
    pub(super) fn part_gone(&self, slot: usize) -> bool {
        // AcqRel: what was done to the other parts is done before the slot is free.
        self.parts.get(slot).is_some_and(|parts| parts.fetch_sub(1, Ordering::AcqRel) == 1)
    }

    /// Drops all slots. None is out.
    fn unpark_all(&self) {
        for slot in 0..self.slots {
            if let Some(mut guard) = BUFS.slot(self.parked_at(slot)).and_then(|entry| entry.unpark()) {
                guard.clear();
            }
        }
    }

    /// A free slot, as a buffer with a handle.
    pub(crate) fn take(raw: u64) -> Result<u64, Fault> {
        let pool = POOLS.lease(raw)?;
        let empty = Error::NoSlots { slots: pool.slots };
        let slot = pool.free.claim().ok_or(empty)?;
        let index = pool.parked_at(slot);
        // The bit is this call's, so the entry is parked and nobody else takes it.
        let guard = BUFS.slot(index).and_then(|entry| entry.unpark()).ok_or(empty)?;
        let mut claimed = Claimed { index, guard };
        let raw = claimed.raw();
        if let Some(buf) = claimed.guard.value() {
            buf.leaves(pool, slot);
        }
        Ok(raw)
    }

    /// The slot's buffer is parked again.
    pub(crate) fn give_back(&self, slot: usize) {
        self.free.release(slot);
    }

    pub(crate) fn free(&self) -> usize {
        self.free.free()
    }

    /// Gives the slots back to the heap. Refused while one is out.
    pub(crate) fn close(raw: u64) -> Result<(), Fault> {
        let mut guard = POOLS.lock(raw)?;
        if let Some(pool) = guard.value() {
            pool.unpark_all();
        }
        guard.clear();
        Ok(())
    }
}
