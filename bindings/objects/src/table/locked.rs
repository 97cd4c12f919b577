#![allow(unsafe_code, reason = "an entry's value, which its word gives to one call alone")]
//! An entry for one call alone.

use super::{
    Slot,
    word::{FREE, KEPT, LIVE},
};
use core::mem::{ManuallyDrop, MaybeUninit};

/// One entry, for one call alone. Dropping it makes the entry live, or free where it has no value.
#[must_use]
#[derive(Debug)]
pub struct Locked<T: 'static> {
    pub(super) slot: &'static Slot<T>,
    pub(super) generation: u64,
    /// Is there a value?
    pub(super) full: bool,
}

impl<T> Locked<T> {
    /// In which life the entry is.
    pub const fn generation(&self) -> u64 {
        self.generation
    }

    /// The value, where there is one.
    pub fn value(&mut self) -> Option<&mut T> {
        // SAFETY: the entry is in the state `CALL`, and this is the one `Locked` of it; `&mut self`
        // makes the borrow exclusive. It is initialised where `full` is true.
        self.full.then(|| unsafe { (*self.slot.value()).assume_init_mut() })
    }

    /// Puts a value into an entry that has none. One that has another keeps it.
    pub fn put(&mut self, value: T) {
        if !self.full {
            // SAFETY: as in `value`.
            unsafe { (*self.slot.value()).write(value) };
            self.full = true;
        }
    }

    /// Makes a value where it will be, in an entry that has none: for one that no stack holds.
    ///
    /// # Safety
    /// `make` makes the value.
    pub unsafe fn make(&mut self, make: impl FnOnce(&mut MaybeUninit<T>)) {
        if !self.full {
            // SAFETY: as in `value`; nothing is there yet.
            make(unsafe { &mut *self.slot.value() });
            self.full = true;
        }
    }

    /// Drops the value where it is: the entry will be free.
    pub fn clear(&mut self) {
        if core::mem::take(&mut self.full) {
            // SAFETY: as in `value`; it counts as uninitialised from here on.
            unsafe { (*self.slot.value()).assume_init_drop() }
        }
    }

    /// Takes the value out, and frees the entry.
    pub fn take(mut self) -> Option<T> {
        self.moved_out()
    }

    /// Takes the value out where there is one, and keeps the entry for a pool's slot.
    pub fn keep(self) -> Option<T> {
        let mut this = ManuallyDrop::new(self);
        let value = this.moved_out();
        this.slot.word.leave(this.generation, KEPT);
        value
    }

    fn moved_out(&mut self) -> Option<T> {
        // SAFETY: as in `value`; it counts as uninitialised from here on.
        core::mem::take(&mut self.full).then(|| unsafe { (*self.slot.value()).assume_init_read() })
    }
}

impl<T> Drop for Locked<T> {
    fn drop(&mut self) {
        let state = if self.full { LIVE } else { FREE };
        self.slot.word.leave(self.generation, state);
    }
}
