//! A count of handles: the last handle to be dropped frees what they share.
//!
//! It accesses no memory, so the model checker can run every interleaving.

use crate::types::atomic::{AtomicUsize, Ordering};

/// The most handles. This is far above what a program holds, and so far below the count at which it
/// wraps that threads which pass the check at once cannot reach that by adding 1 each.
pub(crate) const MAX_HANDLES: usize = 1 << 24;

/// The number of handles. A handle that is forgotten stays counted, so what it shares is never
/// freed.
#[derive(Debug)]
pub(crate) struct Count(pub(super) AtomicUsize);

impl Count {
    /// A count of one: the first handle.
    pub(crate) fn one() -> Self {
        Self(AtomicUsize::new(1))
    }

    /// Adds a handle; returns false if there are [`MAX_HANDLES`] already. The caller has a handle,
    /// so a count of 0 never grows.
    #[inline]
    #[must_use]
    pub(crate) fn add(&self) -> bool {
        // Relaxed: a new handle learns nothing from the count. It comes through an old one.
        if self.0.load(Ordering::Relaxed) >= MAX_HANDLES {
            return false;
        }
        self.0.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// Drops the caller's handle; returns true if it was the last. If it was not, the count itself
    /// may be gone when this returns: another thread dropped the last one and freed it.
    #[inline]
    #[must_use]
    pub(crate) fn drop_one(&self) -> bool {
        // Release: this handle's accesses happen before the last handle frees. Acquire: the last
        // handle sees all accesses of the others.
        self.0.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Returns the number of handles. Other threads may change it at once.
    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}
