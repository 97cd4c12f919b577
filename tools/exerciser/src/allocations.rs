#![allow(
    unsafe_code,
    reason = "implementing GlobalAlloc is unsafe; every call is passed on to the system's allocator"
)]
//! Counts what the heap is asked for, thread by thread.
//!
//! In a program that says `#[global_allocator] static HEAP: CountingHeap = CountingHeap;`
//! everything goes through it: the program, the runtime, the crates below it and the standard
//! library. The count is per thread, so that the thread that works is measured alone, whatever a
//! progress bar beside it does.

use std::alloc::{GlobalAlloc, Layout, System};
use std::boxed::Box;
use std::cell::Cell;
use std::hint::black_box;
use std::thread_local;

thread_local! {
    // A constant that needs no drop: reaching it allocates nothing, so the allocator may.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, with a count.
#[derive(Clone, Copy, Debug)]
pub struct CountingHeap;

/// How often this thread has asked the heap for memory so far. Growing a block counts; giving one
/// back does not.
#[must_use]
pub fn on_this_thread() -> u64 {
    ALLOCATIONS.get()
}

/// Is [`CountingHeap`] this program's allocator? One allocation, made on purpose, must be seen.
#[must_use]
pub fn is_counting() -> bool {
    let before = on_this_thread();
    drop(black_box(Box::new(black_box(0_u8))));
    on_this_thread() == before + 1
}

fn count() {
    // A thread that is ending has no counter any more, and no test measures it.
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
}

// SAFETY: every method passes its arguments to `System` unchanged and returns what it returns, so
// `System`'s guarantees hold; counting neither allocates nor unwinds (`Cell<u64>`, constant and
// without drop).
unsafe impl GlobalAlloc for CountingHeap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps `GlobalAlloc::alloc`'s contract, and `System` has the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller got `block` from this allocator, which got it from `System`, with the
        // same layout.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: as in `alloc`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count();
        // SAFETY: as in `dealloc`; the caller keeps the contract on `new_size`.
        unsafe { System.realloc(block, layout, new_size) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;
    use std::{thread, vec};

    #[global_allocator]
    static HEAP: CountingHeap = CountingHeap;

    #[test]
    fn every_way_to_ask_the_heap_is_counted() {
        assert!(is_counting());
        let before = on_this_thread();
        let mut bytes: Vec<u8> = black_box(Vec::with_capacity(8));
        let zeroed = black_box(vec![0_u8; 64]);
        bytes.extend_from_slice(&zeroed);
        assert_eq!(on_this_thread() - before, 3, "one plain, one zeroed, one grown");
    }

    #[test]
    fn another_thread_has_its_own_count() {
        let before = on_this_thread();
        let there = thread::scope(|scope| {
            let worker = scope.spawn(|| {
                let before = on_this_thread();
                drop(black_box(vec![1_u8; 1000]));
                on_this_thread() - before
            });
            worker.join().unwrap_or_default()
        });
        assert_eq!(there, 1);
        let here = on_this_thread();
        drop(black_box(vec![1_u8; 1000]));
        assert_eq!(on_this_thread() - here, 1);
        assert!(here > before, "starting a thread allocates on the thread that starts it");
    }
}
