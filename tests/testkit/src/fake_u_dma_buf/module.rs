#![allow(
    unsafe_code,
    reason = "a descriptor belongs to the runtime, which has it open while it calls"
)]
//! The module: what its ioctls and its sync files do, what it keeps between calls, and what it
//! counts.

use super::Config;
use super::memory::Memory;
use contigo::Direction;
use contigo::linux::os::seam::{Fd, Running, SystemCalls};
use nix::sys::ioctl::ioctl_num_type;
use std::ffi::{CStr, CString, c_int, c_void};
use std::fs;
use std::ops::Range;
use std::os::fd::{BorrowedFd, IntoRawFd};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, ThreadId};
use std::time::Duration;

// The numbers and structures of `u-dma-buf-ioctl.h`, by the fake's own reading of it: the runtime's
// own would hide a wrong one.
const GET_DEV_INFO: ioctl_num_type = 0x8018_5507_u32 as ioctl_num_type;
const GET_SYNC: ioctl_num_type = 0x8018_5508_u32 as ioctl_num_type;
const SET_SYNC: ioctl_num_type = 0x4018_5509_u32 as ioctl_num_type;
const EXPORT: ioctl_num_type = 0xC028_550A_u32 as ioctl_num_type;

/// `u_dma_buf_ioctl_dev_info`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DevInfo {
    /// Bits 0-7: width of the DMA mask; 9: coherent; 10-12: mmap mode.
    pub flags: u64,
    /// The block's size.
    pub size: u64,
    /// Its bus address.
    pub addr: u64,
}

/// `u_dma_buf_ioctl_sync_args`.
#[repr(C)]
struct SyncArgs {
    flags: u64,
    size: u64,
    offset: u64,
}

/// `u_dma_buf_ioctl_export_args`.
#[repr(C)]
struct ExportArgs {
    flags: u64,
    size: u64,
    offset: u64,
    addr: u64,
    fd: c_int,
    padding: u32,
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

/// The arguments that the module keeps between calls.
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

/// The stand-in for the module's ioctls. Clones are the same module.
#[derive(Clone, Debug)]
pub struct FakeIoctl(pub(super) Arc<Module>);

#[derive(Debug)]
pub(super) struct Module {
    pub(super) config: Config,
    pub(super) root: tempfile::TempDir,
    pub(super) kept: Mutex<Kept>,
    pub(super) memory: Mutex<Memory>,
    pub(super) log: Mutex<Vec<Synced>>,
    pub(super) inside: AtomicU64,
    pub(super) overlaps: AtomicU64,
    pub(super) effective: AtomicU64,
    /// Writes of sync files, interrupted ones as well.
    pub(super) writes: AtomicU64,
    pub(super) held: AtomicBool,
    /// Which thread is between the first write to a sync file and the command.
    pub(super) sequence: Mutex<Option<ThreadId>>,
}

impl FakeIoctl {
    /// The module's work for a word: `udmabuf_sync_command_argments` and the kernel's
    /// `dma_sync_single_for_…` after it.
    fn run(&self, command: Command, word: u64) -> Result<(), i32> {
        if word == 0 {
            return Ok(());
        }
        let mut kept = lock(&self.0.kept);
        let (offset, size, direction) = if word & !1 == 0 {
            (kept.offset, kept.size, kept.direction)
        } else {
            (word >> 32, word & 0xFFFF_FFF0, (word >> 2) & 3)
        };
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
            let bytes = offset as usize..(offset + size) as usize;
            lock(&self.0.memory).sync(command, bytes, direction);
        }
        lock(&self.0.log).push(Synced { command, range: offset..offset + size, direction });
        self.0.effective.fetch_add(1, SeqCst);
        Ok(())
    }

    fn present(&self) -> Result<(), i32> {
        let gone = self.0.effective.load(SeqCst) >= self.0.config.vanish_after;
        if gone { Err(libc::ENODEV) } else { Ok(()) }
    }

    /// Is the device there, and does the module know ioctls?
    fn knows_ioctls(&self) -> Result<(), i32> {
        if self.0.config.ioctls { self.present() } else { Err(libc::ENOTTY) }
    }

    fn get_dev_info(&self, device: i32) -> Result<DevInfo, i32> {
        // Opened without O_SYNC: the real module would look at it when the block is mapped.
        let details =
            fs::read_to_string(format!("/proc/self/fdinfo/{device}")).map_err(|_| libc::EBADF)?;
        let flags = details.lines().find_map(|line| line.strip_prefix("flags:")).unwrap().trim();
        let flags = i32::from_str_radix(flags, 8).unwrap();
        assert_eq!(flags & (libc::O_SYNC | libc::O_CLOEXEC), libc::O_CLOEXEC);
        let config = &self.0.config;
        if let Some(told) = config.dev_info {
            return told;
        }
        self.knows_ioctls()?;
        let coherent = u64::from(config.coherent == Some(true));
        let flags = u64::from(config.dma_mask_bits)
            | coherent << 9
            | u64::from(config.quirk_mmap_mode) << 10;
        Ok(DevInfo { flags, size: config.size_bytes, addr: config.phys_addr })
    }

    fn get_sync(&self) -> Result<SyncArgs, i32> {
        self.knows_ioctls()?;
        let kept = *lock(&self.0.kept);
        let flags = kept.direction << 2 | kept.mode << 8 | kept.owner << 16;
        Ok(SyncArgs { flags, size: kept.size, offset: kept.offset })
    }

    fn export(&self, device: i32, args: &ExportArgs) -> Result<i32, i32> {
        self.knows_ioctls()?;
        // The module takes others; the runtime shares the block from its beginning, and a program
        // that is started must not get the descriptor.
        let flags = u64::from((libc::O_RDWR | libc::O_CLOEXEC).cast_unsigned());
        let &ExportArgs { size, offset, .. } = args;
        if (args.flags, offset) != (flags, 0)
            || !size.is_multiple_of(crate::fake_dma_heap::page_bytes())
            || size > self.0.config.size_bytes
        {
            return Err(libc::EINVAL);
        }
        // The block's own file in the place of a dma-buf over it: the same bytes.
        // SAFETY: the descriptor belongs to the runtime, which has it open while it calls.
        let device = unsafe { BorrowedFd::borrow_raw(device) };
        device
            .try_clone_to_owned()
            .map(IntoRawFd::into_raw_fd)
            .map_err(|error| error.raw_os_error().unwrap_or(libc::EMFILE))
    }

    fn set_sync(&self, args: &SyncArgs) -> Result<(), i32> {
        self.knows_ioctls()?;
        let alone = self.0.inside.fetch_add(1, SeqCst) == 0;
        self.0.overlaps.fetch_add(u64::from(!alone), SeqCst);
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
        thread::sleep(self.0.config.rest);
        while alone && self.0.held.load(SeqCst) {
            thread::sleep(Duration::from_millis(1));
        }
        let done = match args.flags & 3 {
            1 => self.run(Command::ForCpu, 1),
            3 => self.run(Command::ForDevice, 1),
            _ => Ok(()),
        };
        self.0.inside.fetch_sub(1, SeqCst);
        done
    }

    /// A write of a sync file.
    fn write_attribute(&self, name: &str, text: &[u8]) -> Result<usize, i32> {
        self.present()?;
        let every = u64::from(self.0.config.interrupts) + 1;
        if !(self.0.writes.fetch_add(1, SeqCst) + 1).is_multiple_of(every) {
            return Err(libc::EINTR);
        }
        let value: u64 =
            std::str::from_utf8(text).unwrap().trim_end().parse().map_err(|_| libc::EINVAL)?;
        let me = thread::current().id();
        let before = lock(&self.0.sequence).replace(me);
        if before.is_some_and(|other| other != me) {
            self.0.overlaps.fetch_add(1, SeqCst);
        }
        thread::sleep(self.0.config.rest);
        match name {
            "sync_offset" => lock(&self.0.kept).offset = value,
            "sync_size" => lock(&self.0.kept).size = value,
            "sync_direction" if value <= 2 => lock(&self.0.kept).direction = value,
            "sync_for_cpu" | "sync_for_device" => {
                let to_cpu = name == "sync_for_cpu";
                let command = if to_cpu { Command::ForCpu } else { Command::ForDevice };
                let done = self.run(command, value);
                *lock(&self.0.sequence) = None;
                done?;
            }
            _ => return Err(libc::EINVAL),
        }
        Ok(text.len())
    }
}

// SAFETY: the block's file belongs to this fake. Only the fake's device side writes it, and never
// shortens it; no other device has its addresses. A sync that succeeds was done.
unsafe impl SystemCalls for FakeIoctl {
    /// The tree, in the place of `/dev` and `/sys`.
    fn open(&self, path: &CStr, flags: c_int) -> Result<Fd, i32> {
        let (root, path) = (self.0.root.path().to_str().unwrap(), path.to_str().unwrap());
        Running.open(&CString::new(format!("{root}{path}")).unwrap(), flags)
    }

    unsafe fn ioctl(
        &self,
        file: &Fd,
        request: ioctl_num_type,
        argument: *mut c_void,
    ) -> Result<c_int, i32> {
        // SAFETY: each request's own structure, by the caller's promise.
        unsafe {
            match request {
                GET_DEV_INFO => *argument.cast() = self.get_dev_info(file.raw())?,
                GET_SYNC => *argument.cast() = self.get_sync()?,
                SET_SYNC => self.set_sync(&*argument.cast())?,
                EXPORT => {
                    let args = &mut *argument.cast::<ExportArgs>();
                    args.fd = self.export(file.raw(), args)?;
                }
                _ => return Err(libc::ENOTTY),
            }
        }
        Ok(0)
    }

    fn write_at(&self, file: &Fd, offset_bytes: u64, text: &[u8]) -> Result<usize, i32> {
        assert_eq!(offset_bytes, 0);
        let link =
            fs::read_link(format!("/proc/self/fd/{}", file.raw())).map_err(|_| libc::EBADF)?;
        let name = link.file_name().unwrap().to_str().unwrap();
        self.write_attribute(name.trim_end_matches(" (deleted)"), text)
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap()
}
