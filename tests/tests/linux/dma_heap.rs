//! `DmaHeap` on kernels that no one machine has: before and since 6.9, with and without the
//! capability, out of memory.

use contigo::linux::memory::DmaHeap;
use contigo::mem::SyncScope;
use contigo::types::BaseAddr;
use contigo::{Backend, Direction, Error, PhysAddr};
use contigo_testkit::direct::DirectSync as _;
use contigo_testkit::fake_dma_heap::{
    Event, FIRST_FRAME, FakeHeap, Fault, HEAP, PRESENT, Pages, SOFT_DIRTY, page_bytes,
};
use nix::errno::Errno;
use std::fs;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

fn page() -> usize {
    usize::try_from(page_bytes()).unwrap()
}

/// A block of `len_bytes` on a kernel whose page table shows `pages`.
fn block(pages: Pages, len_bytes: usize) -> DmaHeap {
    DmaHeap::allocate_from(Arc::new(FakeHeap::new(pages)), HEAP, len_bytes).unwrap()
}

/// As a region does: follows the segments from byte 0 to the end, with a bound.
fn segments(block: &impl Backend) -> Vec<(u64, usize)> {
    let len_bytes = block.mapping().len_bytes;
    let mut found = Vec::new();
    let mut offset_bytes = 0;
    while offset_bytes < len_bytes {
        let segment = block.segment(offset_bytes).unwrap();
        assert!(segment.len_bytes > 0 && segment.len_bytes <= len_bytes - offset_bytes);
        found.push((segment.addr, segment.len_bytes));
        offset_bytes += segment.len_bytes;
    }
    found
}

/// Allocates one page, and returns the error; nothing may be left open.
fn refused(kernel: &FakeHeap, name: &str, len_bytes: usize) -> Error {
    let error = DmaHeap::allocate_from(Arc::new(kernel.clone()), name, len_bytes).unwrap_err();
    assert_eq!(kernel.open_files(), 0, "{error}: {:?}", kernel.log());
    error
}

#[test]
fn old_kernel_gives_block_with_address() {
    let kernel = FakeHeap::new(Pages::Contiguous);
    // More than two batches of entries, and not a whole number of pages.
    let block = DmaHeap::allocate_from(Arc::new(kernel.clone()), HEAP, 130 * page() + 1).unwrap();
    let mapping = block.mapping();
    let base = FIRST_FRAME * page_bytes();
    assert_eq!((mapping.base, mapping.len_bytes), (BaseAddr::Phys(PhysAddr(base)), 131 * page()));
    assert_eq!(mapping.cpu.as_ptr().addr() % page(), 0);
    assert_eq!(segments(&block), [(base, 131 * page())]);
    let rest = block.segment(page() + 5).unwrap();
    assert_eq!((rest.addr, rest.len_bytes), (base + page_bytes() + 5, 130 * page() - 5));
    assert_eq!(block.segment(131 * page() - 1).unwrap().len_bytes, 1);
    assert!(matches!(block.segment(131 * page()), Err(Error::OutOfRange { .. })));
    assert_eq!(kernel.log()[1], Event::Alloc(131 * page_bytes()));
    assert_eq!(block.name(), "dma-heap");
}

#[test]
fn the_mapping_is_the_dma_buf_and_zeroed() {
    let block = block(Pages::Contiguous, 2 * page());
    let last = block.mapping().cpu.as_ptr().wrapping_add(2 * page() - 1);
    let path = format!("/proc/self/fd/{}", block.raw_fd());
    assert!(fs::read(&path).unwrap().iter().all(|byte| *byte == 0));
    let file = fs::OpenOptions::new().write(true).open(path).unwrap();
    file.write_at(b"x", 2 * page_bytes() - 1).unwrap();
    #[allow(unsafe_code, reason = "reads one byte of the raw mapping")]
    // SAFETY: the mapping is alive and has 2 pages.
    let seen = unsafe { last.read_volatile() };
    assert_eq!(seen, b'x');
}

#[test]
fn last_close_comes_with_drop_only() {
    // By its name: another test may map something at the same address at any time.
    let file_of = |raw_fd: i32| {
        fs::read_link(format!("/proc/self/fd/{raw_fd}")).unwrap().to_str().unwrap().to_owned()
    };
    let mapped = |file: &str| fs::read_to_string("/proc/self/maps").unwrap().contains(file);

    let kernel = FakeHeap::new(Pages::Contiguous);
    let block = DmaHeap::allocate_from(Arc::new(kernel.clone()), HEAP, 1).unwrap();
    assert_eq!(kernel.log(), [Event::OpenHeap, Event::Alloc(page_bytes()), Event::CloseHeap]);
    let (before, file) = (block.mapping(), file_of(block.raw_fd()));
    let boxed = Box::new(block);
    let after = boxed.mapping();
    assert_eq!((before.cpu, before.base, before.scope), (after.cpu, after.base, after.scope));
    assert!(mapped(&file));
    drop(boxed);
    assert_eq!(kernel.log().last(), Some(&Event::CloseBuf));
    assert!(kernel.open_files() == 0 && !mapped(&file));

    let kernel = FakeHeap::new(Pages::Contiguous);
    let block = DmaHeap::allocate_from(Arc::new(kernel.clone()), HEAP, 1).unwrap();
    let file = file_of(block.raw_fd());
    std::mem::forget(block);
    assert!(
        kernel.open_files() == 1 && mapped(&file),
        "a device may still write: leaked, not freed"
    );
}

#[test]
fn new_kernel_has_no_address_says_fix() {
    for entry in [0, SOFT_DIRTY, FIRST_FRAME] {
        let Error::NoAddress { install } = refused(&FakeHeap::new(Pages::Entry(entry)), HEAP, 1)
        else {
            panic!("entry {entry:#x}")
        };
        assert!(install.contains("kernel module") && install.contains("u-dma-buf"));
    }
}

#[test]
fn hidden_frame_is_not_address_0() {
    for entry in [PRESENT, PRESENT | SOFT_DIRTY] {
        let Error::PagemapHidden { page } = refused(&FakeHeap::new(Pages::Entry(entry)), HEAP, 1)
        else {
            panic!("entry {entry:#x}")
        };
        assert_ne!(page, 0, "the virtual page's number");
    }
}

#[test]
fn page_hidden_or_gone_later_is_an_error() {
    let hidden = block(Pages::Frames(vec![7, 8, 0, 10]), 4 * page());
    let third = (hidden.mapping().cpu.as_ptr().addr() / page() + 2) as u64;
    assert_eq!(hidden.segment(0), Err(Error::PagemapHidden { page: third }));
    let gone = block(Pages::Frames(vec![7, 8]), 3 * page());
    assert!(matches!(gone.segment(0), Err(Error::NoAddress { .. })));
}

#[test]
fn a_frame_that_no_address_has_is_nonsense() {
    let value = PRESENT | ((1 << 55) - 1);
    let nonsense = Error::Unexpected { name: "/proc/self/pagemap", value };
    assert_eq!(refused(&FakeHeap::new(Pages::Entry(value)), HEAP, 1), nonsense);
}

#[test]
fn random_page_tables_agree_with_a_plain_model() {
    let mut rng = fastrand::Rng::with_seed(1);
    for round in 0..40 {
        let pages = rng.usize(1..=80);
        let mut frames = vec![rng.u64(1..=100)];
        while frames.len() < pages {
            let far = rng.u8(..4) == 0;
            frames.push(if far { rng.u64(1..=100) } else { frames.last().unwrap() + 1 });
        }
        let mut model: Vec<(u64, usize)> = Vec::new();
        for frame in &frames {
            let addr = frame * page_bytes();
            match model.last_mut() {
                Some((start, len_bytes)) if *start + *len_bytes as u64 == addr => {
                    *len_bytes += page()
                }
                _ => model.push((addr, page())),
            }
        }
        let block = block(Pages::Frames(frames.clone()), pages * page());
        assert_eq!(segments(&block), model, "round {round}: {frames:?}");
    }
}

#[test]
fn kernel_refusals_leave_nothing_open() {
    let os = |call, errno: Errno| Error::Os { call, errno: errno as i32 };
    let open = "open(/dev/dma_heap/)";
    let ioctl = "ioctl(DMA_HEAP_IOCTL_ALLOC)";
    let unreadable = Error::AttributeUnreadable { name: "/proc/self/pagemap", errno: 13 };
    assert_eq!(refused(&FakeHeap::new(Pages::Contiguous), "reserved", 1), os(open, Errno::ENOENT));
    for (fault, error) in [
        (Fault::Open(Errno::EACCES), os(open, Errno::EACCES)),
        (Fault::Alloc(Errno::ENOMEM), os(ioctl, Errno::ENOMEM)),
        (Fault::Alloc(Errno::ENOTTY), os(ioctl, Errno::ENOTTY)),
        (Fault::Map, os("mmap(dma-buf)", Errno::EACCES)),
        (Fault::Pagemap(Errno::EACCES), unreadable),
        (Fault::Pagemap(Errno::ENOENT), Error::AttributeMissing { name: "/proc/self/pagemap" }),
    ] {
        assert_eq!(refused(&FakeHeap::failing(fault), HEAP, 1), error);
    }
}

#[test]
fn bad_names_and_lengths_never_reach_the_kernel() {
    let kernel = FakeHeap::new(Pages::Contiguous);
    let long = "x".repeat(64);
    for name in ["", ".", "..", "a/b", "/dev/mem", "../mem", "a\0b", &long] {
        let bad_name = Error::BadName { len_bytes: name.len(), max_bytes: 63 };
        let real = DmaHeap::allocate(name, 1).unwrap_err();
        assert_eq!([refused(&kernel, name, 1), real], [bad_name; 2]);
    }
    for len_bytes in [0, (1 << 30) + 1, usize::MAX] {
        let (value, max) = (len_bytes as u64, 1 << 30);
        let beyond = Error::Argument { name: "len_bytes", value, min: 1, max, multiple_of: 1 };
        assert_eq!(refused(&kernel, HEAP, len_bytes), beyond);
    }
    assert_eq!(kernel.log(), []);
    let not_there = refused(&kernel, &long[1..], 1);
    assert!(matches!(not_there, Error::Os { errno: 2, .. }), "63 bytes are a name");
}

#[test]
fn the_caches_are_whose_this_architecture_says() {
    let block = block(Pages::Contiguous, 2 * page());
    let mapping = block.mapping();
    let (processor, can_sync) = match mapping.scope {
        SyncScope::Coherent => ("x86", true),
        SyncScope::Range { granule_bytes } => {
            assert!(granule_bytes.is_power_of_two() && (64..=2048).contains(&granule_bytes));
            ("aarch64", true)
        }
        SyncScope::None { install } => {
            assert!(install.contains("u-dma-buf"), "{install}");
            ("arm", false)
        }
        SyncScope::Whole => panic!("its caches are kept by lines"),
    };
    assert!(std::env::consts::ARCH.starts_with(processor), "{:?}", mapping.scope);
    assert_eq!(mapping.coherent, (processor == "x86").then_some(true));
    let end = 2 * page();
    for range in [0..end, 1..65, 100..100, page() - 1..page() + 1, end..end] {
        for direction in [Direction::ToDevice, Direction::FromDevice, Direction::Bidirectional] {
            let done = block.device_sync(range.clone(), direction);
            assert_eq!(done, block.cpu_sync(range.clone(), direction));
            let refused = matches!(done, Err(Error::CannotSync { .. }));
            assert!(done.is_ok() == can_sync && refused != can_sync, "{done:?}");
        }
    }
    for (start, last) in [(0, end + 1), (end + 1, end + 1), (9, 8), (0, usize::MAX)] {
        let beyond = Err(Error::OutOfRange { start, end: last, len_bytes: end });
        assert_eq!(block.device_sync(start..last, Direction::ToDevice), beyond);
        assert_eq!(block.cpu_sync(start..last, Direction::FromDevice), beyond);
    }
}
