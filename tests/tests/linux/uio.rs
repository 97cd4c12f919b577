//! UIO devices, over trees of files that look like the kernel's: what is found, what is refused,
//! and that nothing stays open. With a real kernel they are tested on the lab's boards.

use contigo::hw::{Wired, poll_until};
use contigo::linux::device::Registers;
use contigo::{Bus, Device, Error, Mmio, PhysAddr, Port, Wait};
use contigo_testkit::fake_devices::{FakeDevices, as_nobody};
use std::cell::Cell;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

const PORT: Port = Port {
    name: "test",
    bus: Bus::Soc,
    offset: 0,
    addr_bits: 32,
    window: (0, u32::MAX as u64),
    coherent: false,
};
const IN_USE: Error = Error::InUse { errno: libc::EWOULDBLOCK };

#[test]
fn a_device_is_found_by_each_of_its_names() {
    let tree = FakeDevices::new();
    tree.uio(0, Some("dma-controller@f8003000"), "dmac");
    tree.uio(3, Some("dma@fd500000"), "dma@fd500000"); // the numbers have holes
    tree.uio(4, Some("dma@fd510000"), "dma@fd510000");
    tree.uio(5, None, "Card");
    for (name, index) in [
        ("dma-controller@f8003000", 0),
        ("dma-controller", 0),
        ("dmac", 0),
        ("dma@fd500000", 3),
        ("dma@fd510000", 4),
        ("Card", 5),
    ] {
        let uio = tree.find(name).unwrap();
        assert_eq!((uio.index(), uio.addr()), (index, PhysAddr(0xF800_3000)), "{name}");
        let (registers, _irq) = uio.into_parts();
        let found = (registers.len_bytes(), registers.read32(0), registers.read32(4));
        assert_eq!(found, (0x1000, 0x1000 + index, 7), "{name}");
        assert_eq!(registers.read32(0x1000), u32::MAX, "past the window's end");
    }
    assert_eq!(tree.find("dma").unwrap_err(), Error::Ambiguous { what: "UIO device", matches: 2 });
    let not_found = Error::NotFound { what: "UIO device", among: 4.into() };
    for none in ["DMAC", "card", "dma-contr", "controller", "f8003000", "dma@", "soc", "uio0"] {
        assert_eq!(tree.find(none).unwrap_err(), not_found, "{none}");
    }
    let long = "a".repeat(64);
    for bad in ["", "..", "a/b", "nul\0", &long] {
        let bad_name = Error::BadName { len_bytes: bad.len(), max_bytes: 63 };
        assert_eq!(tree.find(bad).unwrap_err(), bad_name, "{bad:?}");
    }
    // A device that goes away between two looks is not the one, and no reason to end the search.
    tree.remove("sys/class/uio/uio3/name");
    tree.remove("sys/class/uio/uio3/device/of_node");
    assert_eq!(tree.find("dma").unwrap().index(), 4);
    assert_eq!(tree.open(9).unwrap_err(), not_found);
    assert_eq!(tree.held(), (0, 0), "nothing stays open, and nothing mapped");
}

#[test]
fn a_window_may_begin_inside_a_page() {
    let tree = FakeDevices::new();
    tree.uio(0, None, "odd");
    tree.registers("dev/uio0", 0..2048);
    // `uio_pdrv_genirq` and `uio_pci_generic` count `size` from the page, and round it up.
    tree.map(0, 0, "0xf8003000", "0x1000", "0x400");
    let (registers, irq) = tree.open(0).unwrap().into_parts();
    assert_eq!(registers.len_bytes(), 0xC00);
    assert_eq!([0, 0xBFC, 0xC00].map(|at| registers.read32(at)), [0x100, 0x3FF, u32::MAX]);
    assert_eq!(tree.mapped_bytes(), [4096], "the kernel maps no page more");
    // SAFETY: a file.
    unsafe { registers.write32(8, 0xCAFE) };
    assert_eq!(tree.word("dev/uio0", 0x408), 0xCAFE, "a write arrives in the device");
    drop((registers, irq));

    // Older kernels have no such file.
    tree.map(0, 0, "0xf8003000", "0x1000", "0");
    tree.remove("sys/class/uio/uio0/maps/map0/offset");
    assert_eq!(tree.open(0).unwrap().into_parts().0.len_bytes(), 0x1000);
}

#[test]
fn a_device_may_have_several_windows() {
    let tree = FakeDevices::new();
    tree.uio(0, Some("gemm8@40000000"), "gemm8");
    tree.registers("dev/uio0", 0..2048);
    tree.map(0, 1, "0x40010000", "0x1000", "0x10");
    tree.map(0, 2, "0x40020000", "0x0", "0x0");
    let mut uio = tree.find("gemm8").unwrap();
    let second = uio.map(1).unwrap();
    let found = (second.len_bytes(), second.read32(0));
    assert_eq!(found, (0xFF0, 0x404), "map 1 is the second page of the file");
    let mut refused = |index| uio.map(index).map(drop).unwrap_err();
    assert_eq!(refused(1), Error::InUse { errno: libc::EBUSY }, "it is mapped already");
    assert_eq!(refused(2), Error::Unexpected { name: "maps/map2/size", value: 0 });
    assert_eq!(refused(3), Error::AttributeMissing { name: "maps/map3/addr" });
    for index in [0, 5, u32::MAX] {
        let value = index.into();
        let beyond = Error::Argument { name: "map", value, min: 1, max: 4, multiple_of: 1 };
        assert_eq!(refused(index), beyond);
    }
    let (first, irq) = uio.into_parts();
    assert_eq!((first.read32(0), tree.find("gemm8").unwrap_err()), (0, IN_USE));
    drop((first, irq));
    assert_eq!(tree.find("gemm8").unwrap_err(), IN_USE, "a window alone keeps the lock");
    drop(second);
    assert_eq!((tree.find("gemm8").map(drop), tree.held()), (Ok(()), (0, 0)));
}

#[test]
fn one_driver_at_a_time() {
    let tree = FakeDevices::new();
    tree.uio(0, Some("dma@1000"), "dma");
    let again = || tree.find("dma").map(drop);
    // SAFETY: no driver is made of it.
    let polled = unsafe { tree.find("dma").unwrap().polled(PORT) };
    assert_eq!((polled.port(), polled.len_bytes(), again()), (&PORT, 0x1000, Err(IN_USE)));
    drop(polled);
    // SAFETY: as above.
    let wired = unsafe { tree.find("dma").unwrap().wired(PORT) };
    assert_eq!((wired.port(), again()), (&PORT, Err(IN_USE)));
    drop(wired);
    // A program that still holds a part of the device holds the device.
    let (registers, irq) = tree.find("dma").unwrap().into_parts();
    drop(irq);
    assert_eq!((registers.read32(0), again()), (0x1000, Err(IN_USE)));
    drop(registers);
    let (registers, irq) = tree.find("dma").unwrap().into_parts();
    let bell = irq.try_clone().unwrap();
    drop((registers, irq));
    assert_eq!(again(), Err(IN_USE));
    drop(bell);
    assert_eq!((again(), tree.held()), (Ok(()), (0, 0)));
}

#[test]
fn what_cannot_be_is_refused() {
    let tree = FakeDevices::new();
    assert_eq!(tree.open(0).unwrap_err(), Error::NotFound { what: "UIO device", among: 0.into() });
    let nonsense = |name, value| Error::Unexpected { name, value };
    let (addr, size, offset) = ("maps/map0/addr", "maps/map0/size", "maps/map0/offset");
    let whole = "this kernel's driver maps whole pages only: a newer one rounds";
    let cases = [
        ("size", "0x0\n", nonsense(size, 0)),
        ("size", "", Error::AttributeEmpty { name: size }),
        ("size", "0x10zz\n", nonsense(size, 0x10)),
        ("size", "0x10000000000000000\n", nonsense(size, 0x1000_0000_0000_0000)),
        ("size", "0xffffffffffffffff\n", nonsense(addr, 0xF800_3000)),
        ("size", "0x40001000\n", Error::Os { call: "mmap(/dev/uio)", errno: libc::EINVAL }),
        ("offset", "0x1000\n", nonsense(offset, 0x1000)),
        ("offset", "0x2\n", nonsense(offset, 2)),
        ("addr", "0xf8003400\n", Error::Setting { name: addr, value: 0xF800_3400, fix: whole }),
        ("addr", "0xfffffffffffff000\n", nonsense(addr, 0xFFFF_FFFF_FFFF_F000)),
        ("addr", "(null)\n", nonsense(addr, 0)),
    ];
    for (file, text, expected) in cases {
        tree.uio(1, None, "dma");
        tree.file(&format!("sys/class/uio/uio1/maps/map0/{file}"), text);
        assert_eq!(tree.open(1).unwrap_err(), expected, "{file} = {text:?}");
    }
    tree.uio(1, None, "dma");
    tree.map(1, 0, "0xf8003000", "0x800", "0x800");
    assert_eq!(tree.open(1).unwrap_err(), nonsense(size, 0x800), "nothing is behind the offset");
    for (file, name) in [("addr", addr), ("size", size)] {
        tree.uio(2, None, "gone");
        tree.remove(&format!("sys/class/uio/uio2/maps/map0/{file}"));
        assert_eq!(tree.open(2).unwrap_err(), Error::AttributeMissing { name });
    }
    tree.uio(3, None, "gone");
    tree.remove("dev/uio3");
    let gone = Error::Os { call: "open(/dev/uio)", errno: libc::ENOENT };
    assert_eq!(tree.open(3).unwrap_err(), gone);
    // The kernel maps no part of a page; a pipe, no part at all.
    nix::unistd::mkfifo(&tree.path("dev/uio3"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let unmappable = Error::Os { call: "mmap(/dev/uio)", errno: libc::ENODEV };
    assert_eq!(tree.open(3).unwrap_err(), unmappable);
    assert_eq!(tree.held(), (0, 0), "nothing stays open, and nothing mapped");
}

#[test]
fn a_pci_function_is_not_opened_as_a_device() {
    let tree = FakeDevices::new();
    tree.uio(2, None, "uio_pci_generic");
    // Not even to find out: closing the file would stop the function's driver.
    tree.remove("dev/uio2");
    let refused = Error::Denied {
        what: "/dev/uioN",
        errno: libc::EBUSY,
        fix: "it is a PCI function: open it with PciFunction",
    };
    let found = tree.find("uio_pci_generic").unwrap_err();
    assert_eq!([tree.open(2).unwrap_err(), found], [refused; 2]);
}

#[test]
fn an_ordinary_user_needs_the_files_rights() {
    let tree = FakeDevices::new();
    tree.uio(0, Some("dma@1000"), "dma");
    fs::set_permissions(tree.path("dev/uio0"), fs::Permissions::from_mode(0o600)).unwrap();
    let fix = "add a udev rule that gives the file to this user's group, or be root";
    let refused = Error::Denied { what: "/dev/uioN", errno: libc::EACCES, fix };
    if nix::unistd::geteuid().is_root() {
        assert_eq!(as_nobody(|| tree.find("dma").map(drop)), Err(refused));
    } else {
        contigo_testkit::skipped(
            "uio::an_ordinary_user_needs_the_files_rights",
            "without root, every file here is this user's own",
        );
    }
    fs::set_permissions(tree.path("dev/uio0"), fs::Permissions::from_mode(0o666)).unwrap();
    assert_eq!(as_nobody(|| tree.find("dma").map(|uio| uio.into_parts().0.read32(0))), Ok(0x1000));
}

#[test]
fn dev_mem_refuses_what_is_no_register() {
    // SAFETY: nothing is mapped; or, where it is, nothing is read.
    let open =
        |addr, len_bytes| unsafe { Registers::from_dev_mem(PhysAddr(addr), len_bytes) }.map(drop);
    let misaligned = Error::Misaligned { addr: 0xF800_3002, align_bytes: 4 };
    assert_eq!(open(0xF800_3002, 4096), Err(misaligned));
    for len_bytes in [0, 2, 4098, (1 << 30) + 4] {
        let (name, value, max) = ("len_bytes", len_bytes as u64, 1 << 30);
        let beyond = Error::Argument { name, value, min: 4, max, multiple_of: 4 };
        assert_eq!(open(0xF800_3000, len_bytes), Err(beyond));
    }
    match as_nobody(|| open(0xF800_3000, 4096)) {
        Err(Error::Denied { what: "/dev/mem", errno: libc::EACCES, .. }) => {}
        Err(Error::Os { call: "open(/dev/mem)", errno: libc::ENOENT }) => {
            assert!(!fs::exists("/dev/mem").unwrap())
        }
        other => panic!("{other:?}"),
    }
}

/// An interrupt whose clock counts how often it is asked, 1 us a call, and how often the program
/// waits.
struct Clock {
    asked: Cell<u64>,
    waits: Cell<u64>,
    before: u32,
}

impl Wait for Clock {
    fn now_us(&self) -> u64 {
        self.asked.set(self.asked.get() + 1);
        self.asked.get()
    }
    fn wait_at_most(&self, _: u32) -> Result<(), Error> {
        self.waits.set(self.waits.get() + 1);
        Ok(())
    }
    fn looks_before_clock(&self) -> u32 {
        self.before
    }
}

#[test]
fn looks_precede_a_dear_clock() {
    const NEVER: u64 = u64::MAX;
    for (before, limit_us, looks_needed, expected) in [
        (100, 1_000, 100, (true, 0, 99)),
        (100, 1_000, 101, (true, 0, 100)),
        (100, 1_000, 1, (true, 0, 0)),
        (100, 1_000, 102, (true, 2, 101)),
        (0, 1_000, 1, (true, 0, 0)),
        (0, 1_000, 2, (true, 2, 1)),
        // The limit begins after them: so many looks longer, and no more.
        (100, 10, NEVER, (false, 11, 100 + 9)),
        // However many an interrupt asks for.
        (u32::MAX, 1, NEVER, (false, 2, 10_000)),
        // One look is one look.
        (100, 0, NEVER, (false, 0, 0)),
    ] {
        let irq = Clock { asked: Cell::new(0), waits: Cell::new(0), before };
        let mut looks = 0;
        let done = poll_until(&irq, Duration::from_micros(limit_us), |_| {
            looks += 1;
            looks >= looks_needed
        });
        let found = (done.unwrap(), irq.asked.get(), irq.waits.get());
        assert_eq!(found, expected, "{before} before, {looks_needed} needed");
    }
    // A device passes on what its interrupt says.
    let tree = FakeDevices::new();
    tree.uio(0, None, "dma");
    let (registers, _irq) = tree.open(0).unwrap().into_parts();
    let irq = Clock { asked: Cell::new(0), waits: Cell::new(0), before: 100 };
    // SAFETY: no driver is made of it.
    let wired = unsafe { Wired::new(registers, irq, PORT) };
    assert_eq!(wired.looks_before_clock(), 100);
}
