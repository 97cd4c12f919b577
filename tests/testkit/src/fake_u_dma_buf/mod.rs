//! A fake u-dma-buf: a directory tree in the place of `/dev` and `/sys/class`, and an object in the
//! place of the module.
//!
//! It behaves as the module's source (5.5.0) says, traps included. Arguments are kept between
//! calls, a packed word is cut to 16 bytes, and a word of just 1 runs on the kept arguments. A size
//! of 0 syncs nothing and still changes the owner, a range past the end is EINVAL, and no ioctl
//! takes a lock. It records the calls that took effect, and calls that overlapped.
//!
//! The memory is two memories. The file is what the CPU sees in its cache; the bus side is what a
//! device sees. Only an effective sync or [`FakeUDmaBuf::evict`] moves lines between them, so a
//! forgotten sync shows as stale data, and a line that two owners share eats one of them.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test's helper: a failure here fails the test where it happens"
)]
#![allow(unsafe_code, reason = "opening a block is a promise about its addresses")]
#![allow(
    clippy::cast_possible_truncation,
    reason = "offsets are below the size of the fake's file, which fits in memory"
)]

mod memory;
mod module;

pub use module::{Command, DevInfo, FakeIoctl, Kept, Synced};

use contigo::linux::memory::u_dma_buf::UDmaBuf;
use contigo::{Align, Error};
use memory::Memory;
use module::{Module, lock};
use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The fake's settings; `Default` is a module of today with 64 KiB on a non-coherent ARM SoC.
#[derive(Clone, Debug)]
pub struct Config {
    /// The device's name.
    pub name: String,
    /// `u-dma-buf`, or `udmabuf` before version 2.
    pub class: &'static str,
    /// The size that was asked of the module.
    pub size_bytes: u64,
    /// The block's address.
    pub phys_addr: u64,
    /// Is the device coherent? `None` for a module that could not find out: then there is no
    /// attribute.
    pub coherent: Option<bool>,
    /// The width of the DMA mask.
    pub dma_mask_bits: u8,
    /// 1 off, 2 on, 3 automatic, 4 by pages; 0 for a module built without the quirk: then there is
    /// no attribute.
    pub quirk_mmap_mode: u8,
    /// 0 to 7.
    pub sync_mode: u64,
    /// `false` for a module before 4.7.0: every ioctl is ENOTTY.
    pub ioctls: bool,
    /// `GET_DEV_INFO` answers this instead of the truth.
    pub dev_info: Option<Result<DevInfo, i32>>,
    /// How long a call rests between storing its arguments and using them: it makes a race certain
    /// to show.
    pub rest: Duration,
    /// The device is gone (ENODEV) after this many effective syncs.
    pub vanish_after: u64,
    /// So many writes of a sync file are interrupted (EINTR) before one that is not.
    pub interrupts: u32,
    /// The machine's cache line. Lines move whole.
    pub line: Align,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            name: "udmabuf0".into(),
            class: "u-dma-buf",
            size_bytes: 64 << 10,
            phys_addr: 0x3820_0000,
            coherent: Some(false),
            dma_mask_bits: 32,
            quirk_mmap_mode: 3,
            sync_mode: 1,
            ioctls: true,
            dev_info: None,
            rest: Duration::ZERO,
            vanish_after: u64::MAX,
            interrupts: 0,
            line: Align::LINE,
        }
    }
}

/// The fake, and the test's handle on it.
#[derive(Debug)]
pub struct FakeUDmaBuf {
    module: FakeIoctl,
}

impl FakeUDmaBuf {
    /// Makes the tree and the module.
    pub fn new(config: Config) -> Self {
        let root = tempfile::tempdir().unwrap();
        let dev = root.path().join("dev");
        fs::create_dir_all(&dev).unwrap();
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(dev.join(&config.name))
            .unwrap();
        file.set_len(config.size_bytes).unwrap();
        // A fresh CMA block holds an earlier owner's data on the bus; the CPU's lines of it (zeros)
        // are dirty.
        let bus = vec![0xDD; config.size_bytes as usize];
        let memory =
            Mutex::new(Memory { line: config.line.bytes(), file, clean: bus.clone(), bus });
        let module = Module {
            root,
            kept: Mutex::new(Kept { mode: config.sync_mode, ..Kept::default() }),
            memory,
            config,
            log: Mutex::default(),
            inside: 0.into(),
            overlaps: 0.into(),
            effective: 0.into(),
            writes: 0.into(),
            held: false.into(),
            sequence: Mutex::new(None),
        };
        let fake = Self { module: FakeIoctl(Arc::new(module)) };
        fs::create_dir_all(fake.class_dir()).unwrap();
        let config = fake.config().clone();
        fake.set("size", &format!("{}\n", config.size_bytes));
        fake.set("phys_addr", &format!("{:#018x}\n", config.phys_addr));
        fake.set("sync_mode", &format!("{}\n", config.sync_mode));
        for name in ["offset", "size", "direction", "owner", "for_cpu", "for_device"] {
            fake.set(&format!("sync_{name}"), "0\n");
        }
        if let Some(coherent) = config.coherent {
            fake.set("dma_coherent", if coherent { "1\n" } else { "0\n" });
        }
        if config.quirk_mmap_mode != 0 {
            fake.set("quirk_mmap_mode", &format!("{}\n", config.quirk_mmap_mode));
        }
        fake
    }

    fn config(&self) -> &Config {
        &self.module.0.config
    }

    /// The device's directory, in the place of `/sys/class/u-dma-buf/<name>`.
    pub fn class_dir(&self) -> PathBuf {
        let class = self.module.0.root.path().join("sys/class").join(self.config().class);
        class.join(&self.config().name)
    }

    /// The device file, in the place of `/dev/<name>`.
    pub fn device_file(&self) -> PathBuf {
        self.module.0.root.path().join("dev").join(&self.config().name)
    }

    /// Makes the attribute say `text`.
    pub fn set(&self, attribute: &str, text: &str) {
        fs::write(self.class_dir().join(attribute), text).unwrap();
    }

    /// Takes the attribute away.
    pub fn remove(&self, attribute: &str) {
        fs::remove_file(self.class_dir().join(attribute)).unwrap();
    }

    /// Makes the attribute unreadable and unwritable, also for root: EISDIR.
    pub fn make_unreadable(&self, attribute: &str) {
        self.remove(attribute);
        fs::create_dir(self.class_dir().join(attribute)).unwrap();
    }

    /// The module, for a test that opens a block with another object around it.
    pub const fn module(&self) -> &FakeIoctl {
        &self.module
    }

    /// Opens the fake with the module in the kernel's place.
    pub fn open(&self) -> Result<UDmaBuf, Error> {
        self.open_with(false)
    }

    /// As [`open`](Self::open), for a node behind a translation.
    pub fn open_translated(&self) -> Result<UDmaBuf, Error> {
        self.open_with(true)
    }

    fn open_with(&self, translated: bool) -> Result<UDmaBuf, Error> {
        let kernel = Arc::new(self.module.clone());
        let Config { name, line, .. } = self.config();
        // SAFETY: no device but this fake's has its addresses.
        unsafe { UDmaBuf::open_from(kernel, name, *line, translated) }
    }

    /// From now on a sync that is alone in the module stays there, until the same with `false`.
    pub fn hold(&self, hold: bool) {
        self.module.0.held.store(hold, SeqCst);
    }

    /// Every sync that took effect, in order.
    pub fn log(&self) -> Vec<Synced> {
        lock(&self.module.0.log).clone()
    }

    /// How many calls began while another had not ended: the module would have mixed their
    /// arguments.
    pub fn overlaps(&self) -> u64 {
        self.module.0.overlaps.load(SeqCst)
    }

    /// The arguments that the module keeps.
    pub fn kept(&self) -> Kept {
        *lock(&self.module.0.kept)
    }

    /// A device's read at `offset`.
    pub fn device_read(&self, offset: usize, bytes: &mut [u8]) {
        let memory = lock(&self.module.0.memory);
        if self.config().coherent == Some(true) {
            memory.file.read_exact_at(bytes, offset as u64).unwrap();
        } else {
            bytes.copy_from_slice(&memory.bus[offset..offset + bytes.len()]);
        }
    }

    /// A device's write at `offset`. On a non-coherent device the CPU keeps seeing the bytes in its
    /// cache.
    pub fn device_write(&self, offset: usize, bytes: &[u8]) {
        let mut memory = lock(&self.module.0.memory);
        if self.config().coherent == Some(true) {
            memory.file.write_all_at(bytes, offset as u64).unwrap();
        } else {
            memory.bus[offset..offset + bytes.len()].copy_from_slice(bytes);
        }
    }

    /// The cache runs short: the dirty lines of `range` are written to the bus, over whatever a
    /// device wrote there.
    pub fn evict(&self, range: Range<usize>) {
        let line = self.config().line.bytes();
        lock(&self.module.0.memory).write_back(range.start / line..range.end.div_ceil(line));
    }
}
