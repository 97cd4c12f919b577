#![allow(unsafe_code, reason = "a pool's slots borrow from its heap for as long as its lease says")]
//! A pool whose number of slots is known at run time only: the runtime's `Pool` has it in its type, which C cannot name.
//!
//! A pool here is one carve that was split into equal buffers when it was opened. Each of them is parked in the table of buffers, and a
//! bitmap says which are there. So a pool has exactly the slots that were asked for and no byte is wasted; a claim is one atomic operation
//! on the bitmap and one on the entry; and every buffer is one of the runtime's, made by `CpuBuf::split_at`.

use super::{
    bitmap::Bitmap,
    buf::{BUFS, Buf},
    heap::{HEAPS, Heap, carve},
};
use crate::{
    fault::{Fault, Misuse},
    handle::Kind,
    limits,
    table::{Claimed, Lease, Object, Table},
};
use contigo::{Align, CpuBuf, Error};

/// Pools.
pub(crate) static POOLS: Table<Pool, { limits::POOLS }> = Table::new();

impl Object for Pool {
    const KIND: Kind = Kind::Pool;
}

/// Equal slots over one carve.
pub(crate) struct Pool {
    free: Bitmap,
    /// Where each slot is parked in the table of buffers.
    entries: [u16; limits::POOL_SLOTS],
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
        let mut pool = Self { free: Bitmap::new(0), entries: [0; limits::POOL_SLOTS], slots: 0, slot_bytes, _heap: heap };
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
            if let (Some(entry), Ok(index)) = (self.entries.get_mut(slot), u16::try_from(index)) {
                *entry = index;
            }
            self.slots = slot + 1;
        }
        Ok(())
    }

    /// Drops all slots. None is out.
    fn unpark_all(&self) {
        for &index in self.entries.iter().take(self.slots) {
            if let Some(mut guard) = BUFS.slot(index.into()).and_then(|slot| slot.unpark()) {
                guard.clear();
            }
        }
    }

    /// A free slot, as a buffer with a handle.
    pub(crate) fn take(raw: u64) -> Result<u64, Fault> {
        let pool = POOLS.lease(raw)?;
        let empty = Error::NoSlots { slots: pool.slots };
        let slot = pool.free.claim().ok_or(empty)?;
        let index = usize::from(pool.entries.get(slot).copied().unwrap_or(0));
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
