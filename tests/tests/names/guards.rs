//! Guards by their names, and the registers that belong to each.

use super::{POLLED, device, wired};
use contigo::{
    Error, Mmio, PhysAddr,
    names::{Attach, OpenDevice},
};
use contigo_testkit::{
    fake_devices::FakeDevices,
    fake_guard::{Event, FakeGuard, GuardConfig},
};
use std::sync::Arc;

/// Opens the guard `name`, which the tree and a fake of the module have as `bound`.
fn open_guard(tree: &FakeDevices, bound: &'static str, name: &str) -> Result<(OpenDevice, FakeGuard), Error> {
    tree.folder(&format!("sys/class/contigo/{bound}"));
    let guard = FakeGuard::new(GuardConfig { name: bound, ..GuardConfig::default() });
    let root = tree.root().to_owned().leak();
    // SAFETY: no driver is made of it that gives memory back.
    Ok((unsafe { device(name).open_guard_with(root, Arc::new(guard.clone())) }?, guard))
}

#[test]
fn a_guard_is_driven_by_the_one_uio_device_at_its_address() {
    let tree = FakeDevices::new();
    let (opened, guard) = open_guard(&tree, "40010040.engine", "guard:40010040").unwrap();
    assert_eq!(opened.addr(), Some(PhysAddr(0x4001_0040)));
    let what = "UIO device or PCI function with the registers of this guard";
    assert_eq!(wired(&opened, POLLED).map(|_| ()), Err(Error::NotFound { what, among: 0 }));
    for index in 0..3 {
        tree.uio(index, None, "engine");
    }
    tree.map(1, 0, "0x40010000", "0x1000", "0x40");
    assert_eq!(wired(&opened, POLLED).unwrap().len_bytes(), 0xFC0, "from there to the end of the page");
    // SAFETY: no device.
    unsafe { opened.enable_bus_master().unwrap() };
    assert_eq!(guard.log(), [], "it may, always");
    drop(opened);
    tree.map(2, 0, "0x40010000", "0x1000", "0x40");
    let (opened, _port) = open_guard(&tree, "40010040.engine", "guard:40010040.engine").unwrap();
    assert_eq!(wired(&opened, POLLED).map(|_| ()), Err(Error::Ambiguous { what, matches: 2 }));
}

#[test]
fn a_guarded_pci_function_masters_the_bus_by_its_guard() {
    const EDU: &str = "0000:00:01.0";
    let tree = FakeDevices::new();
    tree.pci(EDU, 0x1234, 0x11E8);
    tree.link(&FakeDevices::pci_path(EDU, "driver"), "../../../../bus/pci/drivers/contigo");
    let (opened, guard) = open_guard(&tree, EDU, "guard:0000:00:01.0").unwrap();
    // SAFETY: no device.
    unsafe { opened.enable_bus_master().unwrap() };
    assert_eq!(guard.log(), [Event::BusMaster(true)], "before it is attached too");
    let refused = wired(&opened, Attach::default()).map(|_| ()).unwrap_err();
    assert!(matches!(refused, Error::Unsupported { .. }) && refused.to_string().contains("attach it without"), "{refused}");
    for _ in 0..2 {
        assert_eq!(wired(&opened, POLLED).unwrap().read32(0), 0x0100_00ED);
        assert_eq!(guard.log(), [Event::BusMaster(false)], "bus mastering of the last driver is off");
    }
}

#[test]
fn a_guards_address_is_told_from_a_word_and_a_number() {
    for (bound, address) in [("adc.0", "adc"), ("+40.dma", "+40"), ("soc:dma", "soc:dma.1"), ("0.dma", "+0"), ("40", "040")] {
        let tree = FakeDevices::new();
        let refused = open_guard(&tree, bound, &format!("guard:{address}")).map(|_| ()).unwrap_err();
        assert!(matches!(refused, Error::NotFound { among: 1, .. }), "{bound}: {refused}");
        let (opened, _port) = open_guard(&tree, bound, &format!("guard:{bound}")).unwrap();
        assert_eq!(opened.addr(), (bound == "0.dma").then_some(PhysAddr(0)), "{bound}");
        assert!(matches!(wired(&opened, POLLED).map(|_| ()), Err(Error::NotFound { .. })), "{bound}");
    }
}
