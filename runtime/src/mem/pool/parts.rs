//! How many handles a slot has, where a buffer was split. A slot that never was has one, and costs
//! one plain load.

use super::bitmap::MAX_SLOTS;
use crate::types::{
    Error,
    atomic::{AtomicU8, Ordering},
};
use core::cell::Cell;

/// The most handles that a slot can have: the first, and what a byte counts beside it.
const MAX_PARTS: u32 = 256;
pub(crate) const REFUSAL: Error = Error::TooManyParts { limit: MAX_PARTS };

/// Handles beyond the first, for each slot; for any thread.
#[derive(Debug)]
pub(crate) struct SharedParts<const SLOTS: usize>(pub(super) [AtomicU8; SLOTS]);

impl<const SLOTS: usize> SharedParts<SLOTS> {
    pub(crate) fn new() -> Self {
        const { assert!(SLOTS <= MAX_SLOTS) };
        Self(core::array::from_fn(|_| AtomicU8::new(0)))
    }

    /// One handle more.
    pub(crate) fn one_more(&self, slot: u32) -> Result<(), Error> {
        one_more(self.0.get(slot as usize).ok_or(REFUSAL)?)
    }

    /// One handle is gone: was it the last?
    pub(crate) fn last_is_gone(&self, slot: u32) -> bool {
        self.0.get(slot as usize).is_some_and(last_is_gone)
    }

    /// How many handles there are beyond the first ones.
    pub(crate) fn sum(&self) -> usize {
        self.0.iter().map(|more| usize::from(more.load(Ordering::Relaxed))).sum()
    }
}

/// One handle more: `more` counts them beyond the first.
pub(crate) fn one_more(more: &AtomicU8) -> Result<(), Error> {
    // Only holders of the slot change its count, at most `MAX_PARTS` of them, and each repetition
    // is another's success.
    more.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| count.checked_add(1)).map(|_| ()).map_err(|_| REFUSAL)
}

/// One handle is gone: was it the last? Where it was not, `more` is not touched after the
/// subtraction.
#[inline]
pub(crate) fn last_is_gone(more: &AtomicU8) -> bool {
    // No other handle can raise a count of 0: this is the only handle.
    if more.load(Ordering::Acquire) == 0 {
        return true;
    }
    // AcqRel: what the other handles did to the bytes is done before the slot is released.
    if more.fetch_sub(1, Ordering::AcqRel) > 0 {
        return false;
    }
    // Another handle went between the load and the subtraction: this was the last, and the count
    // wrapped.
    more.store(0, Ordering::Relaxed);
    true
}

/// Handles beyond the first, for each slot; for one thread.
#[derive(Debug)]
pub(crate) struct LocalParts<const SLOTS: usize>([Cell<u8>; SLOTS]);

impl<const SLOTS: usize> LocalParts<SLOTS> {
    pub(crate) fn new() -> Self {
        Self(core::array::from_fn(|_| Cell::new(0)))
    }

    pub(crate) fn one_more(&self, slot: u32) -> Result<(), Error> {
        let more = self.0.get(slot as usize).ok_or(REFUSAL)?;
        more.set(more.get().checked_add(1).ok_or(REFUSAL)?);
        Ok(())
    }

    #[inline]
    pub(crate) fn last_is_gone(&self, slot: u32) -> bool {
        let Some(more) = self.0.get(slot as usize) else { return false };
        match more.get().checked_sub(1) {
            Some(left) => {
                more.set(left);
                false
            }
            None => true,
        }
    }
}
