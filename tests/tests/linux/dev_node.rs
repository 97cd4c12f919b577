//! The runtime's side of the kernel module `contigo`: what it asks, in which order, and what
//! becomes of every refusal. The kernel is a fake of the header `kernel-helpers/uapi/contigo.h`;
//! the module itself is tested in the lab.

mod device;
mod irq;
mod memory;
mod stops;

use contigo::{
    Align, Backend, Bus, DevAddr, Direction, Error, PhysAddr, Port, Queue, Region,
    drivers::zdma::Zdma,
    hw::Wired,
    job::{StopProgram, StopStep},
    linux::{
        Spin,
        dev_node::{DevNode, DmaBuf},
        memory::DmaHeap,
    },
    mem::SyncScope,
    sim::{SimBoard, SimDevice, zdma::ZdmaModel},
    types::BaseAddr,
};
use contigo_testkit::{
    fake_dev_node::{Call, DevNodeConfig, Event, FakeDevNode, OFFSET},
    fake_dma_heap::{self, FakeHeap, HEAP, Pages},
};
use nix::{
    libc,
    sys::memfd::{MFdFlags, memfd_create},
    unistd::ftruncate,
};
use std::{
    ops::Range,
    os::fd::{AsFd, AsRawFd, OwnedFd},
    sync::Arc,
    time::Duration,
};

const HP0: Port = Port {
    name: "hp0",
    bus: Bus::Soc,
    offset: 0,
    addr_bits: 32,
    window: (0, u32::MAX as u64),
    coherent: false,
};

fn os(call: &'static str, errno: i32) -> Error {
    Error::Os { call, errno }
}

fn buffer(len_bytes: i64) -> OwnedFd {
    let fd = memfd_create("camera", MFdFlags::MFD_CLOEXEC).unwrap();
    ftruncate(&fd, len_bytes as _).unwrap();
    fd
}

fn import(dev_node: &DevNode, fd: &OwnedFd) -> Result<DmaBuf, Error> {
    // SAFETY: the test's own memory, which no other code touches.
    unsafe { DmaBuf::import(dev_node, fd.as_fd()) }
}

fn heap() -> Arc<FakeHeap> {
    Arc::new(FakeHeap::new(Pages::Entry(0)))
}

#[test]
fn opening_says_what_is_wrong() {
    let kernel = FakeDevNode::new(DevNodeConfig::default());
    assert_eq!(
        DevNode::open_from(Arc::new(kernel.clone()), "other").unwrap_err(),
        Error::NotFound { what: "device of the kernel module contigo", among: 1.into() }
    );
    let dev_node = kernel.open_dev_node().unwrap();
    assert_eq!(kernel.open_dev_node().unwrap_err(), Error::InUse { errno: libc::EBUSY });
    drop(dev_node);
    kernel.open_dev_node().unwrap();
    kernel.refuse(Call::GetInfo, libc::ENODEV);
    assert_eq!(kernel.open_dev_node().unwrap_err(), os("ioctl(CONTIGO_GET_INFO)", libc::ENODEV));
    kernel.refuse(Call::Open, libc::EIO);
    assert_eq!(kernel.open_dev_node().unwrap_err(), os("open(/dev/contigo/)", libc::EIO));
    let unconfined = FakeDevNode::new(DevNodeConfig::default());
    unconfined.refuse(Call::Open, libc::EPERM);
    assert!(matches!(
        unconfined.open_dev_node().unwrap_err(),
        Error::Denied { errno: libc::EPERM, .. }
    ));
}

#[test]
fn what_the_module_says_is_distrusted() {
    let refused = |config| FakeDevNode::new(config).open_dev_node().unwrap_err();
    for granule_bytes in [0, 3, 96, 8192, u32::MAX] {
        let name = "granule_bytes of CONTIGO_GET_INFO";
        let config = DevNodeConfig { granule_bytes, ..DevNodeConfig::default() };
        assert_eq!(refused(config), Error::Unexpected { name, value: granule_bytes.into() });
    }
    for argsz in [0, 40, 183] {
        let name = "argsz of CONTIGO_GET_INFO";
        assert_eq!(
            refused(DevNodeConfig { argsz, ..DevNodeConfig::default() }),
            Error::Unexpected { name, value: argsz.into() }
        );
    }
    let name = "interrupts of CONTIGO_GET_INFO";
    assert_eq!(
        refused(DevNodeConfig { interrupts: 17, ..DevNodeConfig::default() }),
        Error::Unexpected { name, value: 17 }
    );
    let name = "mmap_offset of CONTIGO_GET_INFO";
    let overlapping = DevNodeConfig { windows: 2, overlapping: true, ..DevNodeConfig::default() };
    assert_eq!(
        refused(overlapping),
        Error::Unexpected { name, value: 0 },
        "two drivers of the same registers"
    );
    // A later module of the same ABI has more to say, and a PC's caches round nothing.
    let kernel = FakeDevNode::new(DevNodeConfig {
        argsz: 4096,
        granule_bytes: 1,
        ..DevNodeConfig::default()
    });
    let dev_node = kernel.open_dev_node().unwrap();
    assert_eq!(
        dev_node.allocate(4096).unwrap().mapping().scope,
        SyncScope::Range { granule_bytes: 32 }
    );
}

#[test]
fn kernels_facts_reach_port_and_memory() {
    for (coherent, translated) in [(false, false), (true, false), (false, true), (true, true)] {
        let kernel =
            FakeDevNode::new(DevNodeConfig { coherent, translated, ..DevNodeConfig::default() });
        let dev_node = kernel.open_dev_node().unwrap();
        let info = dev_node.info().unwrap();
        assert_eq!(
            (dev_node.is_coherent(), info.window_len_bytes),
            (coherent, [0x1000, 0, 0, 0, 0, 0])
        );
        assert_eq!(
            (info.coherent, info.translated, info.confined, info.can_reset),
            (coherent, translated, false, false)
        );
        assert_eq!(info.stop_windows, [true, false, false, false, false, false]);
        assert_eq!(
            (info.buffers, info.quarantined, info.quarantined_bytes, info.armed, info.interrupts),
            (0, 0, 0, false, 1)
        );
        assert_eq!((info.addr_bits, info.iommu), (32, false));
        let claimed = Port { coherent, ..HP0 };
        let seen = dev_node.seen_through(Port { offset: 7, ..claimed });
        let block = DmaHeap::allocate_for_from(heap(), &dev_node, HEAP, 5000).unwrap();
        let mapping = block.mapping();
        let page = fake_dma_heap::page_bytes() as usize;
        assert_eq!(
            (block.name(), mapping.len_bytes, mapping.coherent),
            ("dma-heap", 5000_usize.next_multiple_of(page), Some(coherent))
        );
        assert_eq!(mapping.scope, if coherent { SyncScope::Coherent } else { SyncScope::Whole });
        assert_eq!(mapping.bus, seen.bus);
        if translated {
            assert_eq!(
                (seen.offset, mapping.base),
                (0, BaseAddr::Dev(DevAddr(0x1000_0000 + OFFSET))),
                "the kernel has added it"
            );
            assert!(mapping.bus != Bus::Soc, "an address of this device's alone");
        } else {
            assert_eq!(
                (seen, mapping.base),
                (Port { offset: 7, ..claimed }, BaseAddr::Phys(PhysAddr(0x1000_0000)))
            );
        }
    }
    let (one, other) = [(); 2]
        .map(|()| FakeDevNode::new(DevNodeConfig { translated: true, ..DevNodeConfig::default() }))
        .into();
    let (one, other) = (one.open_dev_node().unwrap(), other.open_dev_node().unwrap());
    assert_ne!(
        one.seen_through(HP0).bus,
        other.seen_through(HP0).bus,
        "two devices' address spaces"
    );
}

#[test]
fn port_of_other_coherency_is_refused() {
    let kernel = FakeDevNode::new(DevNodeConfig { coherent: true, ..DevNodeConfig::default() });
    let dev_node = kernel.open_dev_node().unwrap();
    let region =
        Region::new(DmaHeap::allocate_for_from(heap(), &dev_node, HEAP, 64 << 10).unwrap())
            .unwrap();
    let buf = region.alloc(64, Align::LINE).unwrap();
    let board = SimBoard::new(1);
    let device = SimDevice::<ZdmaModel>::new(&board, board.port());
    // SAFETY: the job is refused: the simulated device gets no address.
    let device = unsafe { Wired::new(device.window().unwrap(), Spin, HP0) };
    // SAFETY: the window is a simulated ZDMA's.
    let mut queue = Queue::new(unsafe { Zdma::simple(device) }.unwrap(), 1).unwrap();
    let other = region.alloc(64, Align::LINE).unwrap();
    let refused = queue.submit([buf.to_device(..32), other.from_device(..64)], &[]).unwrap_err();
    assert!(matches!(refused.error, Error::CoherencyMismatch { .. }), "{refused:?}");
}

#[test]
fn syncs_cover_the_whole_import() {
    let kernel = FakeDevNode::new(DevNodeConfig::default());
    let dev_node = kernel.open_dev_node().unwrap();
    let fd = buffer(8192);
    let block = import(&dev_node, &fd).unwrap();
    assert_eq!(block.name(), "dma-buf");
    kernel.log();
    let sync = |for_cpu| Event::Synced { handle: 1, for_cpu, start: 0, end: 8192 };
    // SAFETY: no reference to the block is alive.
    unsafe {
        block.sync_for_device(3..70, Direction::ToDevice).unwrap();
        block.sync_for_device(3..70, Direction::FromDevice).unwrap();
        block.sync_for_cpu(3..70, Direction::ToDevice).unwrap();
        block.sync_for_cpu(8130..8190, Direction::FromDevice).unwrap();
        block.sync_for_cpu(64..128, Direction::Bidirectional).unwrap();
        block.sync_for_device(5..5, Direction::ToDevice).unwrap();
    }
    let expected = [sync(false), sync(false), sync(true), sync(true)];
    assert_eq!(kernel.log(), expected, "its exporter knows no ranges");
    // SAFETY: as above.
    unsafe { syncs_nothing_beyond(&block, 8192) };
    assert_eq!(kernel.log(), [], "nothing of nothing");
    kernel.refuse(Call::Sync, libc::ENODEV);
    // SAFETY: as above.
    let gone = unsafe { block.sync_for_cpu(0..64, Direction::FromDevice) };
    assert_eq!(gone, Err(os("ioctl(CONTIGO_SYNC)", libc::ENODEV)));
}

/// Ranges that are not all within the block are refused, and empty ones do nothing.
///
/// # Safety
/// No reference to the block is alive.
unsafe fn syncs_nothing_beyond(block: &impl Backend, len_bytes: usize) {
    for direction in [Direction::ToDevice, Direction::FromDevice, Direction::Bidirectional] {
        for (start, end) in [
            (0, len_bytes + 1),
            (len_bytes + 1, len_bytes + 2),
            (0, usize::MAX),
            (usize::MAX, usize::MAX),
            (70, 3),
        ] {
            let beyond = Err(Error::OutOfRange { start, end, len_bytes });
            // SAFETY: the caller's promise.
            assert_eq!(unsafe { block.sync_for_device(Range { start, end }, direction) }, beyond);
            if direction.device_writes() {
                // SAFETY: the caller's promise.
                assert_eq!(unsafe { block.sync_for_cpu(Range { start, end }, direction) }, beyond);
            }
        }
        // SAFETY: the caller's promise.
        unsafe {
            block.sync_for_device(5..5, direction).and(block.sync_for_cpu(5..5, direction)).unwrap()
        };
    }
}

#[test]
fn an_import_that_fails_leaves_nothing() {
    let kernel = FakeDevNode::new(DevNodeConfig::default());
    let dev_node = kernel.open_dev_node().unwrap();
    let fd = buffer(4096);
    for (call, errno, name) in [
        (Call::Import, libc::ENOSPC, "ioctl(CONTIGO_IMPORT)"),
        (Call::Import, libc::EINVAL, "ioctl(CONTIGO_IMPORT)"),
        (Call::Duplicate, libc::EMFILE, "fcntl(F_DUPFD_CLOEXEC)"),
    ] {
        kernel.refuse(call, errno);
        assert_eq!(import(&dev_node, &fd).map(drop), Err(os(name, errno)));
    }
    // It is mapped for the device, and cannot be for this process: read-only, or empty.
    kernel.refuse(Call::Open, 0);
    let read_only =
        std::fs::File::open(format!("/proc/self/fd/{}", fd.as_raw_fd())).unwrap().into();
    for (fd, errno) in [(read_only, libc::EACCES), (buffer(0), libc::EINVAL)] {
        assert_eq!(import(&dev_node, &fd).map(drop), Err(os("mmap(dma-buf)", errno)));
    }
    assert_eq!(kernel.imports(), 0, "released again");
    let once = import(&dev_node, &fd).unwrap();
    assert_eq!(
        import(&dev_node, &fd).map(drop),
        Err(os("ioctl(CONTIGO_IMPORT)", libc::EBUSY)),
        "it is mapped already"
    );
    drop(once);
    let mut blocks: Vec<_> = (0..256).map(|_| import(&dev_node, &buffer(4096)).unwrap()).collect();
    assert_eq!(import(&dev_node, &fd).map(drop), Err(os("ioctl(CONTIGO_IMPORT)", libc::ENOSPC)));
    blocks.pop();
    drop(import(&dev_node, &fd).unwrap());
    assert_eq!(dev_node.set_addr_bits(32), Err(os("ioctl(CONTIGO_SET_DMA_BITS)", libc::EBUSY)));
    drop(blocks);
    assert_eq!((kernel.imports(), dev_node.set_addr_bits(32)), (0, Ok(())));
    assert_eq!(dev_node.set_addr_bits(31), Err(os("ioctl(CONTIGO_SET_DMA_BITS)", libc::EINVAL)));
    for (name, len_bytes) in [("a/b", 4096), ("", 4096)] {
        assert!(matches!(
            DmaHeap::allocate_for_from(heap(), &dev_node, name, len_bytes),
            Err(Error::BadName { .. })
        ));
    }
    assert!(matches!(
        DmaHeap::allocate_for_from(heap(), &dev_node, HEAP, 0),
        Err(Error::Argument { name: "len_bytes", value: 0, .. })
    ));
    assert!(DmaHeap::allocate_for(&dev_node, "no-such-heap-here", 4096).is_err());
}

#[test]
fn scattered_memory_is_no_region() {
    for (run_bytes, pages) in [(4096_u64, 3_u64), (4096, 40), (8192, 5)] {
        let kernel = FakeDevNode::new(DevNodeConfig { run_bytes, ..DevNodeConfig::default() });
        let dev_node = kernel.open_dev_node().unwrap();
        let fd = buffer((pages * run_bytes).try_into().unwrap());
        let block = import(&dev_node, &fd).unwrap();
        for page in 0..pages {
            let run = block.segment((page * run_bytes + 5).try_into().unwrap()).unwrap();
            assert_eq!(
                (run.addr, run.len_bytes as u64),
                (0x1000_0000 + 2 * page * run_bytes + 5, run_bytes - 5)
            );
        }
        let end = (pages * run_bytes).try_into().unwrap();
        assert!(matches!(block.segment(end), Err(Error::OutOfRange { start, .. }) if start == end));
        let refused = Region::new(block).unwrap_err();
        assert!(
            matches!(refused.error, Error::NotContiguous { offset_bytes, .. }
                if offset_bytes as u64 == run_bytes),
            "{refused:?}"
        );
        drop(refused);
        assert_eq!(kernel.imports(), 0);
    }
    let kernel = FakeDevNode::new(DevNodeConfig::default());
    let dev_node = kernel.open_dev_node().unwrap();
    kernel.refuse(Call::GetSegments, libc::EFAULT);
    let fd = buffer(4096);
    let refused = Region::new(import(&dev_node, &fd).unwrap()).unwrap_err();
    assert_eq!(refused.error, os("ioctl(CONTIGO_GET_SEGMENTS)", libc::EFAULT));
}

#[test]
fn impossible_segment_count_is_an_error() {
    for more_segments in [1, 17, u32::MAX - 1] {
        let kernel = FakeDevNode::new(DevNodeConfig { more_segments, ..DevNodeConfig::default() });
        let dev_node = kernel.open_dev_node().unwrap();
        let fd = buffer(8192);
        let block = import(&dev_node, &fd).unwrap();
        let value = u64::from(more_segments.wrapping_add(1));
        let refused = Error::Unexpected { name: "count of CONTIGO_GET_SEGMENTS", value };
        assert_eq!(block.segment(0), Err(refused), "{more_segments} more than there are");
    }
}

/// A sync of one buffer would throw away the CPU's writes to another.
#[test]
fn import_without_snooping_holds_one_buffer() {
    for coherent in [false, true] {
        let kernel = FakeDevNode::new(DevNodeConfig { coherent, ..DevNodeConfig::default() });
        let dev_node = kernel.open_dev_node().unwrap();
        let fd = buffer(8192);
        let region = Region::new(import(&dev_node, &fd).unwrap()).unwrap();
        let first = region.alloc(64, Align::LINE).unwrap();
        let second = region.alloc(64, Align::LINE).map(drop);
        let port = Port { coherent, ..HP0 };
        if coherent {
            assert_eq!(second, Ok(()));
            continue;
        }
        let refused = second.unwrap_err();
        assert_eq!(refused, Error::WholeBlock { shared_bytes: 64 });
        let (part, _rest) = first.split_at(32).unwrap_or_else(|refused| panic!("{refused:?}"));
        // SAFETY: no device is given the address.
        let refused = unsafe { part.hand_over(&port, 32, .., Direction::ToDevice) }.unwrap_err();
        assert!(matches!(refused.error, Error::WholeBlock { .. }), "{refused:?}");
    }
}

#[test]
fn dropped_is_released_forgotten_is_kept() {
    let kernel = FakeDevNode::new(DevNodeConfig::default());
    let dev_node = kernel.open_dev_node().unwrap();
    let region =
        Region::new(DmaHeap::allocate_for_from(heap(), &dev_node, HEAP, 8192).unwrap()).unwrap();
    drop(region);
    // Its first touch, by which the region takes it, is a hand-over there and back.
    let sync = |for_cpu| Event::Synced { handle: 1, for_cpu, start: 0, end: 8192 };
    let imported = Event::Imported { handle: 1, addr: 0x1000_0000, len_bytes: 8192 };
    assert_eq!(kernel.log(), [imported, sync(false), sync(true), Event::Released(1)]);
    let region =
        Region::new(DmaHeap::allocate_for_from(heap(), &dev_node, HEAP, 8192).unwrap()).unwrap();
    std::mem::forget(region.alloc(64, Align::LINE).unwrap());
    drop(region);
    assert_eq!(kernel.imports(), 1, "leaked, not freed");
    drop(dev_node);
    assert!(
        !matches!(kernel.log().last(), Some(Event::Closed { .. })),
        "the forgotten buffer keeps the file open"
    );
    kernel.end_program();
    assert_eq!(
        kernel.log().last(),
        Some(&Event::Closed { kept: 1 }),
        "nothing has stopped the device"
    );
    // The next one that opens it sees what is kept, and that counts with its imports.
    let dev_node = kernel.open_dev_node().unwrap();
    let info = dev_node.info().unwrap();
    assert_eq!((info.buffers, info.quarantined, info.quarantined_bytes), (0, 1, 8192));
}

#[test]
fn what_stops_the_device_gives_memory_back() {
    let step = StopProgram::new(&[StopStep::poll_until(0, 1, 0, 0)]).unwrap();
    for (programs, can_reset, kept) in [
        (vec![&step], false, 0),
        (vec![&step, &StopProgram::NONE], false, 1),
        (vec![], false, 1),
        (vec![], true, 0),
    ] {
        let kernel = FakeDevNode::new(DevNodeConfig { can_reset, ..DevNodeConfig::default() });
        let dev_node = kernel.open_dev_node().unwrap();
        for program in &programs {
            // SAFETY: the fake has no device.
            unsafe { dev_node.arm(program, 0).unwrap() };
            assert_eq!(
                dev_node.info().unwrap().armed,
                !program.steps().is_empty(),
                "an empty program disarms"
            );
        }
        let region =
            Region::new(DmaHeap::allocate_for_from(heap(), &dev_node, HEAP, 8192).unwrap())
                .unwrap();
        std::mem::forget(region.alloc(64, Align::LINE).unwrap());
        drop(region);
        drop(dev_node);
        kernel.end_program();
        assert_eq!(kernel.kept(), kept, "{programs:?}");
    }
    // The kernel keeps no memory that was given back, but an import that could not be released.
    let kernel = FakeDevNode::new(DevNodeConfig::default());
    let dev_node = kernel.open_dev_node().unwrap();
    drop(import(&dev_node, &buffer(4096)).unwrap());
    drop(dev_node);
    assert_eq!(kernel.log().last(), Some(&Event::Closed { kept: 0 }));
    let dev_node = kernel.open_dev_node().unwrap();
    let fd = buffer(4096);
    let block = import(&dev_node, &fd).unwrap();
    kernel.refuse(Call::Release, libc::EIO);
    drop(block);
    drop(dev_node);
    assert_eq!(kernel.kept(), 1);
}

#[test]
fn writers_are_waited_for_within_bounds() {
    let kernel = FakeDevNode::new(DevNodeConfig::default());
    let dev_node = kernel.open_dev_node().unwrap();
    let fd = buffer(4096);
    let written = |micros| {
        // SAFETY: the test's own memory, which no other code touches.
        unsafe { DmaBuf::import_written(&dev_node, fd.as_fd(), Duration::from_micros(micros)) }
            .map(drop)
    };
    assert_eq!([0, 10_000_000].map(written), [Ok(()); 2]);
    kernel.refuse(Call::Written, libc::ETIMEDOUT);
    assert_eq!(written(1), Err(os("ppoll(dma-buf)", libc::ETIMEDOUT)));
    assert_eq!(kernel.imports(), 0, "it was not imported");
}

#[test]
fn a_region_is_exported_where_it_is_a_dma_buf() {
    let kernel = FakeDevNode::new(DevNodeConfig::default());
    let dev_node = kernel.open_dev_node().unwrap();
    let region =
        contigo::Region::new(DmaHeap::allocate_for_from(heap(), &dev_node, HEAP, 8192).unwrap())
            .unwrap();
    // SAFETY: the fake's devices touch nothing.
    let fd = unsafe { region.export() }.unwrap().as_fd().try_clone_to_owned().unwrap();
    let mut buf = region.alloc(64, Align::LINE).unwrap();
    buf.view_mut::<u8>().unwrap().fill(0xA5);
    let mut bytes = [0; 64];
    std::os::unix::fs::FileExt::read_exact_at(
        &std::fs::File::from(fd.try_clone().unwrap()),
        &mut bytes,
        0,
    )
    .unwrap();
    assert_eq!(bytes, [0xA5; 64], "the same memory");
    drop(buf);
    // Another device takes it.
    let other = FakeDevNode::new(DevNodeConfig::default());
    let other_node = other.open_dev_node().unwrap();
    assert_eq!(import(&other_node, &fd).unwrap().mapping().len_bytes, 8192);
}
