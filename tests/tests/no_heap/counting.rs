//! The allocator that counts, and fakes of the kernel whose own allocations are not counted.

use contigo::Result;
use contigo::linux::os::seam::{Fd, MmapRaw, SystemCalls};
use nix::sys::ioctl::ioctl_num_type;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ffi::{CStr, c_int, c_void};

thread_local! {
    // Constant, and nothing to drop: reading it allocates nothing.
    static COUNTING: Cell<bool> = const { Cell::new(false) };
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

fn note() {
    if COUNTING.get() {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
    }
}

// SAFETY: every method is the system allocator's, with the same arguments.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note();
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note();
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        note();
        // SAFETY: the caller's promise.
        unsafe { System.realloc(ptr, layout, new_size) }
    }
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The result of `act`, and how often it allocated.
pub(super) fn count<R>(act: impl FnOnce() -> R) -> (R, u64) {
    let before = ALLOCATIONS.get();
    COUNTING.set(true);
    let result = act();
    COUNTING.set(false);
    (result, ALLOCATIONS.get() - before)
}

/// The kernel's own business, done by a fake.
pub(super) fn uncounted<R>(act: impl FnOnce() -> R) -> R {
    let was = COUNTING.replace(false);
    let result = act();
    COUNTING.set(was);
    result
}

/// A fake of the kernel whose own allocations are not counted for the runtime.
pub(super) struct Uncounted<K>(pub(super) K);

/// An open file of a fake; `None` only while it is closed.
struct UncountedFile(Option<Fd>);

impl UncountedFile {
    fn around(file: Fd) -> Fd {
        // SAFETY: the fake's file has the descriptor until it is dropped.
        unsafe { Fd::owned_by(file.raw(), Self(Some(file))) }
    }

    /// The fake's own file; an attribute's, which is opened in a folder, is no fake's.
    fn of(file: &Fd) -> &Fd {
        file.owner::<Self>().map_or(file, |file| file.0.as_ref().unwrap())
    }
}

impl Drop for UncountedFile {
    fn drop(&mut self) {
        uncounted(|| drop(self.0.take()));
    }
}

type Answer<T> = std::result::Result<T, i32>;

// SAFETY: the fake keeps all of it.
unsafe impl<K: SystemCalls> SystemCalls for Uncounted<K> {
    fn open(&self, path: &CStr, flags: c_int) -> Answer<Fd> {
        uncounted(|| self.0.open(path, flags).map(UncountedFile::around))
    }
    unsafe fn ioctl(&self, file: &Fd, request: ioctl_num_type, arg: *mut c_void) -> Answer<c_int> {
        // SAFETY: the caller's promise.
        uncounted(|| unsafe { self.0.ioctl(UncountedFile::of(file), request, arg) })
    }
    unsafe fn made(&self, raw: c_int) -> Fd {
        // SAFETY: the caller's promise.
        uncounted(|| UncountedFile::around(unsafe { self.0.made(raw) }))
    }
    fn duplicate(&self, raw: c_int) -> Answer<Fd> {
        uncounted(|| self.0.duplicate(raw).map(UncountedFile::around))
    }
    fn eventfd(&self) -> Answer<Fd> {
        uncounted(|| self.0.eventfd().map(UncountedFile::around))
    }
    fn wait_readable(&self, file: &Fd, timeout_us: u32) -> Answer<bool> {
        uncounted(|| self.0.wait_readable(UncountedFile::of(file), timeout_us))
    }
    fn read_at(&self, file: &Fd, offset: u64, bytes: &mut [u8]) -> Answer<usize> {
        uncounted(|| self.0.read_at(UncountedFile::of(file), offset, bytes))
    }
    fn write_at(&self, file: &Fd, offset: u64, bytes: &[u8]) -> Answer<usize> {
        uncounted(|| self.0.write_at(UncountedFile::of(file), offset, bytes))
    }
    fn map(&self, file: &Fd, offset: u64, len: usize, call: &'static str) -> Result<MmapRaw> {
        uncounted(|| self.0.map(UncountedFile::of(file), offset, len, call))
    }
    fn release(&self) -> (u32, u32) {
        uncounted(|| self.0.release())
    }
    fn pin_limit_bytes(&self) -> Option<u64> {
        uncounted(|| self.0.pin_limit_bytes())
    }
}
