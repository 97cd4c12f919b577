//! Opening: by which files, what is refused, and that nothing stays open.

use super::{opened, refused, unsuitable};
use contigo::{Bus, Error, Region, linux::vfio::Vfio, types::BaseAddr};
use contigo_testkit::fake_vfio::{
    ADDRESS, Call, Event, FakeVfio, GROUP, Kind, Machine, PciKind, Way,
};
use nix::{errno::Errno, libc};
use std::sync::Arc;

#[test]
fn the_devices_file_comes_before_the_groups() {
    for (device_file, iommu_file, by_iommufd) in [
        (0, 0, true),
        (libc::ENOENT, 0, false),
        (libc::EACCES, 0, false),
        (libc::EPERM, 0, false),
        (libc::ENODEV, 0, false),
        (0, libc::ENOENT, false),
        (0, libc::EACCES, false),
        (0, libc::ENODEV, false),
    ] {
        let (kernel, vfio) = opened(Machine { device_file, iommu_file, ..Machine::default() });
        assert_eq!(vfio.by_iommufd(), by_iommufd, "errno {device_file} and {iommu_file}");
        let memory = vfio.memory(1).unwrap();
        let files = if by_iommufd { 2 } else { 3 };
        assert_eq!((kernel.open_files(), kernel.mapped(), kernel.masters()), (files, 1, false));
        drop(memory);
        drop(vfio);
        assert_eq!((kernel.open_files(), kernel.mapped()), (0, 0));
    }
    let (_, vfio) = opened(Machine { device: None, ..Machine::default() });
    assert!(!vfio.by_iommufd(), "a kernel without the devices' files");
}

/// The order in which a file is closed matters: the device first, so that it is stopped before its
/// address space goes.
#[test]
fn the_device_is_closed_before_its_address_space() {
    for (way, order) in [
        (Way::Iommufd, &[Kind::Device, Kind::Iommufd][..]),
        (Way::Group, &[Kind::DeviceOfGroup, Kind::Group, Kind::Container]),
    ] {
        let (kernel, vfio) = opened(Machine::with(way));
        drop(vfio);
        let closed: Vec<_> = kernel
            .log()
            .iter()
            .filter_map(|event| if let Event::Closed(kind) = event { Some(*kind) } else { None })
            .collect();
        assert_eq!(closed, order);
    }
}

#[test]
fn failed_call_is_named_leaves_none_open() {
    let io = Errno::EIO;
    let by_group = [
        (Call::OpenGroup, "open(/dev/vfio/<group>)"),
        (Call::OpenContainer, "open(/dev/vfio/vfio)"),
        (Call::GroupStatus, "ioctl(VFIO_GROUP_GET_STATUS)"),
        (Call::SetContainer, "ioctl(VFIO_GROUP_SET_CONTAINER)"),
        (Call::CheckExtension, "ioctl(VFIO_CHECK_EXTENSION)"),
        (Call::SetIommu, "ioctl(VFIO_SET_IOMMU)"),
        (Call::DeviceFd, "ioctl(VFIO_GROUP_GET_DEVICE_FD)"),
        (Call::Type1Info, "ioctl(VFIO_IOMMU_GET_INFO)"),
    ];
    let by_iommufd = [
        (Call::OpenDevice, "open(/dev/vfio/devices/vfio<number>)"),
        (Call::OpenIommu, "open(/dev/iommu)"),
        (Call::BindIommufd, "ioctl(VFIO_DEVICE_BIND_IOMMUFD)"),
        (Call::IoasAlloc, "ioctl(IOMMU_IOAS_ALLOC)"),
        (Call::AttachIommufdPt, "ioctl(VFIO_DEVICE_ATTACH_IOMMUFD_PT)"),
        (Call::IoasIovaRanges, "ioctl(IOMMU_IOAS_IOVA_RANGES)"),
    ];
    let both = [
        (Call::DeviceInfo, "ioctl(VFIO_DEVICE_GET_INFO)"),
        (Call::RegionInfo, "ioctl(VFIO_DEVICE_GET_REGION_INFO)"),
        (Call::ReadConfig, "pread(PCI configuration)"),
        (Call::WriteConfig, "pwrite(PCI configuration)"),
    ];
    let of = |way, calls: &[(Call, &'static str)]| {
        calls.iter().map(|(call, name)| (way, *call, *name)).collect::<Vec<_>>()
    };
    let all = [
        of(Way::Group, &by_group),
        of(Way::Group, &both),
        of(Way::Iommufd, &by_iommufd),
        of(Way::Iommufd, &both),
    ]
    .concat();
    for (way, call, name) in all {
        let kernel = FakeVfio::new(Machine::with(way));
        kernel.fail(call, 0, io);
        assert_eq!(
            refused(&kernel),
            Error::Os { call: name, errno: io as i32 },
            "{way:?} {call:?}"
        );
        assert!(
            Vfio::open_from(Arc::new(kernel), ADDRESS).is_ok(),
            "{way:?}: it opens after {call:?} failed once"
        );
    }
}

#[test]
fn what_an_administrator_can_mend_is_said() {
    let group = Machine::with(Way::Group);
    for (machine, expected) in [
        (
            Machine { group: None, ..Machine::default() },
            ("no IOMMU stands before the PCI device", 0),
        ),
        (
            Machine { no_iommu: true, ..Machine::default() },
            ("the device's group of vfio-noiommu", GROUP.into()),
        ),
        (
            Machine { no_iommu: true, ..group.clone() },
            ("the device's group of vfio-noiommu", GROUP.into()),
        ),
        (
            Machine { viable: false, ..group.clone() },
            ("the IOMMU group, which is not viable,", GROUP.into()),
        ),
        (Machine { bound: false, ..group.clone() }, ("the PCI device is not bound to vfio-pci", 0)),
        (
            Machine { group_file: libc::ENOENT, device: None, ..Machine::default() },
            ("the PCI device is not bound to vfio-pci", 0),
        ),
        (Machine { type1: false, ..group.clone() }, ("the kernel has no VFIO_TYPE1v2_IOMMU", 0)),
        (Machine { is_pci: false, ..Machine::default() }, ("this VFIO device is no PCI device", 0)),
        (Machine { is_pci: false, ..group.clone() }, ("this VFIO device is no PCI device", 0)),
        (
            Machine { pci: PciKind::ExpressStubborn, ..group.clone() },
            ("Enable No Snoop of the PCI function", 0x820),
        ),
    ] {
        assert_eq!(unsuitable(refused(&FakeVfio::new(machine))), expected);
    }
    // Between the question and the call another driver was bound to a device of the group.
    let kernel = FakeVfio::new(group.clone());
    kernel.fail(Call::SetContainer, 0, Errno::EBUSY);
    assert_eq!(unsuitable(refused(&kernel)).0, "the IOMMU group, which is not viable,");
    for (machine, call) in [(group, Call::SetIommu), (Machine::default(), Call::BindIommufd)] {
        let kernel = FakeVfio::new(machine);
        kernel.fail(call, 0, Errno::EPERM);
        assert_eq!(unsuitable(refused(&kernel)), ("the device's interrupts are not isolated", 0));
    }
    let kernel = FakeVfio::new(Machine::default());
    kernel.fail(Call::AttachIommufdPt, 0, Errno::EINVAL);
    assert_eq!(
        unsuitable(refused(&kernel)),
        ("an address space of the device's own in the IOMMU", Errno::EINVAL as u64)
    );
}

#[test]
fn files_that_are_not_this_users_are_named() {
    let kernel = FakeVfio::new(Machine {
        device_file: libc::EACCES,
        group_file: libc::EACCES,
        ..Machine::default()
    });
    assert_eq!(
        refused(&kernel),
        Error::Os { call: "open(/dev/vfio/<group>)", errno: libc::EACCES }
    );
    let kernel =
        FakeVfio::new(Machine { container_file: libc::EACCES, ..Machine::with(Way::Group) });
    assert_eq!(refused(&kernel), Error::Os { call: "open(/dev/vfio/vfio)", errno: libc::EACCES });
}

#[test]
fn a_device_opens_once() {
    for (machine, errno) in [
        (Machine::with(Way::Group), libc::EBUSY),
        (Machine::with(Way::Iommufd), libc::EINVAL),
        (Machine::default(), libc::EINVAL),
    ] {
        let (kernel, first) = opened(machine);
        let files = kernel.open_files();
        assert_eq!(
            Vfio::open_from(Arc::new(kernel.clone()), ADDRESS).unwrap_err(),
            Error::InUse { errno }
        );
        assert_eq!(kernel.open_files(), files, "the second one's files are closed");
        assert!(first.memory(4096).is_ok(), "and the first one is unharmed");
        drop(first);
        assert!(Vfio::open_from(Arc::new(kernel), ADDRESS).is_ok());
    }
    // By the group, while it is open by the device's file: the kernel keeps them apart.
    let (kernel, _first) = opened(Machine::default());
    kernel.fail(Call::OpenDevice, 0, Errno::EACCES);
    assert_eq!(
        Vfio::open_from(Arc::new(kernel), ADDRESS).unwrap_err(),
        Error::InUse { errno: libc::EBUSY }
    );
}

#[test]
fn what_is_no_function_is_refused() {
    let kernel = FakeVfio::new(Machine::default());
    let missing = Vfio::open_from(Arc::new(kernel), "0000:00:02.0").unwrap_err();
    assert_eq!(missing, Error::AttributeMissing { name: "/sys/bus/pci/devices/<address>" });
    assert!(matches!(Vfio::open("../.."), Err(Error::BadName { .. })));
    assert!(
        matches!(Vfio::open("0000:7f:1f.7"), Err(Error::AttributeMissing { .. })),
        "of this machine"
    );
}

#[test]
fn each_address_space_is_a_bus_of_its_own() {
    let (_first_kernel, first) = opened(Machine::with(Way::Group));
    let (_second_kernel, second) = opened(Machine::with(Way::Iommufd));
    let (one, other) = (first.port(), second.port());
    assert!(
        matches!((one.bus, other.bus), (Bus::Iommu(one), Bus::Iommu(other)) if one != other),
        "{one:?} {other:?}"
    );
    let region = Region::new(first.memory(4096).unwrap()).unwrap();
    let BaseAddr::Dev(addr) = region.base() else { panic!("{:?}", region.base()) };
    let cpu = region.host_ptr_of(&one, addr).unwrap();
    assert_eq!(region.dev_addr_of(&one, cpu.as_ptr(), 4096), Ok(addr));
    assert_eq!(
        region.dev_addr_of(&other, cpu.as_ptr(), 4096),
        Err(Error::WrongBus { port: "vfio", memory: one.bus })
    );
    assert_eq!(
        region.host_ptr_of(&other, addr).unwrap_err(),
        Error::WrongBus { port: "vfio", memory: one.bus }
    );
}

#[test]
fn the_window_is_what_the_kernel_allows() {
    let window = |machine: Machine| {
        let (_kernel, vfio) = opened(machine);
        (vfio.port().window, vfio.port().addr_bits)
    };
    for way in [Way::Group, Way::Iommufd] {
        assert_eq!(window(Machine::with(way)), ((0, 0xFFFF_FFFF_FFFF), 48));
        let one = Machine { ranges: vec![(0x1000_0000, 0x1FFF_FFFF)], ..Machine::with(way) };
        assert_eq!(window(one), ((0x1000_0000, 0x1FFF_FFFF), 29));
        let many = Machine { ranges: vec![(0, 0xFFF); 33], ..Machine::with(way) };
        assert_eq!(
            refused(&FakeVfio::new(many)),
            Error::TooMany { what: "ranges of I/O addresses for one device", most: 32 }
        );
        let backwards = Machine { ranges: vec![(0x2000, 0x1000)], ..Machine::with(way) };
        assert!(matches!(
            refused(&FakeVfio::new(backwards)),
            Error::Unexpected { value: 0x2000, .. }
        ));
        let none = Machine { ranges: vec![], ..Machine::with(way) };
        let (_kernel, vfio) = opened(none);
        assert!(matches!(
            vfio.memory(4096),
            Err(Error::Exhausted { need_bytes: 4096, capacity_bytes: 0 })
        ));
    }
    // Kernels before 6.5 put capabilities at multiples of 4, and before 5.4 there are no ranges.
    for capability_align in [4, 8] {
        assert_eq!(
            window(Machine { capability_align, ..Machine::with(Way::Group) }),
            ((0, 0xFFFF_FFFF_FFFF), 48)
        );
    }
    assert_eq!(
        window(Machine { tells_ranges: false, ..Machine::with(Way::Group) }),
        ((0, u64::MAX), 64)
    );
    let broken = FakeVfio::new(Machine { broken_chain: true, ..Machine::with(Way::Group) });
    assert!(
        matches!(refused(&broken), Error::Unexpected { name: "ioctl(VFIO_IOMMU_GET_INFO)", .. }),
        "a loop has an end"
    );
}
