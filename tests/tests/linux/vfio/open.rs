//! Opening: by which files, what is refused, and that nothing stays open.

use super::{open, opened, refused, unsuitable};
use contigo::linux::os::seam::{Running, SystemCalls};
use contigo::linux::vfio::Vfio;
use contigo::types::BaseAddr;
use contigo::{Bus, Error, Region};
use contigo_testkit::fake_vfio::{Event, FakeVfio, GROUP, Kind, Machine, Way};
use nix::errno::Errno;
use nix::libc;
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
        drop((memory, vfio));
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
    let by_group = [
        "open(/dev/vfio/<group>)",
        "open(/dev/vfio/vfio)",
        "ioctl(VFIO_GROUP_GET_STATUS)",
        "ioctl(VFIO_GROUP_SET_CONTAINER)",
        "ioctl(VFIO_CHECK_EXTENSION)",
        "ioctl(VFIO_SET_IOMMU)",
        "ioctl(VFIO_GROUP_GET_DEVICE_FD)",
        "ioctl(VFIO_IOMMU_GET_INFO)",
    ];
    let by_iommufd = [
        "open(/dev/vfio/devices/vfio<number>)",
        "open(/dev/iommu)",
        "ioctl(VFIO_DEVICE_BIND_IOMMUFD)",
        "ioctl(IOMMU_IOAS_ALLOC)",
        "ioctl(VFIO_DEVICE_ATTACH_IOMMUFD_PT)",
        "ioctl(IOMMU_IOAS_IOVA_RANGES)",
    ];
    let both = [
        "ioctl(VFIO_DEVICE_GET_INFO)",
        "ioctl(VFIO_DEVICE_GET_REGION_INFO)",
        "pread(PCI configuration)",
        "pwrite(PCI configuration)",
    ];
    for (way, calls) in [(Way::Group, &by_group[..]), (Way::Iommufd, &by_iommufd)] {
        for call in calls.iter().copied().chain(both) {
            let kernel = FakeVfio::new(Machine::with(way));
            kernel.fail(call, 0, Errno::EIO);
            let error = Error::Os { call, errno: Errno::EIO as i32 };
            assert_eq!(refused(&kernel), error, "{way:?}");
            assert!(open(&kernel).is_ok(), "{way:?}: it opens after {call} failed once");
        }
    }
}

#[test]
fn half_a_configuration_word_is_an_error() {
    for way in [Way::Group, Way::Iommufd] {
        for call in ["pread(PCI configuration)", "pwrite(PCI configuration)"] {
            let kernel = FakeVfio::new(Machine::with(way));
            kernel.shorten(call);
            let error = Error::Os { call, errno: Errno::EIO as i32 };
            assert_eq!(refused(&kernel), error, "{way:?}");
            assert!(open(&kernel).is_ok(), "{way:?}: it opens after {call} was short once");
        }
    }
}

#[test]
fn what_an_administrator_can_mend_is_said() {
    let (base, group) = (Machine::default(), Machine::with(Way::Group));
    let not_viable = "the IOMMU group, which is not viable,";
    let no_iommu = ("the device's group of vfio-noiommu", GROUP.into());
    let not_bound = ("the PCI device is not bound to vfio-pci", 0);
    let no_pci = ("this VFIO device is no PCI device", 0);
    let unfindable = Machine { group_file: libc::ENOENT, device: None, ..base.clone() };
    for (machine, expected) in [
        (Machine { group: None, ..base.clone() }, ("no IOMMU stands before the PCI device", 0)),
        (Machine { no_iommu: true, ..base.clone() }, no_iommu),
        (Machine { no_iommu: true, ..group.clone() }, no_iommu),
        (Machine { viable: false, ..group.clone() }, (not_viable, GROUP.into())),
        (Machine { bound: false, ..group.clone() }, not_bound),
        (unfindable, not_bound),
        (Machine { type1: false, ..group.clone() }, ("the kernel has no VFIO_TYPE1v2_IOMMU", 0)),
        (Machine { is_pci: false, ..base.clone() }, no_pci),
        (Machine { is_pci: false, ..group.clone() }, no_pci),
    ] {
        assert_eq!(unsuitable(refused(&FakeVfio::new(machine))), expected);
    }
    let not_isolated = ("the device's interrupts are not isolated", 0);
    let no_space = "an address space of the device's own in the IOMMU";
    for (machine, call, errno, expected) in [
        // Between the question and the call another driver was bound to a device of the group.
        (&group, "ioctl(VFIO_GROUP_SET_CONTAINER)", Errno::EBUSY, (not_viable, GROUP.into())),
        (&group, "ioctl(VFIO_SET_IOMMU)", Errno::EPERM, not_isolated),
        (&base, "ioctl(VFIO_DEVICE_BIND_IOMMUFD)", Errno::EPERM, not_isolated),
        (
            &base,
            "ioctl(VFIO_DEVICE_ATTACH_IOMMUFD_PT)",
            Errno::EINVAL,
            (no_space, Errno::EINVAL as u64),
        ),
    ] {
        let kernel = FakeVfio::new(machine.clone());
        kernel.fail(call, 0, errno);
        assert_eq!(unsuitable(refused(&kernel)), expected, "{call}");
    }
}

#[test]
fn files_that_are_not_this_users_are_named() {
    let base = Machine::default();
    let no_group = Machine { device_file: libc::EACCES, group_file: libc::EACCES, ..base };
    let no_container = Machine { container_file: libc::EACCES, ..Machine::with(Way::Group) };
    for (machine, call) in
        [(no_group, "open(/dev/vfio/<group>)"), (no_container, "open(/dev/vfio/vfio)")]
    {
        let denied = Error::Os { call, errno: libc::EACCES };
        assert_eq!(refused(&FakeVfio::new(machine)), denied);
    }
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
        assert_eq!(open(&kernel).unwrap_err(), Error::InUse { errno });
        assert_eq!(kernel.open_files(), files, "the second one's files are closed");
        assert!(first.memory(4096).is_ok(), "and the first one is unharmed");
        drop(first);
        assert!(open(&kernel).is_ok());
    }
    // By the group, while it is open by the device's file: the kernel keeps them apart.
    let (kernel, _first) = opened(Machine::default());
    kernel.fail("open(/dev/vfio/devices/vfio<number>)", 0, Errno::EACCES);
    assert_eq!(open(&kernel).unwrap_err(), Error::InUse { errno: libc::EBUSY });
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
fn a_group_that_is_missing_is_no_file() {
    let group = c"/dev/vfio/no-such-group";
    for kernel in [&Running as &dyn SystemCalls, &FakeVfio::new(Machine::default())] {
        assert_eq!(kernel.open(group, libc::O_RDWR).err(), Some(libc::ENOENT));
    }
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
    let refused = |machine| refused(&FakeVfio::new(machine));
    let whole = ((0, 0xFFFF_FFFF_FFFF), 48);
    for way in [Way::Group, Way::Iommufd] {
        let with = |ranges| Machine { ranges, ..Machine::with(way) };
        assert_eq!(window(Machine::with(way)), whole);
        let one = (0x1000_0000, 0x1FFF_FFFF);
        assert_eq!(window(with(vec![one])), (one, 29));
        let what = "ranges of I/O addresses for one device";
        assert_eq!(refused(with(vec![(0, 0xFFF); 33])), Error::TooMany { what, most: 32 });
        let backwards = refused(with(vec![(0x2000, 0x1000)]));
        assert!(matches!(backwards, Error::Unexpected { value: 0x2000, .. }), "{backwards:?}");
        let none = Error::Exhausted { need_bytes: 4096, capacity_bytes: 0 };
        assert_eq!(opened(with(vec![])).1.memory(4096).map(drop), Err(none));
    }
    // Kernels before 6.5 put capabilities at multiples of 4, and before 5.4 there are no ranges.
    let group = Machine::with(Way::Group);
    for capability_align in [4, 8] {
        assert_eq!(window(Machine { capability_align, ..group.clone() }), whole);
    }
    assert_eq!(window(Machine { tells_ranges: false, ..group.clone() }), ((0, u64::MAX), 64));
    let broken = refused(Machine { broken_chain: true, ..group });
    assert!(
        matches!(broken, Error::Unexpected { name: "ioctl(VFIO_IOMMU_GET_INFO)", .. }),
        "a loop has an end: {broken:?}"
    );
}
