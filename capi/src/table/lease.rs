#![allow(unsafe_code, reason = "an entry's value, which its word keeps while it counts users")]
//! An entry that is used, by several at once.

use super::slot::Slot;
use crate::{fault::Misuse, handle::Kind};
use core::{ops::Deref, sync::atomic::Ordering};

/// A value that is used: it stays as long as this lives. It has no reference to the value, because
/// a function that takes it and drops it would keep that reference alive for longer than the value
/// is certain to stay.
pub(crate) struct Lease<T: 'static> {
    pub(super) slot: &'static Slot<T>,
}

impl<T> Lease<T> {
    /// The value for what is stored beside the lease.
    ///
    /// # Safety
    /// Everything that borrows from it is gone, or forgotten for ever, before this lease is
    /// dropped.
    pub(crate) const unsafe fn for_ever(&self) -> &'static T {
        // SAFETY: the entry is a static's; the word counts this lease, so the value is there and
        // nobody has it alone.
        unsafe { (*self.slot.value()).assume_init_ref() }
    }
}

impl<T: Sync> Lease<T> {
    /// One lease more on the same value.
    pub(crate) fn again(&self, kind: Kind) -> Result<Self, Misuse> {
        // This lease keeps the entry live, and in this life.
        self.slot.lease(kind, self.slot.generation())
    }
}

impl<T> Deref for Lease<T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the borrow ends before the lease does.
        unsafe { self.for_ever() }
    }
}

impl<T> Drop for Lease<T> {
    fn drop(&mut self) {
        // Release: what this user did with the value is done before somebody has it alone.
        self.slot.word.fetch_sub(1, Ordering::Release);
    }
}
