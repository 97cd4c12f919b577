//! Who keeps the caches in step, by what the kernel, the IOMMU and the function say.

use super::{open, opened, refused, unsuitable};
use contigo::mem::SyncScope;
use contigo::{Backend, Error};
use contigo_testkit::fake_vfio::{FakeVfio, Machine, PciKind, Way};
use nix::errno::Errno;

/// The device control register of the fake's PCI Express capability.
const DEVICE_CONTROL: usize = 0x78;
const ENABLE_NO_SNOOP: u16 = 1 << 11;
const PC: bool = cfg!(any(target_arch = "x86", target_arch = "x86_64"));

#[test]
fn coherent_where_the_kernel_keeps_it_so() {
    for (way, release, enforces_snooping, coherent) in [
        (Way::Group, (6, 12), false, true),
        (Way::Group, (6, 1), false, true),
        // Arm's SMMUs always said yes there.
        (Way::Group, (6, 0), true, PC),
        (Way::Group, (5, 19), false, PC),
        (Way::Group, (5, 15), true, PC),
        (Way::Group, (4, 19), false, PC),
        (Way::Group, (0, 0), false, PC),
        (Way::Iommufd, (6, 6), false, true),
    ] {
        let (_kernel, vfio) = opened(Machine { release, enforces_snooping, ..Machine::with(way) });
        assert_eq!(vfio.port().coherent, coherent, "{way:?} {release:?} {enforces_snooping}");
        let mapping = vfio.memory(4096).unwrap().mapping();
        assert_eq!(mapping.coherent, Some(coherent), "the memory says what the port says");
        assert_eq!(mapping.scope == SyncScope::Coherent, coherent, "{:?}", mapping.scope);
    }
}

#[test]
fn function_may_not_bypass_the_caches() {
    for way in [Way::Group, Way::Iommufd] {
        let (kernel, _vfio) = opened(Machine::with(way));
        let control = kernel.config(DEVICE_CONTROL);
        assert_eq!(
            (control & ENABLE_NO_SNOOP, control & !ENABLE_NO_SNOOP),
            (0, 0x20),
            "that bit, and no other"
        );
        let stubborn =
            FakeVfio::new(Machine { pci: PciKind::ExpressStubborn, ..Machine::with(way) });
        assert_eq!(unsuitable(refused(&stubborn)), ("Enable No Snoop of the PCI function", 0x820));
        let (kernel, vfio) = opened(Machine { pci: PciKind::Conventional, ..Machine::with(way) });
        assert!(
            vfio.port().coherent && kernel.config(DEVICE_CONTROL) == 0x820,
            "no capability: no wish, and nothing written there"
        );
        let looping = FakeVfio::new(Machine { pci: PciKind::Looping, ..Machine::with(way) });
        assert!(matches!(
            refused(&looping),
            Error::Unexpected { name: "the PCI function's list of capabilities", .. }
        ));
    }
    // Where the IOMMU overrides the function, the function is left alone.
    let enforced = Machine {
        enforces_snooping: true,
        pci: PciKind::ExpressStubborn,
        ..Machine::with(Way::Group)
    };
    let (kernel, vfio) = opened(enforced);
    assert!(vfio.port().coherent && kernel.config(DEVICE_CONTROL) & ENABLE_NO_SNOOP != 0);
    // The answer to that question is not a promise: the function is asked then.
    let kernel = FakeVfio::new(Machine { enforces_snooping: true, ..Machine::with(Way::Group) });
    kernel.fail("ioctl(VFIO_CHECK_EXTENSION)", 1, Errno::EINVAL);
    let vfio = open(&kernel).unwrap();
    assert!(vfio.port().coherent && kernel.config(DEVICE_CONTROL) & ENABLE_NO_SNOOP == 0);
}
