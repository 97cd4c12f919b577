//! UIO devices and PCI functions, over trees of files that look like the kernel's: what is found, what is refused, and that
//! nothing stays open. With a real kernel they are tested on the lab's boards.
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that panics has failed, which is its purpose"
)]

use contigo::{Bus, Device, Error, Irq, Mmio, PciFunction, Port, Uio};
use std::{
    cell::Cell,
    fs,
    os::unix::fs::{FileExt, PermissionsExt, symlink},
    path::Path,
};
use tempfile::TempDir;

const PORT: Port = Port { name: "test", bus: Bus::Soc, offset: 0, addr_bits: 32, window: (0, u32::MAX as u64), coherent: false };

/// A tree with `/sys` and `/dev`.
struct Tree(TempDir);

impl Tree {
    fn new() -> Self {
        let tree = Self(tempfile::tempdir().unwrap());
        tree.folder("dev");
        tree.folder("sys/class/uio");
        tree
    }

    fn folder(&self, path: &str) {
        fs::create_dir_all(self.0.path().join(path)).unwrap();
    }

    fn file(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn registers(&self, path: &str, words: &[u32]) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).chain([0; 8192]).take(8192).collect();
        fs::write(self.0.path().join(path), bytes).unwrap();
    }

    fn uio(&self, index: u32, node: Option<&str>, name: &str) {
        let class = format!("sys/class/uio/uio{index}");
        self.file(&format!("{class}/name"), &format!("{name}\n"));
        self.file(&format!("{class}/maps/map0/size"), "0x0000000000001000\n");
        self.file(&format!("{class}/maps/map0/offset"), "0x0\n");
        self.folder(&format!("{class}/device"));
        if let Some(node) = node {
            symlink(format!("../../../firmware/devicetree/base/soc/{node}"), self.0.path().join(&class).join("device/of_node")).unwrap();
        }
        self.registers(&format!("dev/uio{index}"), &[0x1000 + index, 7]);
    }

    fn root(&self) -> &str {
        self.0.path().to_str().unwrap()
    }

    fn find(&self, name: &str) -> Result<Uio, Error> {
        // SAFETY: no driver is made of it.
        unsafe { Uio::find_under(self.root(), name) }
    }

    fn open(&self, index: u32) -> Result<Uio, Error> {
        // SAFETY: as in `find`.
        unsafe { Uio::open_under(self.root(), index) }
    }

    fn pci(&self, address: &str) -> Result<PciFunction, Error> {
        // SAFETY: as in `find`.
        unsafe { PciFunction::open_under(self.root(), address) }
    }
}

/// How many files of the tree at `root` this process has open.
fn open_below(root: &Path) -> usize {
    let links = fs::read_dir("/proc/self/fd").unwrap().filter_map(|entry| fs::read_link(entry.unwrap().path()).ok());
    links.filter(|target| target.starts_with(root)).count()
}

#[test]
fn a_device_is_found_by_each_of_its_names() {
    let tree = Tree::new();
    tree.uio(0, Some("dma-controller@f8003000"), "dmac");
    tree.uio(3, Some("dma@fd500000"), "dma@fd500000"); // the numbers have holes
    tree.uio(4, Some("dma@fd510000"), "dma@fd510000");
    tree.uio(5, None, "uio_pci_generic");
    for (name, index) in [
        ("dma-controller@f8003000", 0),
        ("dma-controller", 0),
        ("dmac", 0),
        ("dma@fd500000", 3),
        ("dma@fd510000", 4),
        ("uio_pci_generic", 5),
    ] {
        let uio = tree.find(name).unwrap();
        assert_eq!(uio.index(), index, "{name}");
        let (registers, _irq) = uio.into_parts();
        assert_eq!((registers.len_bytes(), registers.read32(0), registers.read32(4)), (0x1000, 0x1000 + index, 7), "{name}");
        assert_eq!(registers.read32(0x1000), u32::MAX, "past the window's end");
    }
    assert_eq!(tree.find("dma").unwrap_err(), Error::Ambiguous { what: "UIO device", matches: 2 });
    assert_eq!(tree.find("DMAC").unwrap_err(), Error::NotFound { what: "UIO device", among: 4 });
    assert_eq!(tree.find("dma-contr").unwrap_err(), Error::NotFound { what: "UIO device", among: 4 });
    for bad in ["", "..", "a/b", "nul\0"] {
        assert_eq!(tree.find(bad).unwrap_err(), Error::BadName { len_bytes: bad.len(), max_bytes: 63 }, "{bad:?}");
    }
    assert_eq!(open_below(tree.0.path()), 0, "nothing stays open");
}

#[test]
fn a_window_may_begin_inside_a_page() {
    let tree = Tree::new();
    tree.uio(0, None, "odd");
    tree.registers("dev/uio0", &(0..512).collect::<Vec<_>>());
    tree.file("sys/class/uio/uio0/maps/map0/offset", "0x400\n");
    tree.file("sys/class/uio/uio0/maps/map0/size", "0x100\n");
    let (registers, _) = tree.open(0).unwrap().into_parts();
    assert_eq!((registers.len_bytes(), registers.read32(0), registers.read32(0xFC)), (0x100, 0x100, 0x13F));
    // SAFETY: a file.
    unsafe { registers.write32(8, 0xCAFE) };
    let mut word = [0; 4];
    fs::File::open(tree.0.path().join("dev/uio0")).unwrap().read_exact_at(&mut word, 0x408).unwrap();
    assert_eq!(u32::from_le_bytes(word), 0xCAFE, "what is written arrives in the device");
}

#[test]
fn one_driver_at_a_time() {
    let tree = Tree::new();
    tree.uio(0, Some("dma@1000"), "dma");
    let again = || tree.find("dma").map(drop);
    // SAFETY: no driver is made of it.
    let polled = unsafe { tree.find("dma").unwrap().polled(PORT) };
    assert_eq!(polled.port(), &PORT);
    assert_eq!(again(), Err(Error::InUse { errno: libc::EWOULDBLOCK }), "polled, it is still taken");
    drop(polled);
    // SAFETY: as above.
    let wired = unsafe { tree.find("dma").unwrap().wired(PORT) };
    assert_eq!(again(), Err(Error::InUse { errno: libc::EWOULDBLOCK }));
    drop(wired);
    assert_eq!(again(), Ok(()));
}

#[test]
fn what_cannot_be_is_refused() {
    let tree = Tree::new();
    assert_eq!(tree.open(0).unwrap_err(), Error::NotFound { what: "UIO device", among: 0 });
    let cases = [
        ("size", "0x0\n", Error::AttributeNonsense { name: "maps/map0/size", value: 0 }),
        ("size", "", Error::AttributeEmpty { name: "maps/map0/size" }),
        ("size", "0x10zz\n", Error::AttributeNonsense { name: "maps/map0/size", value: 0x10 }),
        ("size", "0xffffffffffffffff\n", Error::Os { call: "mmap(/dev/uio)", errno: libc::EINVAL }),
        ("offset", "0x1000\n", Error::AttributeNonsense { name: "maps/map0/offset", value: 0x1000 }),
        ("offset", "0x2\n", Error::Os { call: "mmap(/dev/uio)", errno: libc::EINVAL }),
    ];
    for (file, text, expected) in cases {
        tree.uio(1, None, "dma");
        tree.file(&format!("sys/class/uio/uio1/maps/map0/{file}"), text);
        assert_eq!(tree.open(1).unwrap_err(), expected, "{file} = {text:?}");
    }
    tree.uio(2, None, "gone");
    fs::remove_file(tree.0.path().join("sys/class/uio/uio2/maps/map0/size")).unwrap();
    assert_eq!(tree.open(2).unwrap_err(), Error::AttributeMissing { name: "maps/map0/size" });
    tree.uio(3, None, "gone");
    fs::remove_file(tree.0.path().join("dev/uio3")).unwrap();
    assert_eq!(tree.open(3).unwrap_err(), Error::Os { call: "open(/dev/uio)", errno: libc::ENOENT });
    if !nix::unistd::geteuid().is_root() {
        tree.uio(4, None, "root's");
        fs::set_permissions(tree.0.path().join("dev/uio4"), fs::Permissions::from_mode(0o000)).unwrap();
        assert_eq!(tree.open(4).unwrap_err(), Error::Os { call: "open(/dev/uio)", errno: libc::EACCES });
    }
    assert_eq!(open_below(tree.0.path()), 0, "nothing stays open");
}

const EDU: &str = "0000:00:01.0";

fn pci_tree() -> Tree {
    let tree = Tree::new();
    let at = |file: &str| format!("sys/bus/pci/devices/{EDU}/{file}");
    tree.file(&at("vendor"), "0x1234\n");
    tree.file(&at("device"), "0x11e8\n");
    let memory = "0x0000000010000000 0x0000000010000fff 0x0000000000040200\n";
    let io = "0x0000000000001000 0x000000000000101f 0x0000000000040101\n";
    let none = "0x0000000000000000 0x0000000000000000 0x0000000000000000\n";
    tree.file(&at("resource"), &[memory, io, none, none, none, none].concat());
    fs::write(tree.0.path().join(at("config")), [0x34, 0x12, 0xE8, 0x11, 0x03, 0x01, 0, 0]).unwrap();
    tree.registers(&at("resource0"), &[0x0100_00ED]);
    tree
}

#[test]
fn a_pci_functions_registers_and_bus_mastering() {
    let tree = pci_tree();
    let function = tree.pci(EDU).unwrap();
    assert_eq!(function.id(), Ok((0x1234, 0x11E8)));
    let bar = function.bar(0).unwrap();
    assert_eq!((bar.len_bytes(), bar.read32(0)), (0x1000, 0x0100_00ED));
    let command = || fs::read(tree.0.path().join("sys/bus/pci/devices").join(EDU).join("config")).unwrap()[4..6].to_vec();
    assert_eq!(function.enable(), Ok(()));
    assert_eq!(command(), [0x07, 0x01], "memory and bus mastering, and what was set before");
    assert_eq!(function.disable_bus_master(), Ok(()));
    assert_eq!(command(), [0x03, 0x01]);
    assert_eq!(tree.pci(EDU).map(drop), Err(Error::InUse { errno: libc::EWOULDBLOCK }));
    drop(function);
    assert_eq!(tree.pci(EDU).map(drop), Ok(()));
}

#[test]
fn what_a_pci_function_refuses() {
    let tree = pci_tree();
    assert_eq!(tree.pci("0000:00:1f.7").map(drop), Err(Error::NotFound { what: "PCI function", among: 0 }));
    assert_eq!(tree.pci("../etc").map(drop), Err(Error::BadName { len_bytes: 6, max_bytes: 63 }));
    let function = tree.pci(EDU).unwrap();
    let fix = "this BAR holds no memory: use another";
    assert_eq!(function.bar(1).map(drop), Err(Error::Unsuitable { name: "resource", value: 0x40101, fix }));
    assert_eq!(function.bar(2).map(drop), Err(Error::Unsuitable { name: "resource", value: 0, fix }));
    assert_eq!(function.bar(6).map(drop), Err(Error::Argument { name: "bar", value: 6, min: 0, max: 5, multiple_of: 1 }));
    // SAFETY: no driver is made of it.
    let wired = unsafe { function.wired(0, PORT) };
    assert_eq!(wired.map(drop), Err(Error::NotFound { what: "UIO device of this PCI function (bind uio_pci_generic to it)", among: 0 }));
    // A function that is gone answers all ones, and keeps no bit.
    let at = tree.0.path().join("sys/bus/pci/devices").join(EDU);
    fs::write(at.join("device"), "0xfffff\n").unwrap();
    assert_eq!(tree.pci(EDU).unwrap().id(), Err(Error::AttributeNonsense { name: "device", value: 0xF_FFFF }));
    fs::write(at.join("config"), []).unwrap();
    assert_eq!(tree.pci(EDU).unwrap().enable(), Err(Error::Os { call: "pwrite(config)", errno: libc::EIO }));
}

/// An interrupt whose clock counts how often it is asked.
struct Clock {
    asked: Cell<u64>,
    before: u32,
}

impl Irq for Clock {
    fn now_us(&self) -> u64 {
        self.asked.set(self.asked.get() + 1);
        self.asked.get()
    }
    fn wait(&mut self, _: u32) -> Result<(), Error> {
        Ok(())
    }
    fn looks_before_clock(&self) -> u32 {
        self.before
    }
}

#[test]
fn looks_come_before_the_clock_where_the_clock_is_dear() {
    for (before, looks_needed, clock_calls) in [(100, 100, 0), (100, 1, 0), (100, 102, 2), (0, 1, 0), (0, 2, 2)] {
        let mut irq = Clock { asked: Cell::new(0), before };
        let mut looks = 0;
        let done = contigo::poll_until(&mut irq, contigo::Timeout::ms(1), |_| {
            looks += 1;
            looks >= looks_needed
        });
        assert_eq!((done, irq.asked.get()), (Ok(true), clock_calls), "{before} before, {looks_needed} needed");
    }
}
