//! A tree of files that looks like the kernel's `/sys` and `/dev`: UIO devices and PCI functions
//! whose registers are ordinary files.
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    reason = "a tree that cannot be built is a failed test; setfsuid is a system call"
)]

use contigo::Error;
use contigo::linux::device::{PciFunction, Uio};
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// How many bytes of registers each file has: two pages of 4 KiB.
pub const FILE_BYTES: usize = 8192;

/// The tree. Every user may look into it.
#[derive(Debug)]
pub struct FakeDevices(TempDir);

impl Default for FakeDevices {
    fn default() -> Self {
        Self::new()
    }
}

impl FakeDevices {
    /// With `/sys/class/uio` and `/dev`, both empty.
    pub fn new() -> Self {
        let tree = Self(tempfile::tempdir().unwrap());
        fs::set_permissions(tree.0.path(), fs::Permissions::from_mode(0o755)).unwrap();
        tree.folder("dev");
        tree.folder("sys/class/uio");
        tree
    }

    /// The path before `/sys` and `/dev`.
    pub fn root(&self) -> &str {
        self.0.path().to_str().unwrap()
    }

    /// A path in the tree.
    pub fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    /// Makes a folder.
    pub fn folder(&self, path: &str) {
        fs::create_dir_all(self.path(path)).unwrap();
    }

    /// Makes or replaces a file.
    pub fn file(&self, path: &str, contents: impl AsRef<[u8]>) {
        fs::create_dir_all(self.path(path).parent().unwrap()).unwrap();
        fs::write(self.path(path), contents).unwrap();
    }

    /// Makes or replaces a link.
    pub fn link(&self, path: &str, target: &str) {
        let _ = fs::remove_file(self.path(path));
        symlink(target, self.path(path)).unwrap();
    }

    /// Takes a file away.
    pub fn remove(&self, path: &str) {
        fs::remove_file(self.path(path)).unwrap();
    }

    /// A file of registers that begins with `words`.
    pub fn registers(&self, path: &str, words: impl IntoIterator<Item = u32>) {
        let mut bytes: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
        bytes.resize(FILE_BYTES, 0);
        self.file(path, bytes);
    }

    /// The register at `offset` of the file at `path`.
    pub fn word(&self, path: &str, offset: u64) -> u32 {
        let mut word = [0; 4];
        fs::File::open(self.path(path)).unwrap().read_exact_at(&mut word, offset).unwrap();
        u32::from_le_bytes(word)
    }

    /// The UIO device `index`: one page of registers, of which the first word is `0x1000 + index`;
    /// its node, where it has one; and its driver's name for it.
    pub fn uio(&self, index: u32, node: Option<&str>, name: &str) {
        let class = format!("sys/class/uio/uio{index}");
        self.file(&format!("{class}/name"), format!("{name}\n"));
        self.map(index, 0, "0xf8003000", "0x0000000000001000", "0x0");
        self.folder(&format!("{class}/device"));
        if let Some(node) = node {
            let target = format!("../../../firmware/devicetree/base/soc/{node}");
            self.link(&format!("{class}/device/of_node"), &target);
        }
        self.registers(&format!("dev/uio{index}"), [0x1000 + index, 7]);
    }

    /// A UIO device's map in `/sys`.
    pub fn map(&self, index: u32, map: u32, addr: &str, size: &str, offset: &str) {
        let folder = format!("sys/class/uio/uio{index}/maps/map{map}");
        for (file, text) in [("addr", addr), ("size", size), ("offset", offset)] {
            self.file(&format!("{folder}/{file}"), format!("{text}\n"));
        }
    }

    /// A file of the PCI function at `address`.
    pub fn pci_path(address: &str, file: &str) -> String {
        format!("sys/bus/pci/devices/{address}/{file}")
    }

    /// A PCI function with 4 KiB of memory behind BAR 0 and I/O ports behind BAR 1. Its command
    /// register has I/O and memory on, and SERR# and INTx off; its neighbours in the configuration
    /// space are all ones.
    pub fn pci(&self, address: &str, vendor: u16, device: u16) {
        let at = |file: &str| Self::pci_path(address, file);
        self.file(&at("vendor"), format!("{vendor:#06x}\n"));
        self.file(&at("device"), format!("{device:#06x}\n"));
        let bars = [
            (0x1000_0000, 0x1000_0FFF, 0x4_0200),
            (0x1000, 0x101F, 0x4_0101),
            (0, 0, 0),
            (0, 0xFFF, 0x4_0200),
            (0x1000_0000, 0xFFF, 0x4_0200),
            (0x1000_1100, 0x1000_11FF, 0x4_0200),
        ];
        self.resource(address, bars);
        self.file(&at("config"), [0xFF, 0xFF, 0xFF, 0xFF, 0x03, 0x05, 0xFF, 0xFF]);
        self.registers(&at("resource0"), [0x0100_00ED]);
        self.registers(&at("resource5"), 0..1024);
    }

    /// The lines of `resource`: first byte, last byte and flags of each BAR.
    pub fn resource(&self, address: &str, bars: [(u64, u64, u64); 6]) {
        let lines: String = bars
            .iter()
            .map(|(first, last, flags)| format!("{first:#018x} {last:#018x} {flags:#018x}\n"))
            .collect();
        self.file(&Self::pci_path(address, "resource"), lines);
    }

    /// All of a function's configuration space that there is.
    pub fn config(&self, address: &str) -> Vec<u8> {
        fs::read(self.path(&Self::pci_path(address, "config"))).unwrap()
    }

    /// `Uio::find`.
    pub fn find(&self, name: &str) -> Result<Uio, Error> {
        // SAFETY: no driver is made of it that gives memory back.
        unsafe { Uio::find_under(self.root(), name) }
    }

    /// `Uio::open`.
    pub fn open(&self, index: u32) -> Result<Uio, Error> {
        // SAFETY: as in `find`.
        unsafe { Uio::open_under(self.root(), index) }
    }

    /// `PciFunction::open`.
    pub fn open_pci(&self, address: &str) -> Result<PciFunction, Error> {
        // SAFETY: as in `find`.
        unsafe { PciFunction::open_under(self.root(), address) }
    }

    /// `PciFunction::find`.
    pub fn find_pci(&self, vendor: u16, device: u16) -> Result<PciFunction, Error> {
        // SAFETY: as in `find`.
        unsafe { PciFunction::find_under(self.root(), vendor, device) }
    }

    /// The descriptors of this process that are files of the tree.
    fn open_files(&self) -> Vec<OsString> {
        let open = fs::read_dir("/proc/self/fd").unwrap().map(|entry| entry.unwrap());
        let ours = open.filter(|entry| {
            fs::read_link(entry.path()).is_ok_and(|target| target.starts_with(self.0.path()))
        });
        ours.map(|entry| entry.file_name()).collect()
    }

    /// How many files of the tree this process has open, and how many it has mapped.
    pub fn held(&self) -> (usize, usize) {
        (self.open_files().len(), self.mapped_bytes().len())
    }

    /// How many files of the tree a program that is started would get too.
    pub fn inherited(&self) -> usize {
        let inherits = |file: &&OsString| {
            let text = fs::read_to_string(Path::new("/proc/self/fdinfo").join(file)).unwrap();
            let flags = text.lines().find_map(|line| line.strip_prefix("flags:")).unwrap().trim();
            u32::from_str_radix(flags, 8).unwrap() & libc::O_CLOEXEC as u32 == 0
        };
        self.open_files().iter().filter(inherits).count()
    }

    /// How many bytes each mapping of the tree's files has.
    pub fn mapped_bytes(&self) -> Vec<u64> {
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let is_ours = |file| Path::new(file).starts_with(self.root());
        let ours =
            maps.lines().filter(|line| line.split_ascii_whitespace().nth(5).is_some_and(is_ours));
        let bytes = |line: &str| {
            let (first, end) = line.split_once(' ')?.0.split_once('-')?;
            Some(u64::from_str_radix(end, 16).ok()? - u64::from_str_radix(first, 16).ok()?)
        };
        ours.map(|line| bytes(line).unwrap()).collect()
    }
}

/// Runs `act` in a thread that opens files as an ordinary user does.
pub fn as_nobody<T: Send>(act: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            // SAFETY: the call takes no pointer. It changes this thread alone, and takes root's
            // right to open anything from it (man 2 setfsuid, man 7 capabilities).
            unsafe { libc::setfsuid(65_534) };
            act()
        });
        thread.join().unwrap()
    })
}
