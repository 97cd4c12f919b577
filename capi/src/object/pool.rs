#![allow(unsafe_code, reason = "a pool borrows from its region for as long as its lease says, and its slots keep it")]
//! Pools: the runtime's, with a handle for each slot that is out.
//!
//! A take or a release counts nothing at the pool beside the slot's bit, because the bit keeps the
//! pool: `close` takes them all first. The bits are in statics, so a call that comes too late for
//! its pool finds none there, or one of another pool, which it gives back. Each slot has its own
//! entry in the table of buffers from the beginning, and the call that has the bit fills it.

use super::{
    buf::{BUFS, Buf},
    region::{REGIONS, Region, carve},
};
use crate::{
    fault::{Fault, Misuse},
    handle::{Handle, Kind},
    limits,
    table::{Claimed, Lease, Object, Table},
};
use contigo::{Align, Error, RawPool, RawSlots};
use core::mem;

/// Pools.
static POOLS: Table<Pool, { limits::POOLS }> = Table::new();

/// Who has which slot of the pool of the same number.
static SLOTS: [Slots; limits::POOLS] = [const { Slots::closed() }; limits::POOLS];

type Slots = RawSlots<{ limits::POOL_SLOTS }>;

impl Object for Pool {
    const KIND: Kind = Kind::Pool;
}

/// Equal slots over one carve. Dropped in this order.
pub(crate) struct Pool {
    pool: RawPool<'static, { limits::POOL_SLOTS }>,
    entries: Entries,
    /// INVARIANT: `pool` borrows from it.
    _region: Lease<Region>,
}

/// The slots' entries in the table of buffers. Each is kept while its slot is not out.
struct Entries {
    indices: [u16; limits::POOL_SLOTS],
    count: usize,
}

/// The slot, or the part of one, that a buffer is.
#[derive(Clone, Copy)]
pub(super) struct PoolSlot {
    slots: &'static Slots,
    slot: u32,
    /// Is it in the slot's own entry?
    pub(super) has_entry: bool,
}

impl PoolSlot {
    /// The slot of the part that is cut off.
    pub(super) const fn of_rest(self) -> Self {
        Self { has_entry: false, ..self }
    }

    /// A handle of the slot is gone. After the last one the slot is free, and its pool may be
    /// closed.
    ///
    /// # Safety
    /// The buffer in this slot was forgotten, and its entry is kept, or another's.
    pub(super) unsafe fn gone(self) {
        // SAFETY: the caller's promise.
        unsafe { self.slots.gone(self.slot) }
    }
}

impl Entries {
    /// Keeps so many entries: or none, where there are not enough.
    fn keep(count: usize) -> Result<Self, Misuse> {
        const { assert!(limits::BUFS <= 1 << u16::BITS, "an entry's number fits 16 bits") };
        let mut entries = Self { indices: [0; limits::POOL_SLOTS], count: 0 };
        let mut next = 0;
        for entry in entries.indices.iter_mut().take(count) {
            let Claimed { index, locked } = match BUFS.claim_from(next) {
                Ok(claimed) => claimed,
                Err(full) => {
                    entries.free();
                    return Err(full);
                }
            };
            locked.keep();
            next = index + 1;
            *entry = u16::try_from(index).unwrap_or_default();
            entries.count += 1;
        }
        Ok(entries)
    }

    /// Frees them. Every one is kept: no slot is out.
    fn free(&self) {
        for entry in self.indices.iter().take(self.count).filter_map(|&index| BUFS.slot(index.into())) {
            // SAFETY: this pool kept it, and none of its slots is out, nor can one be taken.
            unsafe { entry.free_kept() }
        }
    }
}

impl Pool {
    /// Carves a pool.
    pub(crate) fn open(region: u64, slot_bytes: usize, slots: usize, align: Align) -> Result<u64, Fault> {
        if slots == 0 || slots > limits::POOL_SLOTS {
            let (value, max) = (slots as u64, limits::POOL_SLOTS as u64);
            return Err(Error::Argument { name: "slots", value, min: 1, max, multiple_of: 1 }.into());
        }
        let region = REGIONS.lease(region)?;
        // All that can be refused is, before anything is carved, which stays carved.
        let line = region.memory().line();
        if slot_bytes == 0 || !line.divides(slot_bytes as u64) {
            return Err(Error::SlotSize { slot_bytes, line_bytes: line.bytes() }.into());
        }
        let too_large = Error::Exhausted { need_bytes: usize::MAX, capacity_bytes: region.memory().len_bytes() };
        let len_bytes = slot_bytes.checked_mul(slots).ok_or(too_large)?;
        let mut claimed = POOLS.claim()?;
        let full = Misuse::TableFull { kind: Kind::Pool, entries: limits::POOLS };
        let state = SLOTS.get(claimed.index).ok_or(full)?;
        let entries = Entries::keep(slots)?;
        // SAFETY: the pool is beside the lease, before it. Its slots are closed before it goes
        // away, and every buffer of it has a slot. A free entry's slots are closed, and this call
        // has the entry.
        let pool = unsafe { carve(&region, len_bytes, align).and_then(|carve| Ok(RawPool::new(carve, slot_bytes, slots, state)?)) };
        let pool = pool.inspect_err(|_| entries.free())?;
        let raw = claimed.raw();
        claimed.locked.put(Self { pool, entries, _region: region });
        drop(claimed);
        // SAFETY: closed until here, and `pool` is over them. Last, so that whoever has a bit finds
        // a live pool.
        unsafe { state.open(slots) };
        Ok(raw)
    }

    /// A free slot, as a buffer with a handle.
    #[inline]
    pub(crate) fn take(raw: u64) -> Result<u64, Fault> {
        let (Handle { index, generation }, pool) = POOLS.find(raw)?;
        let slots = SLOTS.get(index).ok_or(Misuse::Stale { kind: Kind::Pool })?;
        // A handle of a pool that was closed takes nothing from the next one, except where both
        // come at the same moment.
        pool.look(Kind::Pool, generation)?;
        let Some(slot) = slots.claim() else { return Err(Error::NoSlots { slots: POOLS.lease(raw)?.pool.slots() }.into()) };
        #[allow(clippy::cast_possible_truncation, reason = "below POOL_SLOTS")]
        let place = PoolSlot { slots, slot: slot as u32, has_entry: true };
        // SAFETY: `close` drops a pool, or borrows it alone, only after it has every slot, and this
        // call has one. The slot's bit was set when this pool was already live, or one after it,
        // which the generation tells.
        let pool = match unsafe { pool.peek(Kind::Pool, generation) } {
            Ok(pool) => pool,
            Err(stale) => {
                // SAFETY: the slot is this call's, and no buffer was made.
                unsafe { place.gone() };
                return Err(stale.into());
            }
        };
        let index = pool.entries.indices.get(slot).map_or(0, |&index| index.into());
        // SAFETY: the slot is this call's, which makes one buffer of it.
        let buf = unsafe { pool.pool.buf(slot) };
        // SAFETY: `release` keeps the entry before it gives the bit, which this call has, and which
        // is acquired.
        match BUFS.slot(index).map(|entry| unsafe { entry.fill(Buf::of_pool(buf, place)) }) {
            Some(Ok(generation)) => Ok(Handle { index, generation }.raw(Kind::Buf)),
            // The entry is used up, and the slot stays taken with it.
            used_up => {
                mem::forget(used_up);
                Err(Error::NoSlots { slots: pool.pool.slots() }.into())
            }
        }
    }

    /// How many slots are free.
    pub(crate) fn free(raw: u64) -> Result<usize, Fault> {
        let (handle, _) = POOLS.find(raw)?;
        let _pool = POOLS.lease(raw)?;
        Ok(SLOTS.get(handle.index).map_or(0, Slots::free))
    }

    /// Gives the slots back to the region. Refused while one is out.
    pub(crate) fn close(raw: u64) -> Result<(), Fault> {
        let (handle, _) = POOLS.find(raw)?;
        let stale = Misuse::Stale { kind: Kind::Pool };
        let slots = SLOTS.get(handle.index).ok_or(stale)?;
        let refuse = |count| match slots.handles(count) as u64 {
            0 => Ok(()),
            users => Err(Misuse::StillUsed { kind: Kind::Pool, users }),
        };
        // First beside others, so that a close that is refused disturbs nobody who takes.
        let count = POOLS.lease(raw)?.pool.slots();
        refuse(count)?;
        let mut locked = POOLS.lock(raw)?;
        // SAFETY: as many as `open` opened.
        if !unsafe { slots.close(count) } {
            refuse(count)?;
            return Err(Misuse::InCall { kind: Kind::Pool }.into());
        }
        // From here on nobody has a slot, nor gets one.
        locked.shared().ok_or(stale)?.entries.free();
        locked.clear();
        Ok(())
    }
}
