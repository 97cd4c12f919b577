#![allow(unsafe_code, reason = "a handle is a pointer that counts")]
//! A value with shared ownership: an `Arc` in pages from the kernel instead of a heap.

use super::count::{Count, MAX_HANDLES};
use super::platform::Anonymous;
use super::{Error, Result};
use core::fmt;
use core::marker::PhantomData;
use core::mem::{self, ManuallyDrop, MaybeUninit};
use core::ops::Deref;
use core::ptr::{self, NonNull};

/// The largest alignment of a value: the kernel's smallest page.
const PAGE_BYTES: usize = 4096;

/// A handle to a shared value. Clones are handles to the same value; the last one drops it and
/// unmaps its pages. Forgetting a handle keeps both for ever.
///
/// After fork(2) a child has a copy of the pages, as of a heap: the value is the process's, and no
/// device reaches it. Memory for devices is mapped elsewhere, and not passed to children.
pub struct Shared<T: ?Sized> {
    /// INVARIANT: it points to an `Inner` that `given` or `unsized_by` wrote, and the count there
    /// includes this handle.
    inner: NonNull<Inner<T>>,
    owns: PhantomData<Inner<T>>,
}

/// What the handles share. [`Shared::unsized_by`] changes its type.
#[allow(missing_debug_implementations, reason = "no program has one")]
pub struct Inner<T: ?Sized> {
    count: Count,
    /// The memory that holds this `Inner`.
    memory: ManuallyDrop<Memory>,
    value: T,
}

enum Memory {
    /// Pages that are unmapped when this is dropped.
    Pages(#[allow(dead_code, reason = "held for its drop")] Anonymous),
    /// Memory that the program gave for ever.
    Given,
}

impl Memory {
    /// Unmaps the pages. Memory that was given for ever stays.
    fn free(self) {}
}

impl<T> Shared<T> {
    /// Moves `value` into its own pages.
    ///
    /// # Errors
    /// [`Error::Os`]: the kernel has no memory. [`Error::Unsupported`]: there is no kernel.
    pub fn new(value: T) -> Result<Self> {
        // SAFETY: the closure returns its argument.
        unsafe { Self::unsized_by(value, |inner| inner) }
    }

    /// Moves `value` into `memory`, for systems without a kernel.
    ///
    /// # Errors
    /// [`Error::Exhausted`]: `memory` is too small.
    pub fn given(value: T, memory: &'static mut [MaybeUninit<u8>]) -> Result<Self> {
        let capacity_bytes = memory.len();
        let skip = memory.as_mut_ptr().align_offset(mem::align_of::<Inner<T>>());
        let need_bytes = skip.saturating_add(mem::size_of::<Inner<T>>());
        let place = memory
            .get_mut(skip..need_bytes)
            .ok_or(Error::Exhausted { need_bytes, capacity_bytes })?;
        let place = NonNull::from(place).cast::<Inner<T>>();
        // SAFETY: the slice is as long as an `Inner<T>` and aligned for one; it is borrowed for
        // ever, and only here.
        unsafe {
            place.write(Inner {
                count: Count::one(),
                memory: ManuallyDrop::new(Memory::Given),
                value,
            })
        };
        Ok(Self { inner: place, owns: PhantomData })
    }
}

impl<T: ?Sized> Shared<T> {
    /// As [`new`](Shared::new), for a `T` that is a trait object or holds one at its end.
    ///
    /// # Safety
    /// `find` returns the pointer that it is given, unsized.
    pub unsafe fn unsized_by<V>(
        value: V,
        find: fn(*mut Inner<V>) -> *mut Inner<T>,
    ) -> Result<Self> {
        const {
            assert!(
                mem::align_of::<Inner<V>>() <= PAGE_BYTES,
                "pages are aligned to 4096 \
         bytes"
            )
        };
        let mut pages = Anonymous::zeroed(mem::size_of::<Inner<V>>())?;
        let place = pages.as_mut_ptr().cast::<Inner<V>>();
        // SAFETY: the pages are new, aligned as asserted, and large enough. They do not move when
        // the value that owns them moves into them.
        unsafe {
            place.write(Inner {
                count: Count::one(),
                memory: ManuallyDrop::new(Memory::Pages(pages)),
                value,
            })
        };
        let inner = NonNull::new(find(place)).ok_or(Error::Os { call: "mmap", errno: 0 })?;
        Ok(Self { inner, owns: PhantomData })
    }
}

impl<T: ?Sized> Shared<T> {
    /// Returns the value, mutably.
    ///
    /// # Safety
    /// There is no other handle.
    pub(crate) unsafe fn value_mut(&mut self) -> &mut T {
        // SAFETY: this handle is counted, so the value exists, and the caller promised that no
        // other handle gives access to it.
        unsafe { &mut self.inner.as_mut().value }
    }
}

impl<T: ?Sized> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: this handle is counted, so the value exists; it changes only through cells.
        unsafe { &self.inner.as_ref().value }
    }
}

impl<T: ?Sized> Clone for Shared<T> {
    /// PANIC: at `MAX_HANDLES` handles, most of them forgotten. `Arc` aborts there.
    fn clone(&self) -> Self {
        // SAFETY: this handle is counted, so the count exists.
        let counted = unsafe { &self.inner.as_ref().count }.add();
        assert!(counted, "{MAX_HANDLES} handles of one value");
        Self { inner: self.inner, owns: PhantomData }
    }
}

impl<T: ?Sized> Drop for Shared<T> {
    fn drop(&mut self) {
        let inner = self.inner.as_ptr();
        // SAFETY: this handle is still counted. The reference is only to an atomic, which may be
        // freed under the reference, as in `Arc`.
        if !unsafe { &(*inner).count }.drop_one() {
            return;
        }
        // SAFETY: this was the last handle, and a count of 0 never grows: no other handle has the
        // value, and this thread sees what all others did to it (`Count::drop_one`). The memory is
        // moved out first, so that it is freed once, after the value, and not at all if the value's
        // drop panics.
        unsafe {
            let memory = ptr::read(&raw const (*inner).memory);
            ptr::drop_in_place(&raw mut (*inner).value);
            ManuallyDrop::into_inner(memory).free();
        }
    }
}

// SAFETY: as `Arc`: each handle gives a reference to the value, on its own thread, and the last
// handle drops the value on its thread.
unsafe impl<T: ?Sized + Send + Sync> Send for Shared<T> {}
// SAFETY: as above; through a reference a handle can be cloned.
unsafe impl<T: ?Sized + Send + Sync> Sync for Shared<T> {}

/// Moving a handle does not move the value.
impl<T: ?Sized> Unpin for Shared<T> {}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics has failed, which is its purpose")]
mod tests {
    use super::*;
    use core::sync::atomic::AtomicU32;
    use core::sync::atomic::Ordering::Relaxed;
    use spin::Mutex;
    use std::boxed::Box;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::thread;

    trait Counts: Send {
        fn add(&mut self, more: u32) -> u32;
    }

    /// Larger than a page, aligned, and counts its drops.
    #[repr(align(64))]
    struct Noisy<'a> {
        sum: [u32; 2048],
        ends: &'a AtomicU32,
        panics: bool,
    }

    impl<'a> Noisy<'a> {
        fn new(ends: &'a AtomicU32) -> Self {
            Self { sum: [0; 2048], ends, panics: false }
        }

        fn panicking(ends: &'a AtomicU32) -> Self {
            Self { sum: [0; 2048], ends, panics: true }
        }
    }

    impl Counts for Noisy<'_> {
        fn add(&mut self, more: u32) -> u32 {
            self.sum[2047] += more;
            self.sum[2047]
        }
    }

    impl Drop for Noisy<'_> {
        fn drop(&mut self) {
            self.ends.fetch_add(1, Relaxed);
            assert!(!self.panics, "asked for");
        }
    }

    #[test]
    fn last_handle_drops_the_value() {
        let ends = AtomicU32::new(0);
        let first = Shared::new(Mutex::new(Noisy::new(&ends))).unwrap();
        let second = first.clone();
        assert_eq!((&raw const *first).addr() % 64, 0);
        drop(first);
        assert_eq!((second.lock().add(2), ends.load(Relaxed)), (2, 0));
        drop(second);
        assert_eq!(ends.load(Relaxed), 1);
    }

    #[test]
    fn threads_share_a_trait_object() {
        let ends = AtomicU32::new(0);
        let value = Mutex::new(Noisy::new(&ends));
        // SAFETY: the closure returns its pointer, unsized.
        let shared =
            unsafe { Shared::<Mutex<dyn Counts + '_>>::unsized_by(value, |inner| inner) }.unwrap();
        thread::scope(|scope| {
            for _ in 0..4 {
                let shared = shared.clone();
                scope.spawn(move || {
                    for _ in 0..10 {
                        shared.lock().add(1);
                    }
                });
            }
        });
        assert_eq!((shared.lock().add(0), ends.load(Relaxed)), (40, 0));
        drop(shared);
        assert_eq!(ends.load(Relaxed), 1);
    }

    #[test]
    fn drop_that_panics_leaks_its_pages() {
        let ends = AtomicU32::new(0);
        let shared = Shared::new(Noisy::panicking(&ends)).unwrap();
        assert!(catch_unwind(AssertUnwindSafe(|| drop(shared))).is_err());
        assert_eq!(ends.load(Relaxed), 1);
    }

    #[test]
    fn memory_of_the_program() {
        let ends = AtomicU32::new(0);
        let memory = |bytes| Box::leak(Box::new_uninit_slice(bytes));
        let small = Shared::given(Noisy::new(&ends), memory(64)).map(|_| ()).unwrap_err();
        assert!(matches!(small, Error::Exhausted { capacity_bytes: 64, .. }), "{small}");
        assert_eq!(ends.load(Relaxed), 1, "a refused value is dropped");
        let shared = Shared::given(Mutex::new(Noisy::new(&ends)), memory(16 << 10)).unwrap();
        assert_eq!(shared.clone().lock().add(3), 3);
        drop(shared);
        assert_eq!(ends.load(Relaxed), 2);
    }
}
