#![allow(unsafe_code, reason = "an entry's value, which its word keeps while it counts users")]
//! An entry that is used, by several at once.

use super::slot::Slot;
use crate::{Kind, Refusal};
use core::ops::Deref;

/// A value that is used: it stays as long as this lives. It has no reference to the value, because
/// a function that takes it and drops it would keep that reference alive for longer than the value
/// is certain to stay.
#[derive(Debug)]
pub struct Lease<T: 'static> {
    pub(super) slot: &'static Slot<T>,
}

impl<T: Sync> Lease<T> {
    /// One lease more on the same value.
    ///
    /// # Errors
    /// [`Refusal::StillUsed`]: it has as many as are counted.
    pub fn again(&self, kind: Kind) -> Result<Self, Refusal> {
        // This lease keeps the entry live, and in this life.
        self.slot.lease(kind, self.slot.word.generation())
    }
}

impl<T> Deref for Lease<T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the entry is a static's; the word counts this lease, so the value is there and
        // no call has it alone. The borrow ends before the lease does.
        unsafe { (*self.slot.value()).assume_init_ref() }
    }
}

impl<T> Drop for Lease<T> {
    fn drop(&mut self) {
        self.slot.word.end_lease();
    }
}
