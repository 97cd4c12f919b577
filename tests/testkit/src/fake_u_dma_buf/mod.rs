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
#![allow(unsafe_code, reason = "opening the module through its seam is a promise about the file")]
#![allow(
    clippy::cast_possible_truncation,
    reason = "offsets are below the size of the fake's file, which fits in memory"
)]

mod config;
mod memory;
mod module;

pub use config::Config;
pub use module::{Command, FakeIoctl, Kept, Synced};

use contigo::{
    Error,
    linux::memory::u_dma_buf::{
        UDmaBuf,
        seam::{Roots, UDmaBufIoctl},
    },
};
use memory::Memory;
use module::{Module, lock};
use std::{
    fs::{self, File},
    ops::Range,
    os::unix::fs::FileExt,
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
};

/// The fake, and the test's handle on it.
#[derive(Debug)]
pub struct FakeUDmaBuf {
    module: FakeIoctl,
}

impl FakeUDmaBuf {
    /// Makes the tree and the module.
    #[must_use]
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
            log: Mutex::default(),
            inside: AtomicU64::new(0),
            overlaps: AtomicU64::new(0),
            effective: AtomicU64::new(0),
            sequence: Mutex::new(None),
            config,
        };
        let fake = Self { module: FakeIoctl(Arc::new(module)) };
        fs::create_dir_all(fake.class_dir()).unwrap();
        let config = fake.config().clone();
        fake.set("size", &format!("{}\n", config.size_bytes));
        fake.set("phys_addr", &format!("{:#018x}\n", config.phys_addr));
        fake.set("sync_mode", &format!("{}\n", config.sync_mode));
        for name in [
            "sync_offset",
            "sync_size",
            "sync_direction",
            "sync_owner",
            "sync_for_cpu",
            "sync_for_device",
        ] {
            fake.set(name, "0\n");
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
    #[must_use]
    pub fn class_dir(&self) -> PathBuf {
        self.module.0.root.path().join("class").join(self.config().class).join(&self.config().name)
    }

    /// The device file, in the place of `/dev/<name>`.
    #[must_use]
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

    /// The module, to be called as a program that does not use the runtime calls it.
    #[must_use]
    pub const fn module(&self) -> &FakeIoctl {
        &self.module
    }

    /// Opens the fake with the module in the kernel's place.
    ///
    /// # Errors
    /// As [`UDmaBuf::open`].
    pub fn open(&self) -> Result<UDmaBuf, Error> {
        self.open_with(Arc::new(self.module.clone()), false)
    }

    /// As [`open`](Self::open), for a node behind a translation.
    ///
    /// # Errors
    /// As [`UDmaBuf::open_translated`].
    pub fn open_translated(&self) -> Result<UDmaBuf, Error> {
        self.open_with(Arc::new(self.module.clone()), true)
    }

    /// As [`open`](Self::open), with any other object in the kernel's place.
    ///
    /// # Errors
    /// As [`UDmaBuf::open`].
    pub fn open_with(
        &self,
        kernel: Arc<dyn UDmaBufIoctl>,
        translated: bool,
    ) -> Result<UDmaBuf, Error> {
        let root = self.module.0.root.path().to_str().unwrap();
        let roots = Roots { dev: &format!("{root}/dev"), class: &format!("{root}/class") };
        // SAFETY: the file belongs to this fake. Only the fake's device side writes it, and never
        // shortens it; no other device has its addresses.
        unsafe { UDmaBuf::open_with(&self.config().name, roots, kernel, translated) }
    }

    /// Every sync that took effect, in order.
    #[must_use]
    pub fn log(&self) -> Vec<Synced> {
        lock(&self.module.0.log).clone()
    }

    /// How many calls began while another had not ended: the module would have mixed their
    /// arguments.
    #[must_use]
    pub fn overlaps(&self) -> u64 {
        self.module.0.overlaps.load(SeqCst)
    }

    /// The arguments that the module keeps.
    #[must_use]
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
    /// cache. cache holds.
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
