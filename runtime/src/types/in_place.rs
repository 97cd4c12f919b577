#![allow(unsafe_code, reason = "a value of any type lies in plain bytes, where a pointer finds it")]
//! A value of any type that implements a trait, owned without a heap.

use core::{
    cell::UnsafeCell,
    marker::PhantomData,
    mem::{self, MaybeUninit},
    ptr,
};

/// Where the value lies. It may have cells, which change through a shared reference: so the place
/// is one.
#[repr(C, align(16))]
struct Place<const BYTES: usize>(UnsafeCell<[MaybeUninit<u8>; BYTES]>);

/// A value behind the trait object `T`, in a place of `BYTES` bytes, which it owns.
pub(crate) struct InPlace<T: ?Sized, const BYTES: usize> {
    place: Place<BYTES>,
    /// The pointer to the place as one to the value.
    find: fn(*mut ()) -> *mut T,
    /// It owns what `find` finds.
    owns: PhantomData<T>,
}

impl<T: ?Sized, const BYTES: usize> InPlace<T, BYTES> {
    /// `value`, in a fixed place. One that is too large, or aligned to more than 16 bytes, is
    /// refused by the compiler.
    ///
    /// # Safety
    /// `find` returns the pointer that it is given, as one to `V` and then to `T`.
    pub(crate) unsafe fn new<V>(value: V, find: fn(*mut ()) -> *mut T) -> Self {
        const { assert!(mem::size_of::<V>() <= BYTES, "MAX_BYTES is the largest one that fits") };
        const { assert!(mem::align_of::<V>() <= mem::align_of::<Place<BYTES>>(), "16 is the largest alignment") };
        let place = Place(UnsafeCell::new([MaybeUninit::uninit(); BYTES]));
        // SAFETY: the place is large enough and aligned for a `V`, and holds nothing yet.
        unsafe { place.0.get().cast::<V>().write(value) };
        Self { place, find, owns: PhantomData }
    }

    fn pointer(&self) -> *mut T {
        (self.find)(self.place.0.get().cast())
    }

    pub(crate) fn get(&self) -> &T {
        // SAFETY: `new` put a value there, `find` is of its type, and it moves with its place. It
        // is borrowed as `self` is.
        unsafe { &*self.pointer() }
    }

    pub(crate) fn get_mut(&mut self) -> &mut T {
        // SAFETY: as in `get`.
        unsafe { &mut *self.pointer() }
    }
}

impl<T: ?Sized, const BYTES: usize> Drop for InPlace<T, BYTES> {
    fn drop(&mut self) {
        // SAFETY: `drop` runs once, and the value is not used after it.
        unsafe { ptr::drop_in_place(self.pointer()) }
    }
}

/// A pin of it pins no `T`: `get_mut` gives each out, and a move of the place moves it.
impl<T: ?Sized, const BYTES: usize> Unpin for InPlace<T, BYTES> {}

// SAFETY: it owns a `T` and nothing else; `find` is a function.
unsafe impl<T: ?Sized + Send, const BYTES: usize> Send for InPlace<T, BYTES> {}
// SAFETY: a shared reference to it gives only a shared reference to the `T`.
unsafe impl<T: ?Sized + Sync, const BYTES: usize> Sync for InPlace<T, BYTES> {}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::Cell;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    trait Counts {
        fn count(&self) -> u32;
        fn add(&mut self, more: u32);
    }

    /// Aligned as nothing may be more, with a cell, and noisy where it ends.
    #[repr(align(16))]
    struct Noisy<'a> {
        looks: Cell<u32>,
        ends: &'a Cell<u32>,
        panics: bool,
    }

    impl Counts for Noisy<'_> {
        fn count(&self) -> u32 {
            self.looks.set(self.looks.get() + 1);
            self.looks.get()
        }
        fn add(&mut self, more: u32) {
            *self.looks.get_mut() += more;
        }
    }

    impl Drop for Noisy<'_> {
        fn drop(&mut self) {
            self.ends.set(self.ends.get() + 1);
            assert!(!self.panics, "asked for");
        }
    }

    fn placed<'a>(ends: &'a Cell<u32>, panics: bool) -> InPlace<dyn Counts + 'a, 64> {
        let noisy = Noisy { looks: Cell::new(0), ends, panics };
        // SAFETY: it casts to `Noisy`, and that becomes what a `Noisy` is.
        unsafe { InPlace::new::<Noisy<'_>>(noisy, |place| place.cast::<Noisy<'_>>()) }
    }

    #[test]
    fn a_value_moves_with_its_place_and_ends_once() {
        const fn unpinned<T: Unpin>(_: &T) {}
        let ends = Cell::new(0);
        let mut value = placed(&ends, false);
        assert_eq!(value.get().count(), 1);
        value.get_mut().add(10);
        let moved = [value];
        let [value] = &moved;
        unpinned(value);
        assert_eq!((value.get().count(), value.get().count(), ends.get()), (12, 13, 0));
        drop(moved);
        assert_eq!(ends.get(), 1);
    }

    #[test]
    fn an_end_that_panics_is_an_end() {
        let ends = Cell::new(0);
        let value = placed(&ends, true);
        assert!(catch_unwind(AssertUnwindSafe(|| drop(value))).is_err());
        assert_eq!(ends.get(), 1);
    }
}
