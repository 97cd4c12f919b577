//! PCI functions, over trees of files that look like the kernel's: what is found, what is refused,
//! bus mastering, the interrupt by `uio_pci_generic`, and that nothing stays open. With a real
//! kernel they are tested on the lab's boards.

use contigo::linux::device::UioIrq;
use contigo::{Bus, Device, Error, Mmio, Port, Wait};
use contigo_testkit::fake_devices::{FakeDevices, as_nobody};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::time::{Duration, Instant};

const EDU: &str = "0000:00:01.0";
const PORT: Port = Port {
    name: "test",
    bus: Bus::Soc,
    offset: 0,
    addr_bits: 64,
    window: (0, u64::MAX),
    coherent: true,
};
const IN_USE: Error = Error::InUse { errno: libc::EWOULDBLOCK };
const NOT_BOUND: Error = Error::NotFound {
    what: "UIO device of this PCI function (bind uio_pci_generic to it)",
    among: contigo::types::Among::of(0),
};

/// One function, like QEMU's edu.
fn edu() -> FakeDevices {
    let tree = FakeDevices::new();
    tree.pci(EDU, 0x1234, 0x11E8);
    tree
}

fn at(file: &str) -> String {
    FakeDevices::pci_path(EDU, file)
}

/// Binds `uio_pci_generic` to it, as number `index`. The returned file raises its interrupt. The
/// file is a pipe, which answers like the kernel's: nothing, or 4 bytes.
fn bind(tree: &FakeDevices, index: u32) -> fs::File {
    tree.folder(&at(&format!("uio/uio{index}")));
    tree.link(&at("driver"), "../../../../bus/pci/drivers/uio_pci_generic");
    let file = tree.path(&format!("dev/uio{index}"));
    mkfifo(&file, Mode::S_IRWXU).unwrap();
    OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(file).unwrap()
}

fn raise(line: &mut fs::File) {
    line.write_all(&1_u32.to_ne_bytes()).unwrap();
}

#[test]
fn a_function_is_found_by_its_ids() {
    let tree = edu();
    tree.pci("0000:00:02.0", 0x1AF4, 0x1000);
    tree.pci("0000:00:03.0", 0x1AF4, 0x1000);
    tree.pci("10000:e0:1f.7", 0x8086, 0x10D3);
    tree.folder("sys/bus/pci/devices/0000:00:04.0"); // it is going
    let find = |vendor, device| tree.find_pci(vendor, device).map(drop);
    let not_found = |among: u32| Err(Error::NotFound { what: "PCI function", among: among.into() });
    let function = tree.find_pci(0x1234, 0x11E8).unwrap();
    assert_eq!((function.address(), function.id()), (EDU, Ok((0x1234, 0x11E8))));
    assert_eq!(tree.find_pci(0x8086, 0x10D3).unwrap().address(), "10000:e0:1f.7");
    assert_eq!(find(0x1AF4, 0x1000), Err(Error::Ambiguous { what: "PCI function", matches: 2 }));
    for (vendor, device) in [(0x1234, 0x11E9), (0x1233, 0x11E8), (0x11E8, 0x1234)] {
        assert_eq!(find(vendor, device), not_found(5));
    }
    assert_eq!(find(0x1234, 0x11E8), Err(IN_USE));
    drop(function);
    let without_pci = FakeDevices::new();
    assert_eq!(without_pci.find_pci(0x1234, 0x11E8).map(drop), not_found(0));
    assert_eq!(without_pci.open_pci(EDU).map(drop), not_found(0));
    assert_eq!(tree.held(), (0, 0), "nothing stays open, and nothing mapped");
}

#[test]
fn an_address_names_one_function() {
    let tree = edu();
    assert_eq!(tree.open_pci(EDU).map(|function| function.id()), Ok(Ok((0x1234, 0x11E8))));
    let not_found = Error::NotFound { what: "PCI function", among: 1.into() };
    assert_eq!(tree.open_pci("0000:00:1f.7").map(drop), Err(not_found));
    let (long, beyond) = ("123456789:00:01.0", "0000:00:01.8");
    for bad in ["../etc", "", "0000:00:01", "00:01.0", beyond, "0000:00:01.0/..", long] {
        let bad_name = Error::BadName { len_bytes: bad.len(), max_bytes: 16 };
        assert_eq!(tree.open_pci(bad).map(drop), Err(bad_name), "{bad:?}");
    }
    tree.file(&at("device"), "0xfffff\n");
    let too_large = Error::Unexpected { name: "device", value: 0xF_FFFF };
    assert_eq!(tree.open_pci(EDU).unwrap().id(), Err(too_large));
    tree.remove(&at("vendor"));
    assert_eq!(tree.open_pci(EDU).unwrap().id(), Err(Error::AttributeMissing { name: "vendor" }));
}

#[test]
fn a_bar_is_mapped_once_and_where_it_begins() {
    let tree = edu();
    let function = tree.open_pci(EDU).unwrap();
    let bar = function.bar(0).unwrap();
    assert_eq!(bar.len_bytes(), 0x1000);
    assert_eq!([bar.read32(0), bar.read32(0x1000)], [0x0100_00ED, u32::MAX]);
    // SAFETY: a file.
    unsafe { bar.write32(4, 0xFEED) };
    assert_eq!(tree.word(&at("resource0"), 4), 0xFEED);
    let small = function.bar(5).unwrap();
    assert_eq!(small.len_bytes(), 0x100, "it begins at 0x100 of its page");
    assert_eq!([small.read32(0), small.read32(0x100)], [0x40, u32::MAX]);
    for index in [0, 5] {
        // Two windows on the same registers.
        assert_eq!(function.bar(index).map(drop), Err(Error::InUse { errno: libc::EBUSY }));
    }
    drop((function, bar));
    assert_eq!(tree.open_pci(EDU).map(drop), Err(IN_USE), "a window alone keeps the lock");
    drop(small);
    assert_eq!((tree.open_pci(EDU).map(drop), tree.held()), (Ok(()), (0, 0)));
}

#[test]
fn a_bar_that_holds_no_registers_is_refused() {
    let tree = edu();
    let function = tree.open_pci(EDU).unwrap();
    let refused = |bar| function.bar(bar).map(drop).unwrap_err();
    let name = "resource";
    let no_memory = |value| {
        let fix = "this BAR holds no memory: use another";
        Error::Setting { name, value, fix }
    };
    let no_address = |value| {
        let fix = "this BAR got no address: see the kernel's log for why";
        Error::Setting { name, value, fix }
    };
    assert_eq!(refused(1), no_memory(0x4_0101), "I/O ports");
    assert_eq!(refused(2), no_memory(0));
    assert_eq!(refused(3), no_address(0x4_0200));
    assert_eq!(refused(4), Error::Unexpected { name, value: 0xFFF }, "it ends before it begins");
    let beyond = Error::Argument { name: "bar", value: 6, min: 0, max: 5, multiple_of: 1 };
    assert_eq!(refused(6), beyond);
    tree.resource(EDU, [(0x1000_0000, 0x1000_0FFF, 0x2004_0200); 6]);
    assert_eq!(refused(0), no_address(0x2004_0200));
    tree.resource(EDU, [(0x1000_0000, 0x1000_0FFF, 0x4_0200); 6]);
    tree.remove(&at("resource0"));
    assert_eq!(refused(0), Error::Os { call: "open(resource)", errno: libc::ENOENT });
    let no_number = "0x0000000010000000 0x0000000010000fff 0x4g\n";
    for (text, error) in [
        ("", Error::AttributeEmpty { name }),
        ("0x0000000010000000\n", Error::AttributeEmpty { name }),
        (no_number, Error::Unexpected { name, value: 4 }),
    ] {
        tree.file(&at(name), text);
        assert_eq!(refused(0), error, "{text:?}");
    }
    tree.remove(&at(name));
    assert_eq!(refused(0), Error::AttributeMissing { name });
    drop(function);
    assert_eq!(tree.held(), (0, 0), "nothing stays open, and nothing mapped");
}

/// The configuration space: all that is not asked for stays as it was.
fn command(tree: &FakeDevices) -> [u8; 2] {
    let [0xFF, 0xFF, 0xFF, 0xFF, low, high, 0xFF, 0xFF] = *tree.config(EDU) else {
        panic!("{:x?}", tree.config(EDU))
    };
    [low, high]
}

/// The command register with memory space on and bus mastering off, or both on.
const MEMORY: [u8; 2] = [0x03, 0x05];
const MASTER: [u8; 2] = [0x07, 0x05];

#[test]
fn bus_mastering_is_given_by_own_handle() {
    let tree = edu();
    tree.file(&at("config"), [0xFF, 0xFF, 0xFF, 0xFF, 0x01, 0x05, 0xFF, 0xFF]);
    let function = tree.open_pci(EDU).unwrap();
    assert_eq!((function.enable(), command(&tree)), (Ok(()), MEMORY), "and nothing else");
    let master = function.bus_master().unwrap();
    // SAFETY: there is no function, and nothing masters a bus.
    let enable = || unsafe { master.enable() };
    assert_eq!((enable(), command(&tree)), (Ok(()), MASTER));
    // Bus mastering that was left on needs a new claim.
    assert_eq!((function.enable(), command(&tree)), (Ok(()), MEMORY));
    assert_eq!((enable(), command(&tree)), (Ok(()), MASTER));
    assert_eq!((function.bus_master().unwrap().disable(), command(&tree)), (Ok(()), MEMORY));
    // The driver's own handle, after the function went into its parts.
    // SAFETY: no driver is made of it.
    let device = unsafe { function.polled(0, PORT) }.unwrap();
    assert_eq!((device.port(), device.read32(0)), (&PORT, 0x0100_00ED));
    assert_eq!((enable(), command(&tree)), (Ok(()), MASTER));
    assert_eq!((master.disable(), command(&tree)), (Ok(()), MEMORY));
    drop(device);
    // It may still take mastering away from the next one.
    assert_eq!(tree.open_pci(EDU).map(drop), Err(IN_USE));
    drop(master);
    assert_eq!((tree.open_pci(EDU).map(drop), tree.held()), (Ok(()), (0, 0)));
}

#[test]
fn interrupt_gives_no_mastering_back() {
    let tree = edu();
    let _line = bind(&tree, 0);
    let function = tree.open_pci(EDU).unwrap();
    let master = function.bus_master().unwrap();
    let bell = function.uio_irq().unwrap();
    let start = Instant::now();
    std::thread::scope(|scope| {
        // Two threads change one register, as a driver and an event loop do.
        let arming = scope.spawn(move || {
            let mut armed = 0;
            while start.elapsed() < Duration::from_millis(300) {
                armed += u32::from(bell.arm() == Ok(()));
            }
            armed
        });
        while !arming.is_finished() {
            // SAFETY: there is no function, and nothing masters a bus.
            let done = [function.enable(), unsafe { master.enable() }, master.disable()];
            assert_eq!(done, [Ok(()); 3]);
            for _ in 0..10 {
                assert_eq!(command(&tree)[0], 0x03, "an unmasking gave the bus back");
            }
        }
        assert!(arming.join().unwrap() > 100);
    });
}

#[test]
fn a_function_that_does_not_obey_is_an_error() {
    let tree = edu();
    // A device that is gone, or asleep, reads as all ones: also the bits that were asked for.
    tree.file(&at("config"), [0xFF; 8]);
    let function = tree.open_pci(EDU).unwrap();
    let gone = Err(Error::Unexpected { name: "config", value: 0xFFFF });
    assert_eq!([function.enable(), function.bus_master().unwrap().disable()], [gone; 2]);
    assert_eq!(tree.config(EDU), [0xFF; 8], "and is not written to");
    tree.file(&at("config"), []);
    assert_eq!(function.enable(), Err(Error::Os { call: "pread(config)", errno: libc::EIO }));
    drop(function);
    // It takes every write, and reads as 0.
    tree.link(&at("config"), "/dev/zero");
    let fix =
        "the function keeps a bit of its command register as it was: it cannot be driven from here";
    let function = tree.open_pci(EDU).unwrap();
    assert_eq!(function.enable(), Err(Error::Setting { name: "config", value: 0, fix }));
    assert_eq!(function.bus_master().unwrap().disable(), Ok(()));
    drop(function);
    tree.link(&at("config"), "/dev/full");
    let function = tree.open_pci(EDU).unwrap();
    assert_eq!(function.enable(), Err(Error::Os { call: "pwrite(config)", errno: libc::ENOSPC }));
}

#[test]
fn what_the_kernel_uses_is_left_to_it() {
    let tree = edu();
    tree.folder(&at("."));
    tree.link(&at("driver"), "../../../../bus/pci/drivers/e1000e");
    let fix = "a driver of the kernel has it: bind uio_pci_generic to it instead \
        (driver_override, unbind, drivers_probe)";
    let busy = Error::Denied { what: "a PCI function", errno: libc::EBUSY, fix };
    assert_eq!(tree.open_pci(EDU).map(drop), Err(busy));
    tree.link(&at("driver"), "../../../../bus/pci/drivers/uio_pci_generic");
    assert_eq!(tree.open_pci(EDU).map(drop), Ok(()));
    if nix::unistd::geteuid().is_root() {
        fs::set_permissions(tree.path(&at("config")), fs::Permissions::from_mode(0o644)).unwrap();
        let fix = "be root; or put it behind an IOMMU, and use VFIO";
        let refused = Error::Denied { what: "a PCI function", errno: libc::EACCES, fix };
        assert_eq!(as_nobody(|| tree.open_pci(EDU).map(drop)), Err(refused));
    } else {
        contigo_testkit::skipped(
            "pci::what_the_kernel_uses_is_left_to_it",
            "without root, every file here is this user's own",
        );
    }
}

/// Wires `function` both ways, with what the kernel says of its IOMMU.
fn wire(tree: &FakeDevices) -> [Result<(), Error>; 2] {
    // SAFETY: no driver is made of it.
    let wired = unsafe { tree.open_pci(EDU).unwrap().wired(0, PORT) }.map(drop);
    // SAFETY: as above.
    [wired, unsafe { tree.open_pci(EDU).unwrap().polled(0, PORT) }.map(drop)]
}

#[test]
fn behind_an_iommu_no_physical_address_is_right() {
    let tree = edu();
    let _line = bind(&tree, 0);
    assert_eq!(wire(&tree), [Ok(()); 2], "no IOMMU");
    tree.folder("sys/kernel/iommu_groups/7");
    tree.link(&at("iommu_group"), "../../../../kernel/iommu_groups/7");
    let fix =
        "an IOMMU translates this function's addresses: use VFIO, or boot with iommu.passthrough=1";
    let translated = Err(Error::Setting { name: "iommu_group", value: 1, fix });
    assert_eq!(wire(&tree), [translated; 2], "no `type` file: it may translate");
    for kind in ["DMA", "DMA-FQ", "blocked", "identity"] {
        tree.file("sys/kernel/iommu_groups/7/type", format!("{kind}\n"));
        let expected = if kind == "identity" { Ok(()) } else { translated };
        assert_eq!(wire(&tree), [expected; 2], "{kind}");
    }
    // A port on a bus of its own takes no physical address.
    tree.file("sys/kernel/iommu_groups/7/type", "DMA\n");
    let port = Port { bus: contigo::Bus::Iommu(1), ..PORT };
    // SAFETY: no driver is made of it.
    assert_eq!(unsafe { tree.open_pci(EDU).unwrap().polled(0, port) }.map(drop), Ok(()));
}

fn readable(file: &impl AsFd, timeout_ms: u8) -> bool {
    let mut files = [PollFd::new(file.as_fd(), PollFlags::POLLIN)];
    poll(&mut files, PollTimeout::from(timeout_ms)).unwrap() == 1
}

#[test]
fn the_interrupt_comes_through_uio_pci_generic() {
    let tree = edu();
    // Another function's, and one that is no number.
    tree.folder("sys/class/uio/uio0");
    tree.folder(&at("uio/power"));
    let mut line = bind(&tree, 12);
    let function = tree.open_pci(EDU).unwrap();
    // SAFETY: no driver is made of it.
    let device = unsafe { function.wired(0, PORT) }.unwrap();

    let start = Instant::now();
    assert_eq!(device.wait_at_most(20_000), Ok(()));
    let waited = start.elapsed();
    assert!((Duration::from_millis(20)..Duration::from_secs(10)).contains(&waited), "{waited:?}");
    assert_eq!(command(&tree), [0x03, 0x01], "INTx is unmasked, and nothing else changed");
    raise(&mut line);
    assert!(readable(&device, 100));
    let start = Instant::now();
    assert_eq!(device.wait_at_most(60_000_000), Ok(()));
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
    assert!(!readable(&device, 0), "the wait took it");
    drop(device);
    drop(line);
    assert_eq!(tree.held(), (0, 0), "nothing stays open, and nothing mapped");
}

#[test]
fn an_event_loop_has_a_handle_of_its_own() {
    let tree = edu();
    let mut line = bind(&tree, 0);
    let function = tree.open_pci(EDU).unwrap();
    let irq = function.uio_irq().unwrap();
    let bell: UioIrq = irq.try_clone().unwrap();
    // SAFETY: no driver is made of it.
    let device = unsafe { contigo::hw::Wired::new(function.bar(0).unwrap(), irq, PORT) };
    let master = function.bus_master().unwrap();
    assert_eq!(tree.inherited(), 0, "a program that is started drives no device");
    drop((function, master));
    assert_eq!((bell.arm(), command(&tree)), (Ok(()), [0x03, 0x01]));
    assert!(!readable(&bell, 1));
    raise(&mut line);
    assert!(readable(&bell, 100) && readable(&device, 100));
    // As the kernel masks it.
    tree.file(&at("config"), [0xFF, 0xFF, 0xFF, 0xFF, 0x07, 0x05, 0xFF, 0xFF]);
    assert_eq!((bell.arm(), bell.interrupts()), (Ok(()), 1));
    assert!(!readable(&bell, 0), "an earlier interrupt is forgotten");
    drop(device);
    assert_eq!(tree.open_pci(EDU).map(drop), Err(IN_USE), "the handle is part of the function");
    drop(bell);
    assert_eq!(tree.open_pci(EDU).map(drop), Ok(()));
}

#[test]
fn without_uio_pci_generic_there_is_no_interrupt() {
    let tree = edu();
    let irq = |tree: &FakeDevices| tree.open_pci(EDU).unwrap().uio_irq().map(drop);
    assert_eq!(irq(&tree), Err(NOT_BOUND));
    tree.folder(&at("uio"));
    assert_eq!(irq(&tree), Err(NOT_BOUND));
    let line = bind(&tree, 3);
    assert_eq!(irq(&tree), Ok(()));
    line.lock().unwrap();
    assert_eq!(irq(&tree), Err(IN_USE));
    drop(line);
    tree.remove("dev/uio3");
    assert_eq!(irq(&tree), Err(Error::Os { call: "open(/dev/uio)", errno: libc::ENOENT }));
    assert_eq!(tree.held(), (0, 0), "nothing stays open, and nothing mapped");
}
