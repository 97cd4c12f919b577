//! A device's memory, of its own or imported: syncs, refusals with their cure, an export, and what
//! is given back.

use super::imports::{buffer, import};
use super::{HP0, bytes_of, on_heap, opened, os, plain, synced};
use contigo::job::{StopProgram, StopStep};
use contigo::linux::dev_node::DevNode;
use contigo::mem::{MAX_SYNC_RANGES, SyncRange, SyncScope};
use contigo::{Align, Backend, Direction, Error, Port, Region};
use contigo_testkit::direct::{DirectSync as _, sync_list};
use contigo_testkit::fake_dev_node::{DevNodeConfig, Event, FakeDevNode};
use contigo_testkit::fake_dma_heap::{HEAP, page_bytes};
use nix::libc;
use std::fs::File;
use std::ops::Range;
use std::os::fd::AsFd as _;
use std::os::unix::fs::FileExt as _;

/// Its device writes whole lines, so a sync names whole lines; an imported block's exporter knows
/// no ranges.
#[test]
fn syncs_are_ranged_or_of_all() {
    let (kernel, dev_node) =
        opened(DevNodeConfig { granule_bytes: 256, ..DevNodeConfig::default() });
    let block = dev_node.allocate(bytes_of(1)).unwrap();
    assert_eq!(block.mapping().scope, SyncScope::Range { granule_bytes: 256 }, "the kernel's");
    let end = bytes_of(1);
    let to_device = [synced(false, 3..70), synced(false, 0..256)];
    let to_cpu = [synced(true, 256..512), synced(true, end - 256..end)];
    syncs(&kernel, &block, &[to_device, to_cpu].concat());
    let region = Region::new(block).unwrap();
    let buf = region.alloc(1, Align::MIN).unwrap();
    assert_eq!((region.line(), buf.len_bytes()), (Align::DLPACK, 256));

    let (kernel, dev_node) = plain();
    let block = import(&dev_node, &buffer(8192)).unwrap();
    assert_eq!(block.name(), "dma-buf");
    let to_and_from = [false, false, true, true].map(|for_cpu| synced(for_cpu, 0..8192));
    syncs(&kernel, &block, &to_and_from);
}

/// Syncs some ranges of a block that is alone in `kernel`, which must see `expected`; and refuses
/// what is not all within the block.
fn syncs(kernel: &FakeDevNode, block: &impl Backend, expected: &[Event]) {
    let len_bytes = block.mapping().len_bytes;
    kernel.log();
    block.device_sync(3..70, Direction::ToDevice).unwrap();
    block.device_sync(3..70, Direction::FromDevice).unwrap();
    block.cpu_sync(3..70, Direction::ToDevice).unwrap();
    block.cpu_sync(300..301, Direction::FromDevice).unwrap();
    block.cpu_sync(len_bytes - 1..len_bytes, Direction::Bidirectional).unwrap();
    assert_eq!(kernel.log(), expected);
    for direction in [Direction::ToDevice, Direction::FromDevice, Direction::Bidirectional] {
        let (whole, most) = (len_bytes + 1, usize::MAX);
        for (start, end) in [(0, whole), (whole, whole + 1), (0, most), (most, most), (70, 3)] {
            let beyond = Err(Error::OutOfRange { start, end, len_bytes });
            assert_eq!(block.device_sync(Range { start, end }, direction), beyond);
            if direction.device_writes() {
                assert_eq!(block.cpu_sync(Range { start, end }, direction), beyond);
            }
        }
        block.device_sync(5..5, direction).and(block.cpu_sync(5..5, direction)).unwrap();
    }
    assert_eq!(kernel.log(), [], "nothing of nothing");
    kernel.refuse("ioctl(CONTIGO_SYNC)", libc::ENODEV);
    let gone = block.cpu_sync(0..64, Direction::FromDevice);
    assert_eq!(gone, Err(os("ioctl(CONTIGO_SYNC)", libc::ENODEV)));
    kernel.refuse_none();
}

/// A burst of packets is one call, for what is handed over and for what comes back.
#[test]
fn list_of_ranges_is_one_call() {
    const SLOTS: usize = 8;
    let (kernel, dev_node) = plain();
    let block = dev_node.allocate(bytes_of(1)).unwrap();
    let slots = || (0..SLOTS).map(|slot| slot * 256..slot * 256 + 100);
    let whole = |for_cpu| {
        let lines = slots().map(move |slot| synced(for_cpu, slot.start..slot.start + 128));
        lines.collect::<Vec<_>>()
    };
    let written = sync_list(Direction::FromDevice, slots());
    block.device_sync_all(&written).unwrap();
    assert_eq!((kernel.sync_calls(), kernel.log().split_off(1)), (1, whole(false)));
    block.cpu_sync_all(&written).unwrap();
    assert_eq!((kernel.sync_calls(), kernel.log()), (1, whole(true)));

    // Each by its own direction; empty ones, and what the device only read, are left out.
    let mixed = [
        SyncRange { range: 3..70, direction: Direction::ToDevice },
        SyncRange { range: 5..5, direction: Direction::FromDevice },
        SyncRange { range: 300..301, direction: Direction::Bidirectional },
    ];
    block.device_sync_all(&mixed).unwrap();
    let there = [synced(false, 3..70), synced(false, 256..320)];
    assert_eq!((kernel.sync_calls(), kernel.log()), (1, there.to_vec()));
    block.cpu_sync_all(&mixed).unwrap();
    assert_eq!((kernel.sync_calls(), kernel.log()), (1, vec![synced(true, 256..320)]));
    block.cpu_sync_all(mixed.get(..2).unwrap()).unwrap();
    block.device_sync_all(&[]).unwrap();
    assert_eq!((kernel.sync_calls(), kernel.log()), (0, vec![]), "nothing of nothing");

    let coherent = dev_node.allocate_coherent(bytes_of(1)).unwrap();
    coherent.device_sync_all(&written).and(coherent.cpu_sync_all(&written)).unwrap();
    assert_eq!(kernel.sync_calls(), 0);

    // A foreign dma-buf is synced as a whole, so it is once for all ranges.
    let (foreign, dev_node) = plain();
    let import = import(&dev_node, &buffer(8192)).unwrap();
    foreign.log();
    import.device_sync_all(&written).and(import.cpu_sync_all(&written)).unwrap();
    assert_eq!(foreign.log(), [synced(false, 0..8192), synced(true, 0..8192)]);
    import.cpu_sync_all(&sync_list(Direction::ToDevice, slots())).unwrap();
    import.device_sync_all(&sync_list(Direction::ToDevice, [5..5, 9..9])).unwrap();
    assert_eq!(foreign.log(), []);

    foreign.sync_calls();
    for block in [&block as &dyn Backend, &coherent, &import] {
        refuses_lists(&[&kernel, &foreign], block);
    }
    let many = sync_list(Direction::FromDevice, vec![0..64; MAX_SYNC_RANGES + 1]);
    let too_many = Error::TooMany { what: "ranges of one sync", most: MAX_SYNC_RANGES as u64 };
    assert_eq!(block.device_sync_all(&many), Err(too_many));
    assert_eq!(kernel.sync_calls(), 0);
    block.device_sync_all(many.get(1..).unwrap()).unwrap();
    assert_eq!((kernel.sync_calls(), kernel.log().len()), (1, 1 + MAX_SYNC_RANGES));
}

/// One range that is not within the block, and none is synced.
fn refuses_lists(kernels: &[&FakeDevNode], block: &dyn Backend) {
    let len_bytes = block.mapping().len_bytes;
    let ranges = [0..64, 64..len_bytes + 1, 128..192];
    let beyond = Err(Error::OutOfRange { start: 64, end: len_bytes + 1, len_bytes });
    for direction in [Direction::ToDevice, Direction::FromDevice] {
        let list = sync_list(direction, ranges.clone());
        assert_eq!(block.device_sync_all(&list), beyond);
        assert_eq!(block.cpu_sync_all(&list), beyond);
    }
    assert!(kernels.iter().all(|kernel| kernel.sync_calls() == 0));
}

/// What a foreign dma-buf cannot be on a port that does not snoop.
#[test]
fn own_memory_holds_many_buffers() {
    let (kernel, dev_node) = plain();
    let region = Region::new(dev_node.allocate(bytes_of(4)).unwrap()).unwrap();
    let pool = region.pool(8, 256).unwrap();
    let _other = region.alloc(64, Align::LINE).unwrap();
    let (first, second) = (pool.take().unwrap(), pool.take().unwrap());
    kernel.log();
    // SAFETY: no device is given the address.
    let second = unsafe { second.hand_over(&HP0, 32, .., Direction::FromDevice) }.unwrap();
    assert_eq!(kernel.log(), [synced(false, 256..512)], "its own lines and no others");
    drop(second.into_cpu().unwrap());
    assert_eq!(kernel.log(), [synced(true, 256..512)]);
    // SAFETY: as above.
    let first = unsafe { first.hand_over(&HP0, 32, 3..70, Direction::ToDevice) }.unwrap();
    assert_eq!(kernel.log(), [synced(false, 3..70)], "what is only read is named exactly");
    drop(first.into_cpu().unwrap());
    assert_eq!(kernel.log(), []);
}

#[test]
fn coherent_memory_asks_the_kernel_for_no_sync() {
    for coherent in [false, true] {
        let (kernel, dev_node) = opened(DevNodeConfig { coherent, ..DevNodeConfig::default() });
        let region = Region::new(dev_node.allocate_coherent(100).unwrap()).unwrap();
        assert_eq!(kernel.log(), [allocated(true)], "no first touch either");
        let [ring, _other] = [(); 2].map(|()| region.alloc(64, Align::LINE).unwrap());
        let port = Port { coherent, ..HP0 };
        // SAFETY: no device is given the address.
        let ring = unsafe { ring.hand_over(&port, 32, .., Direction::Bidirectional) }.unwrap();
        drop(ring.into_cpu().unwrap());
        // SAFETY: no other code touches it.
        let refused = unsafe { region.export() }.unwrap_err();
        assert!(
            matches!(refused, Error::Unsupported { fix: "export memory of DevNode::allocate", .. }),
            "{refused}"
        );
        assert_eq!(kernel.log(), [], "the kernel is not asked");
    }
}

#[test]
fn a_refusal_says_what_to_change() {
    let (kernel, dev_node) =
        opened(DevNodeConfig { max_bytes: 1 << 20, ..DevNodeConfig::default() });
    for (errno, cure) in [(libc::ENOMEM, "cma="), (libc::EDQUOT, "max_mib")] {
        kernel.refuse("ioctl(CONTIGO_ALLOC)", errno);
        let refused = dev_node.allocate(5).unwrap_err();
        assert!(
            matches!(refused, Error::NoMemory { need_bytes, errno: why, .. }
                if (need_bytes, why) == (bytes_of(1), errno)),
            "{refused:?}"
        );
        assert!(refused.to_string().contains(cure) && refused.errno() == errno, "{refused}");
    }
    kernel.refuse("ioctl(CONTIGO_ALLOC)", libc::ENODEV);
    assert_eq!(dev_node.allocate(5).map(drop), Err(os("ioctl(CONTIGO_ALLOC)", libc::ENODEV)));
    kernel.refuse_none();
    let too_large = dev_node.allocate((1 << 20) + 1);
    assert!(matches!(too_large, Err(Error::NoMemory { errno: libc::EDQUOT, .. })));
    for len_bytes in [0, usize::MAX, isize::MAX as usize + 1] {
        let refused = dev_node.allocate(len_bytes).unwrap_err();
        assert!(
            matches!(refused, Error::Argument { name: "len_bytes", value, .. }
                if value == len_bytes as u64),
            "{refused:?}"
        );
    }
    assert_eq!(kernel.log(), []);
    let (_kernel, dev_node) = plain();
    let mut blocks: Vec<_> = (0..256).map(|_| dev_node.allocate(1).unwrap()).collect();
    let what = "buffers of a contigo device, with those in quarantine";
    assert_eq!(dev_node.allocate(1).map(drop), Err(Error::TooMany { what, most: 256 }));
    blocks.pop();
    dev_node.allocate(1).unwrap();
}

#[test]
fn what_cannot_be_mapped_is_released() {
    let (kernel, dev_node) = plain();
    kernel.refuse("mmap(/dev/contigo/)", libc::ENODEV);
    assert_eq!(dev_node.allocate(1).map(drop), Err(os("mmap(/dev/contigo/)", libc::ENODEV)));
    assert_eq!(kernel.imports(), 0);
    for more_offset in [1, page_bytes() / 2] {
        let (kernel, dev_node) = opened(DevNodeConfig { more_offset, ..DevNodeConfig::default() });
        let (name, value) = ("mmap_offset of CONTIGO_ALLOC", (1 << 35) + more_offset);
        assert_eq!(dev_node.allocate(1).map(drop), Err(Error::Unexpected { name, value }));
        assert_eq!(kernel.imports(), 0);
    }
}

fn allocated(coherent: bool) -> Event {
    Event::Allocated { handle: 1, addr: 0x1000_0000, len_bytes: page_bytes(), coherent }
}

#[test]
fn dropped_is_released_forgotten_is_kept() {
    released_or_kept(|dev_node| dev_node.allocate(1).unwrap(), allocated(false));
    let len_bytes = 2 * page_bytes();
    let imported = Event::Imported { handle: 1, addr: 0x1000_0000, len_bytes };
    released_or_kept(|dev_node| on_heap(dev_node, HEAP, bytes_of(2)).unwrap(), imported);
}

fn released_or_kept<B: Backend + 'static>(make: impl Fn(&DevNode) -> B, made: Event) {
    let (kernel, dev_node) = plain();
    let region = Region::new(make(&dev_node)).unwrap();
    let len_bytes = region.len_bytes();
    drop(region);
    // Its first touch, by which the region takes it, is a hand-over there and back.
    let [there, back] = [false, true].map(|for_cpu| synced(for_cpu, 0..len_bytes));
    assert_eq!(kernel.log(), [made, there, back, Event::Released(1)]);
    let region = Region::new(make(&dev_node)).unwrap();
    std::mem::forget(region.alloc(64, Align::LINE).unwrap());
    drop(region);
    assert_eq!((kernel.imports(), dev_node.info().unwrap().buffers), (1, 1), "leaked, not freed");
    assert_eq!(dev_node.set_addr_bits(32), Err(os("ioctl(CONTIGO_SET_DMA_BITS)", libc::EBUSY)));
    drop(dev_node);
    assert!(
        !matches!(kernel.log().last(), Some(Event::Closed { .. })),
        "the forgotten buffer keeps the file open"
    );
    kernel.end_program();
    // Nothing has stopped the device. The next program that opens it sees what is kept.
    assert_eq!(kernel.log().last(), Some(&Event::Closed { kept: 1 }));
    let info = kernel.open_dev_node().unwrap().info().unwrap();
    let kept = (info.buffers, info.quarantined, info.quarantined_bytes);
    assert_eq!(kept, (0, 1, len_bytes as u64));
}

#[test]
fn what_stops_the_device_gives_memory_back() {
    let stops = StopProgram::new(&[StopStep::poll_until(0, 1, 0, 0)]).unwrap();
    for (programs, can_reset, kept) in [
        (vec![stops.clone()], false, 0),
        (vec![stops, StopProgram::NONE], false, 1),
        (vec![], false, 1),
        (vec![], true, 0),
    ] {
        let (kernel, dev_node) = opened(DevNodeConfig { can_reset, ..DevNodeConfig::default() });
        for program in &programs {
            // SAFETY: the fake has no device.
            unsafe { dev_node.arm(program, 0).unwrap() };
            let armed = !program.steps().is_empty();
            assert_eq!(dev_node.info().unwrap().armed, armed, "an empty program disarms");
        }
        std::mem::forget(dev_node.allocate(1).unwrap());
        drop(dev_node);
        kernel.end_program();
        assert_eq!(kernel.kept(), kept, "{programs:?}");
    }
    // An import that could not be released is kept, too.
    let (kernel, dev_node) = plain();
    let block = import(&dev_node, &buffer(4096)).unwrap();
    kernel.refuse("ioctl(CONTIGO_RELEASE)", libc::EIO);
    drop((block, dev_node));
    assert_eq!(kernel.kept(), 1);
}

#[test]
fn export_is_same_memory_for_other_device() {
    let (kernel, dev_node) = plain();
    exported(Region::new(on_heap(&dev_node, HEAP, bytes_of(1)).unwrap()).unwrap());
    let region = Region::new(dev_node.allocate(1).unwrap()).unwrap();
    let fd = exported(region.clone());
    assert_eq!(
        import(&dev_node, &fd).map(drop),
        Err(os("ioctl(CONTIGO_IMPORT)", libc::EINVAL)),
        "its own device has it"
    );
    kernel.refuse("ioctl(CONTIGO_EXPORT)", libc::EMFILE);
    // SAFETY: the fake's devices touch nothing.
    let refused = unsafe { region.export() }.map(drop);
    assert_eq!(refused, Err(os("ioctl(CONTIGO_EXPORT)", libc::EMFILE)));
}

/// Exports a region of one page, whose bytes the file shows, and imports it for another device.
fn exported(region: Region) -> std::os::fd::OwnedFd {
    // SAFETY: the fake's devices touch nothing.
    let fd = unsafe { region.export() }.unwrap().as_fd().try_clone_to_owned().unwrap();
    let mut buf = region.alloc(64, Align::LINE).unwrap();
    buf.view_mut::<u8>().unwrap().fill(0xA5);
    let mut bytes = [0; 64];
    File::from(fd.try_clone().unwrap()).read_exact_at(&mut bytes, 0).unwrap();
    assert_eq!(bytes, [0xA5; 64]);
    let (_kernel, other) = plain();
    assert_eq!(import(&other, &fd).unwrap().mapping().len_bytes, bytes_of(1));
    fd
}
