//! Memory and devices by their names, over trees of files that look like the kernel's, and on the
//! simulated board. On real kernels the lab opens them.

mod cores;
mod dev_nodes;
mod inventory;

use contigo::job::{Parts, Settings};
use contigo::names::{
    AnyDevice, Attach, DeviceName, Entry, Inventory, MemoryName, OpenDevice, row,
};
use contigo::{Align, Backend, Bus, Device, Error, Mmio, PhysAddr, Port, Queue, Region, Wait};
use contigo_exerciser::uio::ensure_at;
use contigo_testkit::fake_devices::FakeDevices;
use std::fs;
use std::time::Duration;

const PORT: Port = Port {
    name: "test",
    bus: Bus::Soc,
    offset: 0,
    addr_bits: 32,
    window: (0, u32::MAX as u64),
    coherent: false,
};
const POLLED: Attach = Attach { window: 0, interrupt: false };

fn memory(text: &str) -> MemoryName {
    text.parse().unwrap()
}

fn device(text: &str) -> DeviceName {
    text.parse().unwrap()
}

/// Opens a device of the tree.
fn open(tree: &FakeDevices, name: &str) -> Result<OpenDevice, Error> {
    // SAFETY: no driver is made of it that gives memory back.
    unsafe { device(name).open_under(tree.root()) }
}

fn wired(device: &OpenDevice, how: Attach) -> Result<AnyDevice, Error> {
    // SAFETY: nothing reaches memory.
    unsafe { device.attach_wired(PORT, how) }
}

fn lines<N: std::fmt::Display>(entries: impl Iterator<Item = Entry<N>>) -> Vec<String> {
    entries.map(|entry| entry.to_string()).collect()
}

/// A board with a bit of everything.
fn board() -> FakeDevices {
    let tree = FakeDevices::new();
    for (name, class) in
        [("udmabuf1", "udmabuf"), ("udmabuf0", "u-dma-buf"), ("udmabuf-smmu", "u-dma-buf")]
    {
        tree.file(&format!("sys/class/{class}/{name}/size"), "1048576\n");
        tree.file(&format!("sys/class/{class}/{name}/phys_addr"), "0x0000000030000000\n");
        tree.file(&format!("dev/{name}"), "");
    }
    tree.folder("sys/class/u-dma-buf/udmabuf-smmu/device/iommu_group");
    for heap in ["system", "linux,cma", "no name"] {
        tree.file(&format!("dev/dma_heap/{heap}"), "");
    }
    tree.file("proc/sys/kernel/osrelease", "6.12.0-xilinx\n");
    tree.file("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "0\n");
    tree.folder("sys/class/contigo/f8003000.dma-controller");
    tree.file("dev/contigo/f8003000.dma-controller", "");
    tree.uio(1, Some("dma-controller@f8003000"), "dmac");
    tree.uio(10, Some("dma@1000"), "dma");
    tree.uio(2, Some("dma@1000"), "dma");
    tree.uio(3, None, "uio_pci_generic");
    for (address, driver) in [("0000:00:01.0", "vfio-pci"), ("0000:00:02.0", "nvme")] {
        tree.pci(address, 0x1234, 0x11E8);
        tree.link(
            &FakeDevices::pci_path(address, "driver"),
            &format!("../../../../bus/pci/drivers/{driver}"),
        );
    }
    tree.link(
        &FakeDevices::pci_path("0000:00:01.0", "iommu_group"),
        "../../../kernel/iommu_groups/12",
    );
    tree.file("dev/vfio/12", "");
    tree
}

#[test]
fn uio_opening_serves_drivers_in_turn() {
    let tree = board();
    let opened = open(&tree, "uio:dma-controller").unwrap();
    assert_eq!((opened.port(), opened.name()), (None, &device("uio:dma-controller")));
    let no_port = opened.attach(POLLED).unwrap_err().to_string();
    assert!(no_port.contains("name its port"), "{no_port}");
    for how in [POLLED, Attach::default()] {
        let driver = wired(&opened, how).unwrap();
        assert_eq!((driver.read32(0), driver.len_bytes(), driver.port()), (0x1001, 0x1000, &PORT));
        assert_eq!((driver.interrupt().is_some(), driver.wait_at_most(0)), (how.interrupt, Ok(())));
        // SAFETY: no device.
        unsafe { driver.write32(4, 9) };
        assert_eq!(tree.word("dev/uio1", 4), 9);
        assert_eq!(wired(&opened, POLLED).unwrap_err(), Error::HasDriver);
    }
    let in_use = Error::InUse { errno: libc::EWOULDBLOCK };
    assert_eq!(open(&tree, "uio:1").unwrap_err(), in_use, "one opening");
    let second = wired(&opened, Attach { window: 1, ..POLLED }).unwrap_err();
    assert!(matches!(second, Error::Argument { name: "window", value: 1, .. }), "{second}");
    assert!(wired(&opened, POLLED).is_ok(), "a refused opening gives back the device");
    drop(opened);
    assert_eq!(tree.held(), (0, 0));
    let two = Error::Ambiguous { what: "UIO device", matches: 2 };
    assert_eq!(open(&tree, "uio:dma").unwrap_err(), two);
    assert!(open(&tree, "uio:10").is_ok());
    let none = open(&tree, "contigo:f8003000").unwrap_err();
    let Error::NotFound { what, .. } = none else { panic!("this machine's: {none}") };
    assert_eq!(what, "device that is bound to the kernel module contigo");
}

/// As `uio_pdrv_genirq` rounds a node whose registers begin inside a page.
#[test]
fn a_uio_devices_address_is_its_first_registers() {
    let tree = FakeDevices::new();
    tree.uio(0, Some("engine@40010040"), "engine");
    tree.map(0, 0, "0x40010000", "0x1000", "0x40");
    let opened = open(&tree, "uio:engine").unwrap();
    assert_eq!(opened.addr(), Some(PhysAddr(0x4001_0040)));
    assert_eq!(ensure_at(&opened, 0x4001_0040), Ok(()));
    assert!(matches!(ensure_at(&opened, 0x4001_0000), Err(Error::NotFound { .. })));
    let entry = Inventory::under(tree.root()).devices().next().unwrap();
    assert_eq!(entry.facts.addr, Some(0x4001_0040), "the same");
}

#[test]
fn node_named_like_a_number_keeps_its_own() {
    let tree = FakeDevices::new();
    tree.uio(3, Some("other@1000"), "other");
    tree.uio(5, None, "3");
    tree.map(5, 0, "0x50000000", "0x1000", "0x0");
    let entries: Vec<_> =
        Inventory::under(tree.root()).devices().filter(|entry| entry.kind == "uio").collect();
    assert_eq!(entries.len(), 2);
    for entry in entries {
        let name = entry.name.unwrap().to_string();
        let opened = open(&tree, &name).unwrap();
        let addr = opened.addr().map(|addr| addr.0);
        assert_eq!((addr, entry.why), (entry.facts.addr, None), "{name}");
    }
}

/// A user who may write below a root could hang every program that lists it.
#[test]
fn a_pipe_in_a_tree_blocks_no_caller() {
    let tree = board();
    let pipes = [
        "class/u-dma-buf/udmabuf0/size",
        "class/u-dma-buf/udmabuf0/device/of_node/iommus",
        "class/uio/uio1/name",
    ];
    for path in pipes {
        let path = tree.path(&format!("sys/{path}"));
        let _ = fs::remove_file(&path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    }
    let root = tree.root().to_owned();
    let looked = std::thread::spawn(move || {
        let inventory = Inventory::under(&root);
        (inventory.memories().count(), inventory.devices().count())
    });
    for _ in 0..500 {
        if looked.is_finished() {
            let (memories, devices) = looked.join().unwrap();
            return assert!(memories > 6 && devices > 6);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("it waits for a writer");
}

#[test]
fn pci_function_masters_the_bus_when_told() {
    const EDU: &str = "0000:00:01.0";
    let tree = FakeDevices::new();
    tree.pci(EDU, 0x1234, 0x11E8);
    let command = || tree.config(EDU)[4];
    let opened = open(&tree, "pci:0000:00:01.0").unwrap();
    assert_eq!(command() & 0b110, 2, "as it was");
    let config = tree.path(&FakeDevices::pci_path(EDU, "config"));
    fs::write(config, [0xFF, 0xFF, 0xFF, 0xFF, 0x04, 0x05, 0xFF, 0xFF]).unwrap();
    let driver = wired(&opened, POLLED).unwrap();
    assert_eq!(driver.read32(0), 0x0100_00ED, "it answers");
    assert_eq!(command() & 0b110, 2, "attaching cleared its bus mastering");
    // SAFETY: no device.
    unsafe { opened.enable_bus_master().unwrap() };
    assert_eq!(command() & 0b110, 6);
    drop(driver);
    // One window an opening.
    let other = wired(&opened, Attach { window: 5, ..POLLED }).unwrap_err();
    assert!(matches!(other, Error::Argument { name: "window", value: 5, .. }), "{other}");
    assert_eq!(wired(&opened, POLLED).unwrap().read32(0), 0x0100_00ED, "again");
    drop(opened);
    assert_eq!(tree.held(), (0, 0));
}

/// A driver, its device and its memory, which only names tell apart.
#[test]
fn drivers_run_on_named_devices_and_memory() {
    for (driver, name, text) in [
        ("zdma", "sim:zdma", "sim"),
        ("zdma", "sim:zdma", "sim:1"),
        ("pl330", "sim:pl330@7", "sim:7"),
        ("pl330", "sim:pl330@7", "sim"),
    ] {
        let (driver, opened) = (row(driver).unwrap(), device(name).open().unwrap());
        let region = Region::new(opened.memory(&memory(text), 1 << 20).unwrap()).unwrap();
        assert_eq!(region.name(), "sim");
        let buf = |len_bytes| region.alloc(len_bytes, Align::PAGE).unwrap();
        let memory = (driver.memory_bytes > 0).then(|| buf(driver.memory_bytes));
        let settings = Settings("");
        let parts = Parts { device: (), memory, settings, map: None };
        // SAFETY: the model is what the driver is for, and no other code drives it.
        let driver = unsafe {
            let taken = opened.take(driver, settings, None, Attach::default()).unwrap();
            taken.open(parts).unwrap()
        };
        let (mut from, to) = (buf(4096), buf(4096));
        from.view_mut::<u8>().unwrap().fill(0xA5);
        let operands = [from.to_device(..), to.from_device(..)];
        let mut queue = Queue::new(driver, 1).unwrap();
        let [_, to] = queue.run(operands, &[], Duration::from_millis(20)).unwrap().buffers;
        assert!(to.view::<u8>().unwrap() == [0xA5; 4096], "{name} {text}");
        assert_eq!(opened.board().unwrap().counts().unowned_accesses, 0);
    }
}

#[test]
fn device_memory_comes_from_that_device() {
    let owned =
        ["sim:7", "vfio:0000:01:00.0", "contigo:f8003000", "dma-heap:linux,cma@contigo:f8003000"]
            .map(memory);
    // Of an open device.
    let of_none = memory("contigo").open(4096).map(drop);
    assert_eq!(of_none, Err(Error::NeedsDevice { kind: "contigo" }));
    let opened = device("sim:board@8").open().unwrap();
    for name in owned.into_iter().chain([memory("contigo")]) {
        let refused = opened.memory(&name, 4096).map(drop);
        assert_eq!(refused, Err(Error::NeedsDevice { kind: name.kind() }), "{name}");
    }
    let own = opened.memory(&memory("sim:8"), 4096).unwrap();
    assert_eq!(own.mapping().bus, opened.port().unwrap().bus);
    let alone = Error::Unsupported {
        what: "this simulated board has memory alone",
        fix: "open a device on it, as sim:zdma",
    };
    assert_eq!(opened.attach(POLLED).unwrap_err(), alone);
    let buses = [(); 2].map(|()| memory("sim:7").open(4096).unwrap().mapping().bus);
    assert_ne!(buses[0], buses[1], "each opening is a board");
    // Of a function that does not exist, the error names the folder that is missing.
    let name = memory("vfio:ffff:1f:1f.7");
    let refused = name.open(4096).map(drop).unwrap_err();
    assert_eq!(refused, Error::AttributeMissing { name: "/sys/bus/pci/devices/<address>" });
}

/// An error of a name tells what this machine has: its kind first, then what can be opened.
#[test]
fn errors_of_names_list_what_there_is() {
    let tree = board();
    let inventory = Inventory::under(tree.root());
    let missing = Error::AttributeMissing { name: "/sys/bus/pci/devices/<address>" };
    let said = inventory.memory_error(&memory("vfio:ffff:1f:1f.7"), missing).to_string();
    let here = "this machine has vfio:0000:00:01.0; contigo:f8003000.dma-controller; ";
    assert!(said.starts_with(&format!("{missing}; {here}")), "{said}");
    assert!(said.ends_with("; sim; contigo info lists the rest"), "{said}");
    let said = inventory.memory_error(&memory("hugetlb"), Error::Busy).to_string();
    let none = "; no huge page is free, as root: echo 16 > /proc/sys/vm/nr_hugepages";
    assert!(said.ends_with(none), "{said}");
    let none = Error::NotFound { what: "UIO device", among: 4.into() };
    let said = inventory.device_error(&device("uio:none"), none).to_string();
    assert!(said.contains("others that are here: 4; this machine has uio:"), "{said}");
    assert!(said.contains("; uio:dma-controller@f8003000; "), "{said}");
    // Eight names, between the two ends.
    assert_eq!(said.split("; ").count(), 1 + 8 + 2, "{said}");
    let said = inventory.device_error(&device("uio:dma-controller"), Error::Busy).to_string();
    assert_eq!(said, Error::Busy.to_string());
}
