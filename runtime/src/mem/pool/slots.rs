//! Who has which slot of a pool, for any thread: the bitmap, and the handles of slots that were
//! cut. It knows no memory.

use super::{bitmap::Bitmap, parts::SharedParts};
use crate::types::Error;

/// The state of at most `SLOTS` slots.
#[derive(Debug)]
pub(crate) struct Slots<const SLOTS: usize> {
    pub(super) bits: Bitmap<SLOTS>,
    pub(super) parts: SharedParts<SLOTS>,
}

impl<const SLOTS: usize> Slots<SLOTS> {
    /// The first `slots` are free.
    pub(crate) fn new(slots: usize) -> Self {
        Self { bits: Bitmap::new(slots), parts: SharedParts::new() }
    }

    /// Takes a free slot: the caller has its one handle.
    #[inline]
    pub(crate) fn claim(&self) -> Option<usize> {
        self.bits.claim()
    }

    /// One handle of a slot that the caller has a handle of.
    pub(crate) fn one_more(&self, slot: u32) -> Result<(), Error> {
        self.parts.one_more(slot)
    }

    /// A handle is gone: was it the last? Then the caller releases the slot.
    #[inline]
    pub(crate) fn last_is_gone(&self, slot: u32) -> bool {
        self.parts.last_is_gone(slot)
    }

    /// The slot is free: its last handle is gone.
    #[inline]
    pub(crate) fn release(&self, slot: u32) {
        self.bits.release(slot as usize);
    }

    /// How many slots are free. Other threads may change that at once.
    pub(crate) fn free(&self) -> usize {
        self.bits.free()
    }
}
