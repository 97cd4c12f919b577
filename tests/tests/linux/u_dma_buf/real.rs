//! The real calls, on real files: they write the attributes, and allocate nothing.

use super::old;
use contigo::{
    Direction, Error,
    linux::memory::{
        UDmaBuf,
        u_dma_buf::seam::{DevInfo, RealIoctl, Roots, SyncArgs, UDmaBufIoctl},
    },
};
use contigo_testkit::{direct::DirectSync as _, fake_u_dma_buf::FakeUDmaBuf};
use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    fs,
    sync::Arc,
};

/// Counts what this thread allocates.
struct Counting;

thread_local!(static ALLOCATIONS: Cell<usize> = const { Cell::new(0) });

// SAFETY: forwards to the system's allocator; the count changes nothing of it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's contract is the same.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's contract is the same.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// The real calls, also under qemu-user, which answers ENOSYS to an ioctl that it does not know.
struct Real;

impl UDmaBufIoctl for Real {
    fn get_dev_info(&self, device: i32) -> Result<DevInfo, i32> {
        RealIoctl
            .get_dev_info(device)
            .map_err(|errno| if errno == libc::ENOSYS { libc::ENOTTY } else { errno })
    }
    fn get_sync(&self, device: i32) -> Result<SyncArgs, i32> {
        RealIoctl
            .get_sync(device)
            .map_err(|errno| if errno == libc::ENOSYS { libc::ENOTTY } else { errno })
    }
    fn set_sync(&self, device: i32, args: &SyncArgs) -> Result<(), i32> {
        RealIoctl.set_sync(device, args)
    }
    fn export(&self, device: i32, size: u64) -> Result<i32, i32> {
        RealIoctl.export(device, size)
    }
    fn write_attribute(&self, file: i32, name: &'static str, text: &[u8]) -> Result<usize, i32> {
        RealIoctl.write_attribute(file, name, text)
    }
}

#[test]
fn the_real_calls_write_the_attributes_and_allocate_nothing() {
    // A regular file answers ENOTTY to the real ioctls, as an old module does; the attributes are
    // regular files too.
    let fake = FakeUDmaBuf::new(old());
    let root = fake.class_dir().ancestors().nth(3).unwrap().to_str().unwrap().to_owned();
    let (dev, class) = (format!("{root}/dev"), format!("{root}/class"));
    let kernel = Arc::new(Real);
    let before = ALLOCATIONS.get();
    let roots = Roots { dev: &dev, class: &class };
    // SAFETY: there is no such device, or the file is this test\'s own.
    let block = unsafe { UDmaBuf::open_with("udmabuf0", roots, kernel.clone(), false) }.unwrap();
    block.device_sync(4096..8192, Direction::FromDevice).unwrap();
    block.cpu_sync(4096..8192, Direction::FromDevice).unwrap();
    // SAFETY: there is no such device, or the file is this test\'s own.
    let refused = unsafe { UDmaBuf::open_with("udmabuf0", roots, kernel.clone(), false) }.map(drop);
    drop(block);
    assert_eq!(ALLOCATIONS.get(), before);
    assert_eq!(refused, Err(Error::InUse { errno: libc::EWOULDBLOCK }));
    for (name, text) in [
        ("sync_offset", "4096"),
        ("sync_size", "4096"),
        ("sync_direction", "2\n"),
        ("sync_for_cpu", "1\n"),
    ] {
        assert_eq!(fs::read_to_string(fake.class_dir().join(name)).unwrap(), text, "{name}");
    }
    assert_eq!(fs::read_to_string(fake.class_dir().join("sync_for_device")).unwrap(), "1\n");
}
