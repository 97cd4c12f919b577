//! Memory: mapped, unmapped, revoked, leaked.

use super::{opened, unsuitable};
use contigo::linux::vfio::VfioMemory;
use contigo::types::BaseAddr;
use contigo::{Align, Backend, Bus, DevAddr, Error, PhysAddr, Region};
use contigo_testkit::emulated;
use contigo_testkit::fake_vfio::{Event, Machine, Refused, Way};
use contigo_testkit::mapped::is_mapped;
use nix::errno::Errno;
use nix::libc;
use std::fs;

/// Both ways, and the call that unmaps there.
const WAYS: [(Way, &str); 2] =
    [(Way::Group, "ioctl(VFIO_IOMMU_UNMAP_DMA)"), (Way::Iommufd, "ioctl(IOMMU_IOAS_UNMAP)")];

fn iova(memory: &VfioMemory) -> u64 {
    let BaseAddr::Dev(DevAddr(iova)) = memory.mapping().base else {
        panic!("{:?}", memory.mapping())
    };
    iova
}

#[test]
fn a_block_is_whole_pages_zeroed_and_one_run() {
    for (way, _) in WAYS {
        let (kernel, vfio) = opened(Machine::with(way));
        for (len_bytes, whole_bytes) in [(1, 4096), (4096, 4096), (4097, 8192), (3 << 20, 3 << 20)]
        {
            let memory = vfio.memory(len_bytes).unwrap();
            let mapping = memory.mapping();
            assert_eq!(
                (memory.name(), mapping.len_bytes, mapping.bus),
                ("vfio", whole_bytes, vfio.port().bus)
            );
            let (at, end) = (iova(&memory), iova(&memory) + whole_bytes as u64);
            let mut bytes = vec![1; whole_bytes];
            kernel.device_read(at, &mut bytes).unwrap();
            assert!(bytes.iter().all(|byte| *byte == 0), "zeroed");
            let behind = kernel.device_read(end, &mut [0]);
            assert_eq!(behind, Err(Refused { iova: end }), "and nothing behind it");
            let run = memory.segment(4095).unwrap();
            assert_eq!((run.addr, run.len_bytes), (at + 4095, whole_bytes - 4095));
            // The same alignment on both sides, as far as the block is large.
            let step = whole_bytes.next_power_of_two().min(2 << 20) as u64;
            assert_eq!(mapping.cpu.as_ptr().addr() as u64 % step, at % step);
        }
        for len_bytes in [0, (1 << 30) + 1, usize::MAX] {
            let refused = vfio.memory(len_bytes).unwrap_err();
            assert!(
                matches!(refused, Error::Argument { name: "len_bytes", value, max: 0x4000_0000, .. }
                    if value == len_bytes as u64)
            );
        }
    }
}

#[test]
fn places_are_low_and_come_back() {
    let (kernel, vfio) = opened(Machine::default());
    let blocks: Vec<_> = (0..64).map(|_| vfio.memory(4096).unwrap()).collect();
    let addrs: Vec<_> = blocks.iter().map(iova).collect();
    assert!(addrs.iter().all(|addr| (0x1_0000..0x10_0000).contains(addr)), "{addrs:x?}");
    assert_eq!(
        vfio.memory(4096).unwrap_err(),
        Error::TooMany { what: "blocks mapped for one VFIO device", most: 64 }
    );
    drop(blocks);
    assert_eq!((kernel.mapped(), vfio.leaked_bytes()), (0, Ok(0)));
    assert_eq!(iova(&vfio.memory(4096).unwrap()), addrs[0]);
    // Only above the doorbells is there room for so much.
    assert!(iova(&vfio.memory(128 << 20).unwrap()) >= 0x810_0000);
    // A buffer may be aligned like the block.
    let region = Region::new(vfio.memory(8 << 20).unwrap()).unwrap();
    let buf = region.alloc(4096, Align::new(2 << 20).unwrap()).unwrap();
    assert_eq!((region.base().raw() + buf.offset_bytes() as u64) % (2 << 20), 0);
    let small = Machine { ranges: vec![(0, 0x1_FFFF)], ..Machine::default() };
    let (_kernel, vfio) = opened(small);
    assert_eq!(
        vfio.memory(0x1_1000).unwrap_err(),
        Error::Exhausted { need_bytes: 0x1_1000, capacity_bytes: 0x2_0000 }
    );
}

#[test]
fn unmappable_memory_frees_its_place() {
    for (way, call) in
        [(Way::Group, "ioctl(VFIO_IOMMU_MAP_DMA)"), (Way::Iommufd, "ioctl(IOMMU_IOAS_MAP)")]
    {
        let limit_bytes = 1 << 20;
        let (kernel, vfio) =
            opened(Machine { pin_limit_bytes: Some(limit_bytes), ..Machine::with(way) });
        let refused = |len_bytes| vfio.memory(len_bytes).unwrap_err();
        let before = iova(&vfio.memory(4096).unwrap());
        for errno in [Errno::EEXIST, Errno::EFAULT, Errno::EINVAL] {
            kernel.fail(call, 0, errno);
            assert_eq!(refused(4096), Error::Os { call, errno: errno as i32 });
        }
        kernel.fail(call, 0, Errno::ENOSPC);
        let full = ("VFIO maps no more blocks for this program", 0);
        assert_eq!(unsuitable(refused(4096)), full);
        let need_bytes = (1 << 20) + 4096;
        assert_eq!(refused((1 << 20) + 1), Error::PinLimit { need_bytes, limit_bytes });
        let most = vfio.memory(1 << 20).unwrap();
        assert_eq!(refused(1), Error::PinLimit { need_bytes: 4096, limit_bytes });
        drop(most);
        assert_eq!(iova(&vfio.memory(4096).unwrap()), before);
        assert_eq!(kernel.mapped(), 0);
    }
    // Without a limit it is the machine that has no memory.
    let (kernel, vfio) = opened(Machine::default());
    kernel.fail("ioctl(IOMMU_IOAS_MAP)", 0, Errno::ENOMEM);
    let no_memory = Error::Os { call: "ioctl(IOMMU_IOAS_MAP)", errno: libc::ENOMEM };
    assert_eq!(vfio.memory(4096).unwrap_err(), no_memory);
}

#[test]
fn block_leaves_device_before_it_is_freed() {
    for (way, _) in WAYS {
        let (kernel, vfio) = opened(Machine::with(way));
        let memory = vfio.memory(64 << 10).unwrap();
        let (cpu, at) = (memory.mapping().cpu.as_ptr().addr(), iova(&memory));
        assert!(is_mapped(cpu, 1));
        drop(memory);
        assert!(!kernel.freed_too_early() && kernel.mapped() == 0);
        assert_eq!(kernel.log().last(), Some(&Event::Unmapped { iova: at, size: 64 << 10 }));
        assert_eq!(kernel.device_write(at, &[1]), Err(Refused { iova: at }));
        // Freed as well: mapping and dropping without end does not fill the address space.
        let count = || fs::read_to_string("/proc/self/maps").unwrap().lines().count();
        let before = count();
        (0..200).for_each(|_| drop(vfio.memory(64 << 10).unwrap()));
        assert!(count() < before + 50, "{before} mappings, then {}", count());
    }
}

#[test]
fn what_cannot_be_unmapped_is_leaked_and_counted() {
    for (way, call) in WAYS {
        let (kernel, vfio) = opened(Machine::with(way));
        let memory = vfio.memory(8192).unwrap();
        let (cpu, at) = (memory.mapping().cpu.as_ptr().addr(), iova(&memory));
        kernel.fail(call, 0, Errno::EIO);
        drop(memory);
        assert!(is_mapped(cpu, 8192), "never freed while the device may reach it");
        assert_eq!((vfio.leaked_bytes(), kernel.mapped()), (Ok(8192), 1));
        assert_ne!(iova(&vfio.memory(4096).unwrap()), at, "nor its place given to another");
        kernel.device_write(at, &[7; 8192]).unwrap();

        // The same with the error in hand, and a second try.
        let memory = vfio.memory(4096).unwrap();
        kernel.fail(call, 0, Errno::EIO);
        let refused = memory.unmap().unwrap_err();
        assert!(matches!(refused.error, Error::Os { errno: libc::EIO, .. }), "{refused}");
        let memory = refused.into_returned();
        let mapping = memory.mapping();
        assert!(is_mapped(mapping.cpu.as_ptr().addr(), 1) && mapping.len_bytes == 4096);
        memory.unmap().unwrap();
        assert_eq!(vfio.leaked_bytes(), Ok(8192));

        // A kernel that unmaps less than it was asked to, and returns that number.
        let (kernel, vfio) = opened(Machine { unmaps_less: 4096, ..Machine::with(way) });
        let memory = vfio.memory(8192).unwrap();
        let cpu = memory.mapping().cpu.as_ptr().addr();
        let refused = memory.unmap().unwrap_err();
        assert!(matches!(refused.error, Error::Unexpected { value: 4096, .. }), "{refused}");
        drop(refused);
        assert!(is_mapped(cpu, 1) && vfio.leaked_bytes() == Ok(8192) && kernel.mapped() == 1);
    }
}

#[test]
fn revoked_block_stays_the_programs() {
    for (way, _) in WAYS {
        let (kernel, vfio) = opened(Machine::with(way));
        let other_region = Region::new(vfio.memory(4096).unwrap()).unwrap();
        let other = other_region.base().raw();
        let region = Region::new(vfio.memory(8192).unwrap()).unwrap();
        let (base, at) = (region.base(), region.base().raw());
        let mut buf = region.alloc(8192, Align::PAGE).unwrap();
        buf.view_mut::<u8>().unwrap().fill(0x5A);
        assert_eq!(kernel.device_write(at, &[1; 16]), Ok(()));
        vfio.revoke(base).unwrap();
        assert_eq!(kernel.device_write(at, &[2; 16]), Err(Refused { iova: at }));
        assert_eq!(kernel.device_read(at + 8191, &mut [0]), Err(Refused { iova: at + 8191 }));
        assert_eq!(kernel.device_write(other, &[3]), Ok(()), "the other block is as it was");
        let view = buf.view::<u8>().unwrap();
        assert!(view[..16] == [1; 16] && view[16..].iter().all(|byte| *byte == 0x5A));
        buf.view_mut::<u8>().unwrap().fill(0x77);

        for (why, addr) in [
            ("it is revoked", base),
            ("a physical address is no address here", BaseAddr::Phys(PhysAddr(other))),
            ("where a block begins, or nowhere", BaseAddr::Dev(DevAddr(at + 4096))),
        ] {
            let gone = Error::NotOurs { addr: addr.raw(), len_bytes: 1 };
            assert_eq!(vfio.revoke(addr), Err(gone), "{why}");
        }
        let place = iova(&vfio.memory(8192).unwrap());
        assert_ne!(place, at, "its place is taken as long as it lives");
        drop((buf, region));
        let unmapped = Event::Unmapped { iova: at, size: 8192 };
        let times = kernel.log().iter().filter(|event| **event == unmapped).count();
        assert_eq!((times, vfio.leaked_bytes()), (1, Ok(0)), "not unmapped twice");
    }
}

#[test]
fn others_are_revoked_despite_stuck_block() {
    for (way, call) in WAYS {
        let (kernel, vfio) = opened(Machine::with(way));
        let blocks = [(); 3].map(|()| vfio.memory(4096).unwrap());
        kernel.fail(call, 1, Errno::EIO);
        assert!(matches!(vfio.revoke_all(), Err(Error::Os { errno: libc::EIO, .. })));
        assert_eq!(kernel.mapped(), 1, "the two others are gone");
        vfio.revoke_all().unwrap();
        assert_eq!(kernel.mapped(), 0);
        drop(blocks);
        assert_eq!(vfio.leaked_bytes(), Ok(0));
        vfio.revoke_all().unwrap();
    }
}

#[test]
fn children_do_not_get_it() {
    if emulated::finds_no_more("/proc/self/smaps describes the emulator") {
        return;
    }
    let (_kernel, vfio) = opened(Machine::default());
    let memory = vfio.memory(4096).unwrap();
    let cpu = memory.mapping().cpu.as_ptr().addr();
    // The kernel joins it to another test's where they are neighbours.
    let has_it = |line: &str| {
        let ends = line.split_once(' ').and_then(|(range, _)| range.split_once('-'));
        let ends = ends.and_then(|(start, end)| {
            Some(usize::from_str_radix(start, 16).ok()?..usize::from_str_radix(end, 16).ok()?)
        });
        ends.is_some_and(|range| range.contains(&cpu))
    };
    let smaps = fs::read_to_string("/proc/self/smaps").unwrap();
    let flags =
        smaps.lines().skip_while(|line| !has_it(line)).find(|line| line.starts_with("VmFlags:"));
    assert!(
        flags.is_some_and(|flags| flags.split(' ').any(|flag| flag == "dc")),
        "MADV_DONTFORK: {flags:?}"
    );
}

#[test]
fn threads_map_and_unmap_at_once() {
    let (kernel, vfio) = opened(Machine::default());
    assert!(matches!(vfio.port().bus, Bus::Iommu(_)));
    std::thread::scope(|scope| {
        for size in 1..=4 {
            let vfio = &vfio;
            scope.spawn(move || {
                for _ in 0..50 {
                    let blocks: Vec<_> =
                        (0..4).map(|_| vfio.memory(size * 4096).unwrap()).collect();
                    let mut ranges: Vec<_> = blocks
                        .iter()
                        .map(|block| (iova(block), block.mapping().len_bytes as u64))
                        .collect();
                    ranges.sort_unstable();
                    assert!(ranges.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0));
                }
            });
        }
    });
    assert_eq!((kernel.mapped(), vfio.leaked_bytes()), (0, Ok(0)));
}
