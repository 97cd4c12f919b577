//! Memory that the module allocates for a contigo device: ranged syncs, refusals with their cure,
//! an export, and what is given back.

use super::{HP0, import, os, syncs_nothing_beyond};
use contigo::{
    Align, Backend as _, Bus, DevAddr, Direction, Error, PhysAddr, Region, mem::SyncScope,
    types::BaseAddr,
};
use contigo_testkit::{
    fake_dev_node::{Call, DevNodeConfig, Event, FakeDevNode, OFFSET},
    fake_dma_heap::page_bytes,
};
use nix::libc;
use std::{fs::File, ops::Range, os::fd::AsFd as _, os::unix::fs::FileExt as _};

fn bytes_of(pages: u64) -> usize {
    (pages * page_bytes()).try_into().unwrap()
}

fn synced(handle: u32, for_cpu: bool, range: Range<u64>) -> Event {
    Event::Synced { handle, for_cpu, start: range.start, end: range.end }
}

#[test]
fn a_device_has_memory_of_its_own() {
    for (coherent, translated) in [(false, false), (true, false), (false, true), (true, true)] {
        let kernel =
            FakeDevNode::new(DevNodeConfig { coherent, translated, ..DevNodeConfig::default() });
        let dev_node = kernel.open_dev_node().unwrap();
        let block = dev_node.allocate(bytes_of(1) + 1).unwrap();
        let mapping = block.mapping();
        assert_eq!(
            (block.name(), mapping.len_bytes, mapping.coherent),
            ("contigo", bytes_of(2), Some(coherent))
        );
        assert_eq!(
            mapping.scope,
            if coherent { SyncScope::Coherent } else { SyncScope::Range { granule_bytes: 64 } }
        );
        let (bus, base) = (dev_node.seen_through(HP0).bus, mapping.base);
        assert_eq!(
            (mapping.bus, bus == Bus::Soc),
            (bus, !translated),
            "addresses of this device's alone where it translates"
        );
        let expected = if translated {
            BaseAddr::Dev(DevAddr(0x1000_0000 + OFFSET))
        } else {
            BaseAddr::Phys(PhysAddr(0x1000_0000))
        };
        assert_eq!(base, expected);
        let mut written = [1; 8];
        kernel.device_read(base.raw(), &mut written).unwrap();
        assert_eq!(written, [0; 8], "it is zeroed");
    }
}

/// What a foreign dma-buf cannot be on a port that does not snoop.
#[test]
fn it_holds_many_buffers() {
    let kernel = FakeDevNode::new(DevNodeConfig::default());
    let dev_node = kernel.open_dev_node().unwrap();
    let region = Region::new(dev_node.allocate(bytes_of(4)).unwrap()).unwrap();
    let pool = region.pool(8, 256).unwrap();
    let _other = region.alloc(64, Align::LINE).unwrap();
    let (first, second) = (pool.take().unwrap(), pool.take().unwrap());
    kernel.log();
    // SAFETY: no device is given the address.
    let second = unsafe { second.hand_over(&HP0, 32, .., Direction::FromDevice) }.unwrap();
    assert_eq!(kernel.log(), [synced(1, false, 256..512)], "its own lines and no others");
    drop(second.into_cpu().unwrap());
    assert_eq!(kernel.log(), [synced(1, true, 256..512)]);
    // SAFETY: as above.
    let first = unsafe { first.hand_over(&HP0, 32, 3..70, Direction::ToDevice) }.unwrap();
    assert_eq!(kernel.log(), [synced(1, false, 3..70)], "what is only read is named exactly");
    drop(first.into_cpu().unwrap());
    assert_eq!(kernel.log(), []);
}

#[test]
fn syncs_are_whole_lines_where_the_device_writes() {
    let kernel = FakeDevNode::new(DevNodeConfig { granule_bytes: 256, ..DevNodeConfig::default() });
    let dev_node = kernel.open_dev_node().unwrap();
    let len_bytes = bytes_of(1);
    let block = dev_node.allocate(len_bytes).unwrap();
    assert_eq!(
        block.mapping().scope,
        SyncScope::Range { granule_bytes: 256 },
        "the granule is the kernel's"
    );
    kernel.log();
    let end = len_bytes as u64;
    // SAFETY: no reference to the block is alive.
    unsafe {
        block.sync_for_device(3..70, Direction::ToDevice).unwrap();
        block.sync_for_device(3..70, Direction::FromDevice).unwrap();
        block.sync_for_cpu(3..70, Direction::ToDevice).unwrap();
        block.sync_for_cpu(300..301, Direction::FromDevice).unwrap();
        block.sync_for_cpu(len_bytes - 1..len_bytes, Direction::Bidirectional).unwrap();
    }
    let expected = [
        synced(1, false, 3..70),
        synced(1, false, 0..256),
        synced(1, true, 256..512),
        synced(1, true, end - 256..end),
    ];
    assert_eq!(kernel.log(), expected);
    // SAFETY: as above.
    unsafe { syncs_nothing_beyond(&block, len_bytes) };
    assert_eq!(kernel.log(), [], "nothing of nothing");
    kernel.refuse(Call::Sync, libc::ENODEV);
    // SAFETY: as above.
    let gone = unsafe { block.sync_for_cpu(0..64, Direction::FromDevice) };
    assert_eq!(gone, Err(os("ioctl(CONTIGO_SYNC)", libc::ENODEV)));
    kernel.refuse(Call::Open, 0);
    let region = Region::new(block).unwrap();
    assert_eq!(
        (region.line(), region.alloc(1, Align::MIN).unwrap().len_bytes()),
        (Align::DLPACK, 256)
    );
}

#[test]
fn coherent_memory_asks_the_kernel_for_no_sync() {
    for coherent in [false, true] {
        let kernel = FakeDevNode::new(DevNodeConfig { coherent, ..DevNodeConfig::default() });
        let dev_node = kernel.open_dev_node().unwrap();
        let region = contigo::Region::new(dev_node.allocate_coherent(100).unwrap()).unwrap();
        let allocated = Event::Allocated {
            handle: 1,
            addr: 0x1000_0000,
            len_bytes: page_bytes(),
            coherent: true,
        };
        assert_eq!(kernel.log(), [allocated], "no first touch either");
        let port = contigo::Port { coherent, ..HP0 };
        let [ring, _other] = [(); 2].map(|()| region.alloc(64, Align::LINE).unwrap());
        // SAFETY: no device is given the address.
        drop(
            unsafe { ring.hand_over(&port, 32, .., Direction::Bidirectional) }
                .unwrap()
                .into_cpu()
                .unwrap(),
        );
        assert_eq!(kernel.log(), []);
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
    let kernel = FakeDevNode::new(DevNodeConfig { max_bytes: 1 << 20, ..DevNodeConfig::default() });
    let dev_node = kernel.open_dev_node().unwrap();
    let need_bytes = bytes_of(1);
    for (errno, cure) in [(libc::ENOMEM, "cma="), (libc::EDQUOT, "max_mib")] {
        kernel.refuse(Call::Alloc, errno);
        let refused = dev_node.allocate(5).unwrap_err();
        assert!(
            matches!(refused, Error::NoMemory { need_bytes: found, errno: why, .. }
                if (found, why) == (need_bytes, errno)),
            "{refused:?}"
        );
        assert!(refused.to_string().contains(cure) && refused.errno() == errno, "{refused}");
    }
    kernel.refuse(Call::Alloc, libc::ENODEV);
    assert_eq!(dev_node.allocate(5).map(drop), Err(os("ioctl(CONTIGO_ALLOC)", libc::ENODEV)));
    kernel.refuse(Call::Open, 0);
    assert!(matches!(
        dev_node.allocate((1 << 20) + 1),
        Err(Error::NoMemory { errno: libc::EDQUOT, .. })
    ));
    for len_bytes in [0, usize::MAX, isize::MAX as usize + 1] {
        let refused = dev_node.allocate(len_bytes).unwrap_err();
        assert!(
            matches!(refused, Error::Argument { name: "len_bytes", value, .. }
                if value == len_bytes as u64),
            "{refused:?}"
        );
    }
    assert_eq!(kernel.log(), []);
    let full = FakeDevNode::new(DevNodeConfig::default());
    let dev_node = full.open_dev_node().unwrap();
    let mut blocks: Vec<_> = (0..256).map(|_| dev_node.allocate(1).unwrap()).collect();
    let most =
        Error::TooMany { what: "buffers of a contigo device, with those in quarantine", most: 256 };
    assert_eq!(dev_node.allocate(1).map(drop), Err(most));
    blocks.pop();
    dev_node.allocate(1).unwrap();
}

#[test]
fn what_cannot_be_mapped_is_released() {
    let kernel = FakeDevNode::new(DevNodeConfig::default());
    let dev_node = kernel.open_dev_node().unwrap();
    kernel.refuse(Call::Map, libc::ENODEV);
    assert_eq!(dev_node.allocate(1).map(drop), Err(os("mmap(/dev/contigo/)", libc::ENODEV)));
    assert_eq!(kernel.imports(), 0);
    for more_offset in [1, page_bytes() / 2] {
        let kernel = FakeDevNode::new(DevNodeConfig { more_offset, ..DevNodeConfig::default() });
        let dev_node = kernel.open_dev_node().unwrap();
        let value = (1 << 35) + more_offset;
        assert_eq!(
            dev_node.allocate(1).map(drop),
            Err(Error::Unexpected { name: "mmap_offset of CONTIGO_ALLOC", value })
        );
        assert_eq!(kernel.imports(), 0);
    }
}

#[test]
fn dropped_memory_returns_unless_it_is_out() {
    let kernel = FakeDevNode::new(DevNodeConfig::default());
    let dev_node = kernel.open_dev_node().unwrap();
    let len_bytes = page_bytes();
    drop(Region::new(dev_node.allocate(1).unwrap()).unwrap());
    let allocated = Event::Allocated { handle: 1, addr: 0x1000_0000, len_bytes, coherent: false };
    assert_eq!(
        kernel.log(),
        [
            allocated,
            synced(1, false, 0..len_bytes),
            synced(1, true, 0..len_bytes),
            Event::Released(1)
        ]
    );
    let region = Region::new(dev_node.allocate(1).unwrap()).unwrap();
    std::mem::forget(region.alloc(64, Align::LINE).unwrap());
    drop(region);
    assert_eq!(kernel.imports(), 1, "leaked, not freed");
    assert_eq!(dev_node.info().unwrap().buffers, 1);
    assert_eq!(dev_node.set_addr_bits(32), Err(os("ioctl(CONTIGO_SET_DMA_BITS)", libc::EBUSY)));
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
}

#[test]
fn export_is_same_memory_for_other_device() {
    let kernel = FakeDevNode::new(DevNodeConfig::default());
    let dev_node = kernel.open_dev_node().unwrap();
    let region = contigo::Region::new(dev_node.allocate(1).unwrap()).unwrap();
    // SAFETY: the fake's devices touch nothing.
    let export = || unsafe { region.export() };
    let fd = export().unwrap().as_fd().try_clone_to_owned().unwrap();
    let mut buf = region.alloc(64, Align::LINE).unwrap();
    buf.view_mut::<u8>().unwrap().fill(0xA5);
    let mut bytes = [0; 64];
    File::from(fd.try_clone().unwrap()).read_exact_at(&mut bytes, 0).unwrap();
    assert_eq!(bytes, [0xA5; 64]);
    let other = FakeDevNode::new(DevNodeConfig::default());
    let other = other.open_dev_node().unwrap();
    assert_eq!(import(&other, &fd).unwrap().mapping().len_bytes, bytes_of(1));
    assert_eq!(
        import(&dev_node, &fd).map(drop),
        Err(os("ioctl(CONTIGO_IMPORT)", libc::EINVAL)),
        "its own device has it"
    );
    kernel.refuse(Call::Export, libc::EMFILE);
    assert_eq!(export().map(drop), Err(os("ioctl(CONTIGO_EXPORT)", libc::EMFILE)));
}
