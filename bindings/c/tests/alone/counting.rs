//! An allocator that counts what each thread allocates, this library and std below it included. Who
//! has this module has it for the whole program.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    // Constant, and nothing to drop: reading it allocates nothing.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every method is the system allocator's, with the same arguments.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The answer of `act`, and how often it allocated.
pub(crate) fn count<R>(act: impl FnOnce() -> R) -> (R, u64) {
    let before = ALLOCATIONS.get();
    let result = act();
    (result, ALLOCATIONS.get() - before)
}
