//! A board in a folder, with a kernel that answers as Linux's FPGA managers do, and fails where a
//! test asks for it. It does not know the tested code: it follows `fpga-mgr.c`, `zynq-fpga.c` and
//! `of-fpga-region.c`.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "it makes the files of a test, which fails where they cannot be made"
)]

use super::{Kernel, Machine, Ran};
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::{fs, io};

const MANAGER: &str = "sys/class/fpga_manager/fpga0";
const OVERLAYS: &str = "sys/kernel/config/device-tree/overlays";
/// While this file exists, no overlay can be removed.
const STUCK: &str = "etc/overlays/stuck";
const EBUSY: i32 = 16;
const TREE: &str = "sys/firmware/devicetree/base";
const REGION: &str = "sys/firmware/devicetree/base/fpga-region";

/// A folder that stands for a machine. A path in it is the machine's, without the first slash.
#[derive(Clone, Debug)]
pub struct Root(pub PathBuf);

impl Root {
    /// Writes a file that all users may read and write.
    pub fn put(&self, path: &str, bytes: impl AsRef<[u8]>) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
    }

    /// Makes a symbolic link, in the place of one that is there.
    pub fn link(&self, path: &str, to: impl AsRef<Path>) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let _ = fs::remove_file(&path);
        symlink(to, path).unwrap();
    }

    /// Makes a folder.
    pub fn folder(&self, path: &str) {
        fs::create_dir_all(self.0.join(path)).unwrap();
    }

    /// Removes a file or a folder.
    pub fn remove(&self, path: &str) {
        let path = self.0.join(path);
        if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.unwrap();
    }

    /// Sets the permissions of a file.
    pub fn mode(&self, path: &str, mode: u32) {
        fs::set_permissions(self.0.join(path), fs::Permissions::from_mode(mode)).unwrap();
    }

    /// Makes a node of the device tree.
    pub fn node(&self, path: &str, compatible: &str) {
        self.put(&format!("{TREE}/{path}/compatible"), format!("{compatible}\0"));
    }

    /// Writes a property of the device tree.
    pub fn cells(&self, path: &str, cells: &[u32]) {
        let bytes: Vec<_> = cells.iter().flat_map(|cell| cell.to_be_bytes()).collect();
        self.put(&format!("{TREE}/{path}"), bytes);
    }

    /// Links a device of a bus to its driver.
    pub fn driver(&self, bus: &str, device: &str, driver: &str) {
        let to = format!("../../../../bus/{bus}/drivers/{driver}");
        self.link(&format!("sys/bus/{bus}/devices/{device}/driver"), to);
    }

    /// Links a device's folder in sysfs to its node.
    pub fn of_node(&self, device: &str, node: &str) {
        let to = format!("../../../../firmware/devicetree/base/{node}");
        self.link(&format!("{device}/of_node"), to);
    }

    /// Writes a register into the file that stands for `/dev/mem`, which must exist.
    pub fn register(&self, addr: u64, value: u32) {
        let file = fs::File::options().write(true).open(self.0.join("dev/mem")).unwrap();
        file.set_len(1 << 32).unwrap();
        file.write_all_at(&value.to_ne_bytes(), addr).unwrap();
    }

    /// The copied machine.
    #[must_use]
    pub fn machine(&self) -> Machine {
        Machine::copy(&self.0)
    }
}

/// A fault of the next load, with the manager's state after it.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// The error of the write; `None`: no error, as with a kernel that does not report the fault.
    pub errno: Option<i32>,
    /// The manager's state.
    pub state: &'static str,
    /// The manager's `status`.
    pub status: &'static str,
}

/// A board in a folder.
#[derive(Debug)]
pub struct Board {
    /// Its files.
    pub root: Root,
    seen: Arc<Mutex<Seen>>,
}

/// The fake kernel's memory.
#[derive(Debug, Default)]
struct Seen {
    fault: Option<Fault>,
    loaded: Option<Vec<u8>>,
    flags: Vec<String>,
    ran: Vec<String>,
}

#[derive(Debug)]
struct FakeLinux {
    root: PathBuf,
    seen: Arc<Mutex<Seen>>,
}

impl Board {
    /// Makes a board below `root`: its manager has this name, nothing is loaded, and it has no way.
    #[must_use]
    pub fn new(root: &Path, manager: &str) -> Self {
        let board = Self { root: Root(root.to_owned()), seen: Arc::default() };
        board.put(&format!("{MANAGER}/name"), manager);
        board.put(&format!("{MANAGER}/state"), "unknown");
        board.put("proc/meminfo", "MemTotal: 500000 kB\nMemAvailable: 400000 kB");
        board.root.folder("lib/firmware");
        board
    }

    /// Writes a line into a file of the board.
    pub fn put(&self, path: &str, text: &str) {
        self.root.put(path, format!("{text}\n"));
    }

    /// Adds the vendor's files: `firmware`, `flags`, `status`.
    #[must_use]
    pub fn with_sysfs(self) -> Self {
        for (file, text) in [("firmware", ""), ("flags", "0"), ("status", "")] {
            self.put(&format!("{MANAGER}/{file}"), text);
        }
        self
    }

    /// Adds a region in the device tree, a bridge, and configfs.
    #[must_use]
    pub fn with_overlays(self) -> Self {
        self.root.folder(REGION);
        self.root.folder(OVERLAYS);
        self.root.link("sys/class/fpga_region/region0/of_node", Path::new("/").join(REGION));
        self.put("sys/class/fpga_bridge/br0/name", "lwhps2fpga");
        self.put("sys/class/fpga_bridge/br0/state", "disabled");
        self
    }

    /// Adds a region, beside or below the first. `path` begins at the tree's root.
    #[must_use]
    pub fn with_region(self, path: &str) -> Self {
        let node = format!("{TREE}/{path}");
        self.root.folder(&node);
        let count = fs::read_dir(self.root.0.join("sys/class/fpga_region")).unwrap().count();
        self.root.link(&format!("sys/class/fpga_region/region{count}/of_node"), format!("/{node}"));
        self
    }

    /// Adds a process with an open file and mapped memory: `maps` is the line of its `maps`.
    #[must_use]
    pub fn with_process(self, id: u32, name: &str, open: &str, maps: &str) -> Self {
        self.put(&format!("proc/{id}/comm"), name);
        self.put(&format!("proc/{id}/maps"), maps);
        self.root.link(&format!("proc/{id}/fd/3"), open);
        self
    }

    /// The machine.
    #[must_use]
    pub fn machine(&self) -> Machine {
        let root = self.root.0.clone();
        Machine::below(&self.root.0, FakeLinux { root, seen: Arc::clone(&self.seen) })
    }

    /// Makes the next load fail with this fault.
    pub fn fail(&self, fault: Fault) {
        lock(&self.seen).fault = Some(fault);
    }

    /// The bytes that the fabric has.
    #[must_use]
    pub fn loaded(&self) -> Option<Vec<u8>> {
        lock(&self.seen).loaded.clone()
    }

    /// Every flag that was written, in order.
    #[must_use]
    pub fn flags(&self) -> Vec<String> {
        lock(&self.seen).flags.clone()
    }

    /// Every program that was run, with its arguments.
    #[must_use]
    pub fn ran(&self) -> Vec<String> {
        lock(&self.seen).ran.clone()
    }

    /// The files below `/lib/firmware`, and the applied overlays. After a load, nothing of it stays
    /// below `/lib/firmware`.
    #[must_use]
    pub fn left(&self) -> (Vec<String>, Vec<String>) {
        let machine = self.machine();
        (machine.list("lib/firmware"), machine.list(OVERLAYS))
    }
}

fn lock(seen: &Mutex<Seen>) -> std::sync::MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

impl FakeLinux {
    fn set(&self, path: &str, text: &str) -> io::Result<()> {
        fs::write(self.root.join(path), format!("{text}\n"))
    }

    /// `fpga_mgr_firmware_load`, with `zynq-fpga.c` behind it.
    fn load(&self, name: &str) -> io::Result<()> {
        let named = fs::read_to_string(self.root.join("sys/module/firmware_class/parameters/path"))
            .unwrap_or_default();
        let folder = if named.trim().is_empty() {
            "lib/firmware"
        } else {
            named.trim().trim_start_matches('/')
        };
        let Ok(bytes) = fs::read(self.root.join(folder).join(name)) else {
            self.set(&format!("{MANAGER}/state"), "firmware request error")?;
            return Err(io::ErrorKind::NotFound.into());
        };
        if let Some(fault) = lock(&self.seen).fault.take() {
            self.set(&format!("{MANAGER}/state"), fault.state)?;
            self.set(&format!("{MANAGER}/status"), fault.status)?;
            return fault.errno.map_or(Ok(()), |errno| Err(io::Error::from_raw_os_error(errno)));
        }
        let manager = fs::read_to_string(self.root.join(MANAGER).join("name"))?;
        let partial = fs::read_to_string(self.root.join(MANAGER).join("flags"))
            .is_ok_and(|flags| flags.trim() == "1");
        let synced = bytes.chunks(4).take(32).any(|word| word == [0x66, 0x55, 0x99, 0xaa]);
        if manager.trim() == "Xilinx Zynq FPGA Manager"
            && (!bytes.len().is_multiple_of(4) || !(partial || synced))
        {
            self.set(&format!("{MANAGER}/state"), "write init error")?;
            return Err(io::ErrorKind::InvalidInput.into());
        }
        lock(&self.seen).loaded = Some(bytes);
        self.set(&format!("{MANAGER}/state"), "operating")
    }

    /// `of_fpga_region_notify_pre_apply`: finds the name behind `firmware-name` by its ending,
    /// which no other text in this overlay's blob has.
    fn apply(&self, folder: &Path, blob: &[u8]) -> io::Result<()> {
        let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
        if !blob.starts_with(&[0xd0, 0x0d, 0xfe, 0xed]) {
            return Err(invalid());
        }
        let texts = blob.split(|&byte| byte == 0).filter_map(|text| std::str::from_utf8(text).ok());
        // The word before the text ends in bytes that are not letters.
        let name = texts.into_iter().find(|text| text.ends_with(".bin")).ok_or_else(invalid)?;
        self.load(name.trim_start_matches(char::is_control))?;
        let state = fs::read_to_string(self.root.join(MANAGER).join("state"))?;
        let applied = state.trim() == "operating";
        fs::write(folder.join("status"), if applied { "applied\n" } else { "unapplied\n" })?;
        self.set("sys/class/fpga_bridge/br0/state", if applied { "enabled" } else { "disabled" })
    }
}

impl FakeLinux {
    /// `dfx-mgr-client.c`, which reports success in words. Before 2025.2 it has no such options.
    fn dfx(&self, done: bool, words: &str) -> Ran {
        let old = self.root.join("etc/dfx-mgrd/old").exists();
        let output = if old {
            "Option not recognized, Try again."
        } else if done {
            words
        } else {
            "Load Error: Unable to load"
        };
        Ran { success: true, status: Some(0), output: output.to_owned() }
    }
}

impl Kernel for FakeLinux {
    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        if !path.exists() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let text = String::from_utf8_lossy(bytes).into_owned();
        match path.file_name().and_then(|name| name.to_str()) {
            Some("firmware") => self.load(text.trim()),
            Some("dtbo") => self.apply(path.parent().unwrap_or(path), bytes),
            Some("flags") => {
                lock(&self.seen).flags.push(text.clone());
                fs::write(path, format!("{text}\n"))
            }
            _ => Err(io::ErrorKind::PermissionDenied.into()),
        }
    }

    fn make_dir(&self, path: &Path) -> io::Result<()> {
        fs::create_dir(path)?;
        ["dtbo", "path", "status"]
            .iter()
            .try_for_each(|file| fs::write(path.join(file), "unapplied\n"))
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        if self.root.join(STUCK).exists() {
            return Err(io::Error::from_raw_os_error(EBUSY));
        }
        fs::remove_dir_all(path)?;
        self.set("sys/class/fpga_bridge/br0/state", "disabled")
    }

    fn run(&self, path: &Path, arguments: &[&str]) -> io::Result<Ran> {
        let program = path.strip_prefix(&self.root).unwrap_or(path).display();
        lock(&self.seen).ran.push(format!("{program} {}", arguments.join(" ")));
        let done = match arguments {
            [_, _, "load", "bitstream", file] => self.load(file.rsplit('/').next().unwrap_or(file)),
            ["-b", file, ..] => {
                let done = self.load(file.rsplit('/').next().unwrap_or(file)).is_ok();
                return Ok(self.dfx(done, "Loaded with slot_handle 1"));
            }
            ["-unloadByName", _] => return Ok(self.dfx(true, "unload returns: 0 (Ok)")),
            _ => self.set(&format!("{MANAGER}/state"), "unknown"),
        };
        let output = done.as_ref().err().map(ToString::to_string).unwrap_or_default();
        Ok(Ran { success: done.is_ok(), status: Some(i32::from(done.is_err())), output })
    }
}
