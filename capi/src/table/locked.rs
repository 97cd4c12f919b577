#![allow(unsafe_code, reason = "an entry's value, which its word gives to one call alone")]
//! An entry for one call alone.

use super::slot::{FREE, KEPT, LIVE, Slot};
use core::mem::{ManuallyDrop, MaybeUninit};

/// One entry, for one call alone. Dropping it makes the entry live, or free where it has no value.
#[must_use]
pub(crate) struct Locked<T: 'static> {
    pub(super) slot: &'static Slot<T>,
    pub(super) generation: u64,
    /// Is there a value?
    pub(super) full: bool,
}

impl<T> Locked<T> {
    pub(crate) const fn generation(&self) -> u64 {
        self.generation
    }

    /// The value, beside others who look at it (`Slot::peek`).
    pub(crate) fn shared(&self) -> Option<&T> {
        // SAFETY: as in `value`; of others, only those who look at it too are there.
        self.full.then(|| unsafe { (*self.slot.value()).assume_init_ref() })
    }

    pub(crate) fn value(&mut self) -> Option<&mut T> {
        // SAFETY: the entry is in the state `CALL`, and this is the one `Locked` of it; `&mut self`
        // makes the borrow exclusive. It is initialised where `full` says so.
        self.full.then(|| unsafe { (*self.slot.value()).assume_init_mut() })
    }

    /// Puts a value into an entry that has none. One that has another keeps it.
    pub(crate) fn put(&mut self, value: T) {
        if !self.full {
            // SAFETY: as in `value`.
            unsafe { (*self.slot.value()).write(value) };
            self.full = true;
        }
    }

    /// Makes a value where it will be, in an entry that has none: for one that no stack holds.
    ///
    /// # Safety
    /// Where `make` says `Ok`, it has made the value.
    pub(crate) unsafe fn make<E>(&mut self, make: impl FnOnce(&mut MaybeUninit<T>) -> Result<(), E>) -> Result<(), E> {
        if !self.full {
            // SAFETY: as in `value`; nothing is there yet.
            make(unsafe { &mut *self.slot.value() })?;
            self.full = true;
        }
        Ok(())
    }

    /// Drops the value where it is: the entry will be free.
    pub(crate) fn clear(&mut self) {
        if core::mem::take(&mut self.full) {
            // SAFETY: as in `value`; it counts as uninitialised from here on.
            unsafe { (*self.slot.value()).assume_init_drop() }
        }
    }

    /// Forgets the value: the entry will be free.
    pub(crate) fn forget(mut self) {
        self.full = false;
    }

    /// Forgets the value, and keeps the entry for a pool's slot.
    pub(crate) fn keep(self) {
        let this = ManuallyDrop::new(self);
        this.slot.leave(this.generation, KEPT);
    }
}

impl<T> Drop for Locked<T> {
    fn drop(&mut self) {
        let state = if self.full { LIVE } else { FREE };
        self.slot.leave(self.generation, state);
    }
}
