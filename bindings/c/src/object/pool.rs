#![allow(
    unsafe_code,
    reason = "the entry of a pool's slot is filled by the call that takes the slot, and freed with the pool"
)]
//! Pools: the runtime's, with a handle for each slot that is out.
//!
//! Each slot has its own entry in the table of buffers from the beginning, so that no take finds
//! the table full. The call that takes the slot fills the entry.

use super::{
    buf::{BUFS, Buf, Origin},
    region::{REGIONS, Region},
};
use crate::{fault::Fault, limits};
use contigo::{Align, CpuBuf, Error};
use contigo_objects::{Claimed, Handle, Kind, Lease, Refusal, Slot, Table};
use core::mem;

/// Pools.
static POOLS: Table<Pool, { Kind::Pool as u8 }, { limits::POOLS }> = Table::new();

/// Equal slots of a region. Every buffer of it has a lease on it.
pub(crate) struct Pool {
    pool: contigo::Pool,
    entries: Entries,
    /// A region with pools is not closed.
    _region: Lease<Region>,
}

/// The slots' entries in the table of buffers. Each is kept while its slot is not out.
struct Entries {
    indices: [u16; limits::POOL_SLOTS],
    count: usize,
}

impl Entries {
    /// Keeps so many entries: or none, where there are not enough.
    fn keep(count: usize) -> Result<Self, Refusal> {
        const { assert!(limits::BUFS <= 1 << u16::BITS, "an entry's number fits 16 bits") };
        let mut entries = Self { indices: [0; limits::POOL_SLOTS], count: 0 };
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
        if slots == 0 || slots > limits::POOL_SLOTS {
            let (value, max) = (slots as u64, limits::POOL_SLOTS as u64);
            return Err(
                Error::Argument { name: "slots", value, min: 1, max, multiple_of: 1 }.into()
            );
        }
        let region = REGIONS.lease(region)?;
        let line = region.memory().line();
        if slot_bytes == 0 || !line.divides(slot_bytes as u64) {
            return Err(Error::SlotSize { slot_bytes, line_bytes: line.bytes() }.into());
        }
        let mut claimed = POOLS.claim()?;
        let entries = Entries::keep(slots)?;
        let pool = region.memory().pool_aligned(slots, slot_bytes, align)?;
        claimed.locked.put(Self { pool, entries, _region: region });
        Ok(claimed.raw())
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

    /// Gives the slots back to the region. Refused while one is out.
    pub(crate) fn close(raw: u64) -> Result<(), Fault> {
        POOLS.lock(raw)?.clear();
        Ok(())
    }
}
