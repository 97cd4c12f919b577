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
pub(super) struct InPlace<T: ?Sized, const BYTES: usize> {
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
    pub(super) unsafe fn new<V>(value: V, find: fn(*mut ()) -> *mut T) -> Self {
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

    pub(super) fn get(&self) -> &T {
        // SAFETY: `new` put a value there, `find` is of its type, and it moves with its place. It
        // is borrowed as `self` is.
        unsafe { &*self.pointer() }
    }

    pub(super) fn get_mut(&mut self) -> &mut T {
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

// SAFETY: it owns a `T` and nothing else; `find` is a function.
unsafe impl<T: ?Sized + Send, const BYTES: usize> Send for InPlace<T, BYTES> {}
// SAFETY: a shared reference to it gives only a shared reference to the `T`.
unsafe impl<T: ?Sized + Sync, const BYTES: usize> Sync for InPlace<T, BYTES> {}
// The value moves with its place, and nobody pins it there.
impl<T: ?Sized, const BYTES: usize> Unpin for InPlace<T, BYTES> {}
