#![allow(unsafe_code, reason = "the one handle to a value gives it out to change")]
//! A value of any type that implements a trait, in its own pages: a `Box` without a heap.

use super::Result;
use super::shared::{Inner, Shared};
use core::fmt;
use core::ops::{Deref, DerefMut};

/// The one handle to a value.
pub struct Boxed<T: ?Sized>(
    /// INVARIANT: it is never cloned.
    Shared<T>,
);

impl<T: ?Sized> Boxed<T> {
    /// Moves `value` into its own pages, as a trait object.
    ///
    /// # Errors
    /// [`Error::Os`](super::Error::Os): the kernel has no memory.
    /// [`Error::Unsupported`](super::Error::Unsupported): there is no kernel. The value is dropped.
    ///
    /// # Safety
    /// As [`Shared::unsized_by`].
    pub unsafe fn unsized_by<V>(
        value: V,
        find: fn(*mut Inner<V>) -> *mut Inner<T>,
    ) -> Result<Self> {
        // SAFETY: the caller's promise.
        unsafe { Shared::unsized_by(value, find) }.map(Self)
    }
}

impl<T: ?Sized> Deref for Boxed<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: ?Sized> DerefMut for Boxed<T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: there is no other handle, and this one is borrowed as long as the result.
        unsafe { self.0.value_mut() }
    }
}

// SAFETY: there is one handle: it gives access as a `Box` does, and drops the value where it is.
unsafe impl<T: ?Sized + Send> Send for Boxed<T> {}
// SAFETY: a shared reference to the handle gives only a shared reference to the value.
unsafe impl<T: ?Sized + Sync> Sync for Boxed<T> {}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Boxed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics has failed, which is its purpose")]
mod tests {
    use super::*;
    use core::cell::Cell;

    trait Counts {
        fn count(&self) -> u32;
        fn add(&mut self, more: u32);
    }

    struct Noisy<'a> {
        polls: Cell<u32>,
        ends: &'a Cell<u32>,
    }

    impl Counts for Noisy<'_> {
        fn count(&self) -> u32 {
            self.polls.set(self.polls.get() + 1);
            self.polls.get()
        }
        fn add(&mut self, more: u32) {
            *self.polls.get_mut() += more;
        }
    }

    impl Drop for Noisy<'_> {
        fn drop(&mut self) {
            self.ends.set(self.ends.get() + 1);
        }
    }

    #[test]
    fn value_changes_moves_and_ends_once() {
        let ends = Cell::new(0);
        let noisy = Noisy { polls: Cell::new(0), ends: &ends };
        // SAFETY: the closure returns its pointer, unsized.
        let mut boxed =
            unsafe { Boxed::<dyn Counts + '_>::unsized_by(noisy, |inner| inner) }.unwrap();
        assert_eq!(boxed.count(), 1);
        boxed.add(10);
        let moved = [boxed];
        assert_eq!((moved[0].count(), moved[0].count(), ends.get()), (12, 13, 0));
        drop(moved);
        assert_eq!(ends.get(), 1);
    }
}
