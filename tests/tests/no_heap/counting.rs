//! The allocator that counts, and fakes of the kernel whose own allocations are not counted.

use contigo::Result;
use contigo::linux::dev_node::seam::{DevNodeKernel, Fd, Request};
use contigo::linux::memory::dma_heap::seam::HeapKernel;
use contigo::linux::memory::u_dma_buf::seam::{DevInfo, SyncArgs, UDmaBufIoctl};
use contigo_testkit::fake_dev_node::FakeDevNode;
use contigo_testkit::fake_dma_heap::FakeHeap;
use contigo_testkit::fake_u_dma_buf::FakeIoctl;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

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

impl UDmaBufIoctl for Uncounted<FakeIoctl> {
    fn get_dev_info(&self, device: i32) -> Result<DevInfo, i32> {
        uncounted(|| self.0.get_dev_info(device))
    }
    fn get_sync(&self, device: i32) -> Result<SyncArgs, i32> {
        uncounted(|| self.0.get_sync(device))
    }
    fn set_sync(&self, device: i32, args: &SyncArgs) -> Result<(), i32> {
        uncounted(|| self.0.set_sync(device, args))
    }
    fn export(&self, device: i32, size: u64) -> Result<i32, i32> {
        uncounted(|| self.0.export(device, size))
    }
    fn write_attribute(&self, file: i32, name: &'static str, text: &[u8]) -> Result<usize, i32> {
        uncounted(|| self.0.write_attribute(file, name, text))
    }
}

/// An open file of a fake; `None` only while it is closed.
struct UncountedFile(Option<Fd>);

impl UncountedFile {
    fn around(file: Fd) -> Fd {
        // SAFETY: the fake's file has the descriptor until it is dropped.
        unsafe { Fd::owned_by(file.raw(), Self(Some(file))) }
    }

    fn of(file: &Fd) -> &Fd {
        file.owner::<Self>().unwrap().0.as_ref().unwrap()
    }
}

impl Drop for UncountedFile {
    fn drop(&mut self) {
        uncounted(|| drop(self.0.take()));
    }
}

// SAFETY: `FakeHeap` keeps all of it.
unsafe impl HeapKernel for Uncounted<FakeHeap> {
    fn open(&self, name: &str) -> Result<Fd> {
        uncounted(|| self.0.open(name).map(UncountedFile::around))
    }
    fn alloc(&self, heap: &Fd, len_bytes: u64) -> Result<Fd> {
        uncounted(|| self.0.alloc(UncountedFile::of(heap), len_bytes).map(UncountedFile::around))
    }
    fn pagemap(&self, first_page: u64, entries: &mut [u64]) -> Result<()> {
        uncounted(|| self.0.pagemap(first_page, entries))
    }
}

// SAFETY: `FakeDevNode` keeps all of it.
unsafe impl DevNodeKernel for Uncounted<FakeDevNode> {
    fn open(&self, name: &str) -> Result<Fd> {
        uncounted(|| self.0.open(name).map(UncountedFile::around))
    }
    fn duplicate(&self, fd: i32) -> std::result::Result<Fd, i32> {
        uncounted(|| self.0.duplicate(fd).map(UncountedFile::around))
    }
    fn ioctl(&self, file: &Fd, request: Request<'_>) -> std::result::Result<(), i32> {
        uncounted(|| self.0.ioctl(UncountedFile::of(file), request))
    }

    fn registers<'f>(&self, file: &'f Fd) -> &'f Fd {
        self.0.registers(UncountedFile::of(file))
    }
    fn memory(&self, file: &Fd, handle: u32) -> Option<Fd> {
        uncounted(|| self.0.memory(UncountedFile::of(file), handle).map(UncountedFile::around))
    }
}
