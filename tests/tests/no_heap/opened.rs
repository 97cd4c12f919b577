//! Devices and names are found, opened and listed without the heap.

use super::SLOT;
use super::counting::count;
use contigo::drivers::zdma::Zdma;
use contigo::names::{Attach, DeviceName, Inventory, MemoryName};
use contigo::{Align, Error, Queue, Region};
use contigo_testkit::fake_devices::FakeDevices;
use std::fmt::Write as _;
use std::time::Duration;

#[test]
fn devices_are_found_and_opened_without_it() {
    let tree = FakeDevices::new();
    tree.uio(0, Some("dma@1000"), "dma");
    tree.map(0, 1, "0xf8004000", "0x1000", "0x0");
    tree.pci("0000:00:01.0", 0x1234, 0x11E8);
    let (found, allocations) = count(|| {
        let mut device = tree.find("dma")?;
        let registers = device.map(1)?;
        let (_, irq) = device.into_parts();
        let bell = irq.try_clone()?;
        let function = tree.find_pci(0x1234, 0x11E8)?;
        function.enable()?;
        let (bar, master) = (function.bar(0)?, function.bus_master()?);
        drop((registers, irq, bell, function, bar, master));
        let refused = [
            tree.find("none").is_err(),
            tree.find_pci(1, 1).is_err(),
            tree.open_pci("0000:00:02.0").is_err(),
        ];
        Ok::<_, Error>(refused)
    });
    assert_eq!((found, allocations), (Ok([true; 3]), 0));
}

#[test]
fn names_are_read_opened_and_listed_without_it() {
    let tree = FakeDevices::new();
    tree.uio(0, Some("dma@1000"), "dma");
    tree.file("dev/dma_heap/linux,cma", "");
    let (done, allocations) = count(|| {
        let inventory = Inventory::under(tree.root());
        let mut listed = Listed(0);
        write!(listed, "{}; {}", inventory.memory_answer(), inventory.device_answer())
            .map_err(|_| Error::Busy)?;
        let refused =
            "vfio:0".parse::<MemoryName>().is_err_and(|error| write!(listed, "{error}").is_ok());
        let name: DeviceName = "uio:dma".parse()?;
        // SAFETY: no driver is made of it that gives memory back.
        let device = unsafe { name.open_under(tree.root())? };
        let zdma = "sim:zdma".parse::<DeviceName>()?.open()?;
        let region = Region::new(zdma.memory(&"sim".parse::<MemoryName>()?, 1 << 20)?)?;
        let attached = zdma.attach(Attach::default())?;
        // SAFETY: the model is a ZDMA.
        let mut queue = Queue::new(unsafe { Zdma::simple(attached)? }, 1)?;
        let [from, to] = [region.alloc(SLOT, Align::LINE)?, region.alloc(SLOT, Align::LINE)?];
        let _both =
            queue.run([from.to_device(..), to.from_device(..)], &[], Duration::from_millis(20))?;
        drop(device);
        Ok::<_, Error>((refused, listed.0 > 500))
    });
    assert_eq!((done, allocations), (Ok((true, true)), 0));
}

/// Counts what is written.
struct Listed(usize);

impl std::fmt::Write for Listed {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0 += text.len();
        Ok(())
    }
}
