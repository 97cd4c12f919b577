//! A count of handles: the last one to go frees what they share.
//!
//! It knows no memory, so that the model checker can run every interleaving of it.

use crate::types::atomic::{AtomicUsize, Ordering};

/// The most handles that are counted. Far above what a program holds; so far below where the count
/// would wrap that threads which pass the check at once cannot reach that either, each adding 1.
pub(crate) const MAX_HANDLES: usize = 1 << 24;

/// How many handles there are. A handle that is forgotten stays counted: what it shares is never
/// freed.
#[derive(Debug)]
pub(crate) struct Count(pub(super) AtomicUsize);

impl Count {
    /// The first handle.
    pub(crate) fn one() -> Self {
        Self(AtomicUsize::new(1))
    }

    /// Adds a handle; false where there are [`MAX_HANDLES`] already. The caller has a handle: a
    /// count of 0 never grows.
    #[inline]
    #[must_use]
    pub(crate) fn add(&self) -> bool {
        // Relaxed: a new handle learns nothing from the count. It comes by way of an old one.
        if self.0.load(Ordering::Relaxed) >= MAX_HANDLES {
            return false;
        }
        self.0.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// Drops one handle, the caller's; true where it was the last. Where it was not, the count
    /// itself may be gone when this returns: another thread was the last, and freed it.
    #[inline]
    #[must_use]
    pub(crate) fn drop_one(&self) -> bool {
        // Release: what this handle did is done before the last one frees. Acquire: the last one
        // sees what all others did.
        self.0.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// How many there are. Other threads may change that at once.
    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}
