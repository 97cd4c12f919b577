//! Counts the handles of a slot whose buffer was split. A slot that was never split has one handle,
//! and costs one plain load.

use crate::types::Error;
use crate::types::atomic::{AtomicU8, Ordering};

/// The most handles that a slot can have: the first, and what a byte counts beside it.
const MAX_PARTS: u32 = 256;
pub(crate) const REFUSAL: Error = Error::TooManyParts { limit: MAX_PARTS };

/// Adds one handle. `more` counts the handles beyond the first.
pub(crate) fn one_more(more: &AtomicU8) -> Result<(), Error> {
    // Only holders of the slot change its count, at most `MAX_PARTS` of them, and each retry is the
    // success of another one.
    more.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| count.checked_add(1))
        .map(|_| ())
        .map_err(|_| REFUSAL)
}

/// Drops one handle; returns true if it was the last. If not, `more` is not touched after the
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
    // Another handle was dropped between the load and the subtraction: this was the last, and the
    // count wrapped.
    more.store(0, Ordering::Relaxed);
    true
}
