#![allow(unsafe_code, reason = "a slot is claimed and released by its number here, which no lifetime checks")]
//! A pool for tables of handles (the C library's), whose slots are claimed and released by their
//! numbers.
//!
//! The state of its slots is a static's ([`RawSlots`]), and its memory is apart from it
//! ([`RawPool`]). So a claim needs nothing that keeps the pool: in a pool that was closed meanwhile
//! it finds no slot. The holder of a slot keeps the pool, because [`RawSlots::close`] claims them
//! all.

use super::{
    bitmap::{Bitmap, MAX_WORDS},
    check, chunk,
    parts::SharedParts,
    slots::Slots,
};
use crate::{
    mem::{Carve, CpuBuf, buf::Owner, region::Block},
    types::{
        Refused, Result,
        atomic::{AtomicU8, AtomicUsize},
    },
};
use core::fmt;

/// The state of a pool's slots. All of it is zeroes while it is closed.
#[derive(Debug)]
pub struct RawSlots<const SLOTS: usize>(Slots<SLOTS>);

impl<const SLOTS: usize> RawSlots<SLOTS> {
    /// No slot is there.
    #[must_use]
    pub const fn closed() -> Self {
        let bits = Bitmap { words: [const { AtomicUsize::new(0) }; MAX_WORDS], likely: AtomicUsize::new(0) };
        Self(Slots { bits, parts: SharedParts([const { AtomicU8::new(0) }; SLOTS]) })
    }

    /// Frees the first `slots`.
    ///
    /// # Safety
    /// They are closed, and a `RawPool` of as many slots is over them.
    pub unsafe fn open(&self, slots: usize) {
        self.0.bits.open(slots);
    }

    /// Claims all `slots`: or none, where one is taken. After it the pool may go away.
    ///
    /// # Safety
    /// They are as many as were opened.
    #[must_use]
    pub unsafe fn close(&self, slots: usize) -> bool {
        self.0.bits.close(slots)
    }

    /// Takes a free slot: the caller has its one handle.
    #[inline]
    #[must_use]
    pub fn claim(&self) -> Option<usize> {
        self.0.claim()
    }

    /// A handle of the slot is gone. After the last one the slot is free.
    ///
    /// # Safety
    /// The caller has a handle of the slot, and its buffer was forgotten or never made.
    #[inline]
    pub unsafe fn gone(&self, slot: u32) {
        if self.0.last_is_gone(slot) {
            self.0.release(slot);
        }
    }

    /// How many slots are free. Other threads may change that at once.
    #[must_use]
    pub fn free(&self) -> usize {
        self.0.free()
    }

    /// How many handles there are of `slots` slots, as many as were opened. Other threads may
    /// change that at once.
    #[must_use]
    pub fn handles(&self, slots: usize) -> usize {
        slots.saturating_sub(self.free()) + self.0.parts.sum()
    }
}

/// The memory of a pool whose state lies in a `static`.
pub struct RawPool<'r, const SLOTS: usize> {
    carve: Carve<'r>,
    slot_bytes: usize,
    slots: usize,
    state: &'static RawSlots<SLOTS>,
}

impl<'r, const SLOTS: usize> RawPool<'r, SLOTS> {
    /// As [`Pool::with_slots`](crate::Pool::with_slots), with no slot free before `state` is
    /// opened.
    ///
    /// # Safety
    /// `state` is closed, and no other pool is over it. It is closed again before this goes away.
    ///
    /// # Errors
    /// As [`Pool::with_slots`](crate::Pool::with_slots).
    pub unsafe fn new(
        carve: Carve<'r>,
        slot_bytes: usize,
        slots: usize,
        state: &'static RawSlots<SLOTS>,
    ) -> Result<Self, Refused<Carve<'r>>> {
        match check::<SLOTS>(&carve, slot_bytes, slots) {
            Ok(()) => Ok(Self { carve, slot_bytes, slots, state }),
            Err(error) => Err(Refused::new(error, carve)),
        }
    }

    /// How many slots it has.
    #[must_use]
    pub const fn slots(&self) -> usize {
        self.slots
    }

    /// The buffer of a slot.
    ///
    /// # Safety
    /// The caller claimed it from the pool's `RawSlots`, and makes one buffer of it.
    #[inline]
    pub unsafe fn buf(&self, slot: usize) -> CpuBuf<'_> {
        CpuBuf::new(chunk(self, self.carve.span(), slot, self.slot_bytes))
    }
}

impl<const SLOTS: usize> Owner for RawPool<'_, SLOTS> {
    fn block(&self) -> &dyn Block {
        self.carve.block()
    }
    fn release(&self, token: u32) {
        // SAFETY: this is the drop of a buffer that `buf` made, or of a part of it.
        unsafe { self.state.gone(token) }
    }
    fn share(&self, token: u32) -> Result<()> {
        self.state.0.one_more(token)
    }
}

impl<const SLOTS: usize> fmt::Debug for RawPool<'_, SLOTS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawPool")
            .field("slots", &self.slots)
            .field("slot_bytes", &self.slot_bytes)
            .field("free", &self.state.free())
            .finish()
    }
}
