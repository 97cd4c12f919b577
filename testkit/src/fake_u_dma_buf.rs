//! A fake u-dma-buf: a directory tree in the place of `/dev` and `/sys/class`, and an object in the place of the module.
//!
//! It behaves as the module's source (5.5.0) says, traps included: arguments are kept between calls, a packed word is cut to 16
//! bytes, a word of just 1 runs on what is kept, a size of 0 syncs nothing and still changes the owner, a range past the end is
//! EINVAL, and no ioctl takes a lock. It records what took effect, and calls that overlapped.
//!
//! The memory is two memories. The file is what the CPU sees in its cache; the bus side is what a device sees. Only an effective
//! sync or [`FakeUDmaBuf::evict`] moves lines between them, so a forgotten sync shows as stale data, and a line that two owners
//! share eats one of them.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test's helper: a failure here fails the test where it happens")]
#![allow(unsafe_code, reason = "opening the module through its seam is a promise about the file")]
#![allow(clippy::cast_possible_truncation, reason = "offsets are below the size of the fake's file, which fits in memory")]

use contigo::linux::memory::u_dma_buf::{
    UDmaBuf,
    seam::{DevInfo, Roots, SyncArgs, UDmaBufIoctl},
};
use contigo::{Align, Direction, Error};
use std::fs::{self, File};
use std::ops::Range;
use std::os::fd::{BorrowedFd, IntoRawFd};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::ThreadId;
use std::time::Duration;

/// What the fake is; `Default` is a module of today with 64 KiB on a non-coherent ARM SoC.
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
    /// Is the device coherent? `None` for a module that could not find out: then there is no attribute.
    pub coherent: Option<bool>,
    /// The width of the DMA mask.
    pub dma_mask_bits: u8,
    /// 1 off, 2 on, 3 automatic, 4 by pages; 0 for a module built without the quirk: then there is no attribute.
    pub quirk_mmap_mode: u8,
    /// 0 to 7.
    pub sync_mode: u64,
    /// `false` for a module before 4.7.0: every ioctl is ENOTTY.
    pub ioctls: bool,
    /// `GET_DEV_INFO` answers this instead of the truth.
    pub dev_info: Option<Result<DevInfo, i32>>,
    /// How long a call rests between storing its arguments and using them: it makes a race certain to show.
    pub rest: Duration,
    /// The device is gone (ENODEV) after this many effective syncs.
    pub vanish_after: u64,
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
            line: Align::LINE,
        }
    }
}

/// Which way an effective sync went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// To the CPU.
    ForCpu,
    /// To the device.
    ForDevice,
}

/// A sync that took effect: what the module asked of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Synced {
    /// Which way.
    pub command: Command,
    /// Which bytes.
    pub range: Range<u64>,
    /// For what.
    pub direction: Direction,
}

/// What the module keeps between calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// `sync_offset`.
    pub offset: u64,
    /// `sync_size`.
    pub size: u64,
    /// `sync_direction`: 0 both, 1 to the device, 2 from it.
    pub direction: u64,
    /// `sync_owner`: 0 the CPU, 1 the device.
    pub owner: u64,
    /// `sync_mode`.
    pub mode: u64,
}

/// The fake, and the test's handle on it.
#[derive(Debug)]
pub struct FakeUDmaBuf {
    module: FakeIoctl,
}

/// What stands in for the module's ioctls. Clones are the same module.
#[derive(Clone, Debug)]
pub struct FakeIoctl(Arc<Module>);

#[derive(Debug)]
struct Module {
    config: Config,
    root: tempfile::TempDir,
    kept: Mutex<Kept>,
    memory: Mutex<Memory>,
    log: Mutex<Vec<Synced>>,
    inside: AtomicU64,
    overlaps: AtomicU64,
    effective: AtomicU64,
    // Who is between the first write to a sync file and the command.
    sequence: Mutex<Option<ThreadId>>,
}

#[derive(Debug)]
struct Memory {
    /// Bytes in a cache line.
    line: usize,
    /// What the CPU sees.
    file: File,
    /// What a device sees.
    bus: Vec<u8>,
    /// What each of the CPU's lines held when it was last read from or written to the bus: a line that differs is dirty.
    clean: Vec<u8>,
}

impl FakeUDmaBuf {
    /// Makes the tree and the module.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let root = tempfile::tempdir().unwrap();
        let dev = root.path().join("dev");
        fs::create_dir_all(&dev).unwrap();
        let file = File::options().read(true).write(true).create_new(true).open(dev.join(&config.name)).unwrap();
        file.set_len(config.size_bytes).unwrap();
        // What a fresh CMA block holds on the bus is somebody's old data; the CPU's lines of it (zeros) are dirty.
        let bus = vec![0xDD; config.size_bytes as usize];
        let memory = Mutex::new(Memory { line: config.line.bytes(), file, clean: bus.clone(), bus });
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
        for name in ["sync_offset", "sync_size", "sync_direction", "sync_owner", "sync_for_cpu", "sync_for_device"] {
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
    pub fn open_with(&self, kernel: Arc<dyn UDmaBufIoctl>, translated: bool) -> Result<UDmaBuf, Error> {
        let root = self.module.0.root.path().to_str().unwrap();
        let roots = Roots { dev: &format!("{root}/dev"), class: &format!("{root}/class") };
        // SAFETY: the file is this fake's, which only its device side writes, and never shortens;
        // no other device has its addresses.
        unsafe { UDmaBuf::open_with(&self.config().name, roots, kernel, translated) }
    }

    /// Every sync that took effect, in order.
    #[must_use]
    pub fn log(&self) -> Vec<Synced> {
        lock(&self.module.0.log).clone()
    }

    /// How many calls began while another had not ended: the module would have mixed their arguments.
    #[must_use]
    pub fn overlaps(&self) -> u64 {
        self.module.0.overlaps.load(SeqCst)
    }

    /// What the module keeps.
    #[must_use]
    pub fn kept(&self) -> Kept {
        *lock(&self.module.0.kept)
    }

    /// What a device reads at `offset`.
    pub fn device_read(&self, offset: usize, bytes: &mut [u8]) {
        let memory = lock(&self.module.0.memory);
        if self.config().coherent == Some(true) {
            memory.file.read_exact_at(bytes, offset as u64).unwrap();
        } else {
            bytes.copy_from_slice(&memory.bus[offset..offset + bytes.len()]);
        }
    }

    /// What a device writes at `offset`. On a non-coherent device the CPU keeps seeing what its cache holds.
    pub fn device_write(&self, offset: usize, bytes: &[u8]) {
        let mut memory = lock(&self.module.0.memory);
        if self.config().coherent == Some(true) {
            memory.file.write_all_at(bytes, offset as u64).unwrap();
        } else {
            memory.bus[offset..offset + bytes.len()].copy_from_slice(bytes);
        }
    }

    /// The cache runs short: the dirty lines of `range` are written to the bus, over whatever a device wrote there.
    pub fn evict(&self, range: Range<usize>) {
        let line = self.config().line.bytes();
        lock(&self.module.0.memory).write_back(range.start / line..range.end.div_ceil(line));
    }
}

impl FakeIoctl {
    /// `SET_SYNC_FOR_CPU` and `SET_SYNC_FOR_DEVICE`: a packed word, which is also what `sync_for_cpu` and `sync_for_device` take.
    ///
    /// # Errors
    /// EINVAL for a range past the end.
    pub fn sync_word(&self, command: Command, word: u64) -> Result<(), i32> {
        self.present()?;
        let _call = self.enter();
        self.run(command, word)
    }

    /// What the module does with a word: `udmabuf_sync_command_argments` and the kernel's `dma_sync_single_for_…` after it.
    fn run(&self, command: Command, word: u64) -> Result<(), i32> {
        if word == 0 {
            return Ok(());
        }
        let mut kept = lock(&self.0.kept);
        let (offset, size, direction) =
            if word & !1 == 0 { (kept.offset, kept.size, kept.direction) } else { (word >> 32, word & 0xFFFF_FFF0, (word >> 2) & 3) };
        if offset.wrapping_add(size) > self.0.config.size_bytes {
            return Err(libc::EINVAL);
        }
        let direction = match direction {
            1 => Direction::ToDevice,
            2 => Direction::FromDevice,
            _ => Direction::Bidirectional,
        };
        kept.owner = u64::from(command == Command::ForDevice);
        if size > 0 && self.0.config.coherent != Some(true) {
            lock(&self.0.memory).sync(command, offset as usize..(offset + size) as usize, direction);
        }
        lock(&self.0.log).push(Synced { command, range: offset..offset + size, direction });
        self.0.effective.fetch_add(1, SeqCst);
        Ok(())
    }

    fn present(&self) -> Result<(), i32> {
        if self.0.effective.load(SeqCst) >= self.0.config.vanish_after { Err(libc::ENODEV) } else { Ok(()) }
    }

    fn enter(&self) -> Inside<'_> {
        if self.0.inside.fetch_add(1, SeqCst) > 0 {
            self.0.overlaps.fetch_add(1, SeqCst);
        }
        Inside(&self.0.inside)
    }
}

/// A call in progress.
struct Inside<'a>(&'a AtomicU64);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

impl UDmaBufIoctl for FakeIoctl {
    fn get_dev_info(&self, device: i32) -> Result<DevInfo, i32> {
        // Opened without O_SYNC: the real module would look at it when the block is mapped.
        let details = fs::read_to_string(format!("/proc/self/fdinfo/{device}")).map_err(|_| libc::EBADF)?;
        let flags = details.lines().find_map(|line| line.strip_prefix("flags:")).unwrap().trim();
        let flags = i32::from_str_radix(flags, 8).unwrap();
        assert_eq!(flags & (libc::O_SYNC | libc::O_CLOEXEC), libc::O_CLOEXEC);
        let config = &self.0.config;
        if let Some(told) = config.dev_info {
            return told;
        }
        if !config.ioctls {
            return Err(libc::ENOTTY);
        }
        self.present()?;
        let coherent = u64::from(config.coherent == Some(true));
        let flags = u64::from(config.dma_mask_bits) | coherent << 9 | u64::from(config.quirk_mmap_mode) << 10;
        Ok(DevInfo { flags, size: config.size_bytes, addr: config.phys_addr })
    }

    fn get_sync(&self, _device: i32) -> Result<SyncArgs, i32> {
        if !self.0.config.ioctls {
            return Err(libc::ENOTTY);
        }
        self.present()?;
        let kept = *lock(&self.0.kept);
        let flags = kept.direction << 2 | kept.mode << 8 | kept.owner << 16;
        Ok(SyncArgs { flags, size: kept.size, offset: kept.offset })
    }

    fn export(&self, device: i32, size: u64) -> Result<i32, i32> {
        if !self.0.config.ioctls {
            return Err(libc::ENOTTY);
        }
        self.present()?;
        if !size.is_multiple_of(crate::fake_dma_heap::page_bytes()) || size > self.0.config.size_bytes {
            return Err(libc::EINVAL);
        }
        // The block's own file in the place of a dma-buf over it: the same bytes.
        // SAFETY: the descriptor is the runtime's, open while it calls.
        let device = unsafe { BorrowedFd::borrow_raw(device) };
        device.try_clone_to_owned().map(IntoRawFd::into_raw_fd).map_err(|error| error.raw_os_error().unwrap_or(libc::EMFILE))
    }

    fn set_sync(&self, _device: i32, args: &SyncArgs) -> Result<(), i32> {
        if !self.0.config.ioctls {
            return Err(libc::ENOTTY);
        }
        self.present()?;
        let _call = self.enter();
        {
            let mut kept = lock(&self.0.kept);
            if let direction @ 0..=2 = (args.flags >> 2) & 3 {
                kept.direction = direction;
            }
            kept.offset = args.offset;
            if args.size > 0 {
                kept.size = args.size;
            }
            let mode = (args.flags >> 8) & 0xFF;
            if mode > 0 {
                kept.mode = mode;
            }
        }
        std::thread::sleep(self.0.config.rest);
        // The header's numbers, spelled out: the runtime's own constants would hide a wrong one.
        match args.flags & 3 {
            1 => self.run(Command::ForCpu, 1),
            3 => self.run(Command::ForDevice, 1),
            _ => Ok(()),
        }
    }

    fn granule(&self) -> Align {
        self.0.config.line
    }

    fn write_attribute(&self, file: i32, name: &'static str, text: &[u8]) -> Result<usize, i32> {
        self.present()?;
        // The descriptor is that of the file it is said to be.
        let link = fs::read_link(format!("/proc/self/fd/{file}")).map_err(|_| libc::EBADF)?;
        let file_name = link.file_name().unwrap().to_str().unwrap().trim_end_matches(" (deleted)").to_owned();
        assert_eq!(file_name, name);
        let value: u64 = std::str::from_utf8(text).unwrap().trim_end().parse().map_err(|_| libc::EINVAL)?;
        let me = std::thread::current().id();
        let before = lock(&self.0.sequence).replace(me);
        if before.is_some_and(|other| other != me) {
            self.0.overlaps.fetch_add(1, SeqCst);
        }
        std::thread::sleep(self.0.config.rest);
        match name {
            "sync_offset" => lock(&self.0.kept).offset = value,
            "sync_size" => lock(&self.0.kept).size = value,
            "sync_direction" if value <= 2 => lock(&self.0.kept).direction = value,
            "sync_for_cpu" | "sync_for_device" => {
                let done = self.run(if name == "sync_for_cpu" { Command::ForCpu } else { Command::ForDevice }, value);
                *lock(&self.0.sequence) = None;
                done?;
            }
            _ => return Err(libc::EINVAL),
        }
        Ok(text.len())
    }
}

impl Memory {
    fn sync(&mut self, command: Command, range: Range<usize>, direction: Direction) {
        let lines = range.start / self.line..range.end.div_ceil(self.line);
        match (command, direction) {
            (Command::ForCpu, Direction::ToDevice) => {}
            (Command::ForDevice, Direction::ToDevice | Direction::Bidirectional) => self.write_back(lines),
            // Lines covered only in part are written back first: the kernel must not lose the bytes beside the range.
            (Command::ForDevice, Direction::FromDevice) | (Command::ForCpu, _) => {
                for edge in [range.start, range.end] {
                    if edge % self.line != 0 {
                        self.write_back(edge / self.line..edge / self.line + 1);
                    }
                }
                self.discard(lines);
            }
        }
    }

    /// Dirty lines go to the bus. Clean ones do not: they may be stale.
    fn write_back(&mut self, lines: Range<usize>) {
        for index in lines {
            let bytes = self.line(index);
            let mut line = vec![0; bytes.len()];
            self.file.read_exact_at(&mut line, bytes.start as u64).unwrap();
            if self.clean[bytes.clone()] != *line {
                self.bus[bytes.clone()].copy_from_slice(&line);
                self.clean[bytes].copy_from_slice(&line);
            }
        }
    }

    /// The CPU's lines are filled from the bus; what was written to them is lost.
    fn discard(&mut self, lines: Range<usize>) {
        for index in lines {
            let bytes = self.line(index);
            self.file.write_all_at(&self.bus[bytes.clone()], bytes.start as u64).unwrap();
            self.clean[bytes.clone()].copy_from_slice(&self.bus[bytes]);
        }
    }

    fn line(&self, index: usize) -> Range<usize> {
        let start = index * self.line;
        start..(start + self.line).min(self.bus.len())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap()
}
