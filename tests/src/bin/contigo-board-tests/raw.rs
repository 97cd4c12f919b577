#![allow(unsafe_code, reason = "ioctls and mappings of the kernel's contract")]
//! The calls of `kernel-helpers/uapi/contigo.h`, raw: with structures of this file's own, and every
//! errno as it comes. The runtime stands between a program and the kernel; here nothing does.

use crate::pages::{Map, READ_WRITE};
use crate::verdict::{Wrong, must};
use nix::errno::Errno;
use nix::libc;
use nix::sys::mman::{MapFlags, ProtFlags};
use std::ffi::c_void;
use std::fs::{self, File, OpenOptions};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

/// `CONTIGO_INFO_*`, as far as a test asks.
pub(crate) mod info {
    pub(crate) const COHERENT: u32 = 1;
    pub(crate) const IOMMU: u32 = 1 << 1;
    pub(crate) const RESET: u32 = 1 << 3;
    pub(crate) const STRICT: u32 = 1 << 4;
    pub(crate) const ALONE: u32 = 1 << 5;
    pub(crate) const CONFINED: u32 = 1 << 6;
    pub(crate) const ARMED: u32 = 1 << 7;
}

pub(crate) mod import {
    pub(crate) const READ_ONLY: u32 = 1;
}

/// The codes of the calls, as a C program prints them.
pub(crate) mod code {
    pub(crate) const GET_INFO: u32 = 0xC150;
    pub(crate) const SET_DMA_BITS: u32 = 0x4008_C151;
    pub(crate) const ALLOC: u32 = 0xC020_C152;
    pub(crate) const EXPORT: u32 = 0xC008_C153;
    pub(crate) const IMPORT: u32 = 0xC020_C154;
    pub(crate) const GET_SEGMENTS: u32 = 0xC018_C155;
    pub(crate) const RELEASE: u32 = 0x4008_C156;
    pub(crate) const SYNC: u32 = 0x4010_C157;
    pub(crate) const ARM: u32 = 0x4010_C158;
    pub(crate) const UNMASK: u32 = 0x4008_C159;
    pub(crate) const SET_EVENTFD: u32 = 0x4008_C15A;
    pub(crate) const RESET: u32 = 0xC15B;
    pub(crate) const WAIT: u32 = 0xC008_C15C;
}

/// `CONTIGO_ALLOC_*`.
pub(crate) const ALLOC_COHERENT: u32 = 1;
/// `CONTIGO_SYNC_*`.
pub(crate) const SYNC_FOR_CPU: u32 = 1;
pub(crate) const SYNC_FOR_DEVICE: u32 = 1 << 1;

/// `struct contigo_alloc`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Alloc {
    pub(crate) len_bytes: u64,
    flags: u32,
    pub(crate) handle: u32,
    pub(crate) addr: u64,
    pub(crate) mmap_offset: u64,
}

/// `struct contigo_range`, and the call's own structure before it.
#[repr(C)]
#[derive(Clone, Copy)]
struct Range {
    handle: u32,
    flags: u32,
    offset_bytes: u64,
    len_bytes: u64,
}

/// `struct contigo_window`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Window {
    pub(crate) len_bytes: u64,
    pub(crate) mmap_offset: u64,
    pub(crate) flags: u32,
    reserved: u32,
}

/// `struct contigo_info`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Info {
    argsz: u32,
    pub(crate) flags: u32,
    pub(crate) dma_bits: u32,
    pub(crate) buffers: u32,
    pub(crate) quarantined: u32,
    pub(crate) interrupts: u32,
    pub(crate) granule_bytes: u32,
    reserved: u32,
    pub(crate) quarantined_bytes: u64,
    pub(crate) window: [Window; 6],
}

/// `struct contigo_import`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Import {
    fd: i32,
    flags: u32,
    pub(crate) handle: u32,
    pub(crate) segments: u32,
    pub(crate) addr: u64,
    pub(crate) len_bytes: u64,
}

/// `struct contigo_step`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    kind: u32,
    window: u32,
    offset_bytes: u32,
    mask: u32,
    value: u32,
    timeout_us: u32,
}

/// `struct contigo_stop_sequence`, and `struct contigo_sync`.
#[repr(C)]
struct Array {
    count: u32,
    reserved: u32,
    ptr: u64,
}

const _: () = assert!(
    size_of::<Info>() == 184
        && size_of::<Import>() == 32
        && size_of::<Step>() == 24
        && size_of::<Alloc>() == 32
);

impl Step {
    pub(crate) const fn write(offset_bytes: u32, value: u32) -> Self {
        Self { kind: 1, window: 0, offset_bytes, mask: u32::MAX, value, timeout_us: 0 }
    }

    pub(crate) const fn poll(offset_bytes: u32, mask: u32, value: u32, timeout_us: u32) -> Self {
        Self { kind: 2, window: 0, offset_bytes, mask, value, timeout_us }
    }

    pub(crate) const fn in_window(self, window: u32) -> Self {
        Self { window, ..self }
    }

    pub(crate) const ELSE: Self =
        Self { kind: 4, window: 0, offset_bytes: 0, mask: 0, value: 0, timeout_us: 0 };
}

#[derive(Debug)]
pub(crate) struct RawDevNode(File);

impl RawDevNode {
    pub(crate) fn open(name: &str) -> Result<Self, Errno> {
        let file = OpenOptions::new().read(true).write(true).open(format!("/dev/contigo/{name}"));
        file.map(Self).map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or(0)))
    }

    /// # Safety
    /// `argument` is what the call takes: its structure, or a number.
    unsafe fn call(&self, code: u32, argument: *mut c_void) -> Result<(), Errno> {
        // SAFETY: the caller's promise.
        Errno::result(unsafe { libc::ioctl(self.0.as_raw_fd(), code as _, argument) }).map(drop)
    }

    fn numbers(&self, code: u32, first: u32, second: u32) -> Result<(), Errno> {
        let mut argument = [first, second];
        // SAFETY: these calls take 8 bytes.
        unsafe { self.call(code, argument.as_mut_ptr().cast()) }
    }

    pub(crate) fn info(&self) -> Result<Info, Errno> {
        let mut info = Info { argsz: 184, ..Info::default() };
        // SAFETY: the kernel writes at most `argsz` bytes.
        unsafe { self.call(code::GET_INFO, (&raw mut info).cast()) }.map(|()| info)
    }

    pub(crate) fn import(&self, buffer: impl AsFd, flags: u32) -> Result<Import, Errno> {
        let mut import = Import { fd: buffer.as_fd().as_raw_fd(), flags, ..Import::default() };
        // SAFETY: its own structure.
        unsafe { self.call(code::IMPORT, (&raw mut import).cast()) }.map(|()| import)
    }

    pub(crate) fn alloc(&self, len_bytes: u64, flags: u32) -> Result<Alloc, Errno> {
        let mut alloc = Alloc { len_bytes, flags, ..Alloc::default() };
        // SAFETY: its own structure.
        unsafe { self.call(code::ALLOC, (&raw mut alloc).cast()) }.map(|()| alloc)
    }

    pub(crate) fn export(&self, handle: u32) -> Result<OwnedFd, Errno> {
        let mut export = [handle, 0];
        // SAFETY: the call takes 8 bytes; the descriptor is new.
        unsafe {
            self.call(code::EXPORT, export.as_mut_ptr().cast())?;
            Ok(OwnedFd::from_raw_fd(export[1].cast_signed()))
        }
    }

    pub(crate) fn sync(
        &self,
        handle: u32,
        flags: u32,
        offset_bytes: u64,
        len_bytes: u64,
    ) -> Result<(), Errno> {
        self.sync_ranges(&[Range { handle, flags, offset_bytes, len_bytes }])
    }

    /// The same range of a buffer from its first byte, `count` times in one call.
    pub(crate) fn sync_again(
        &self,
        count: u32,
        handle: u32,
        flags: u32,
        len_bytes: u64,
    ) -> Result<(), Errno> {
        self.sync_ranges(&vec![Range { handle, flags, offset_bytes: 0, len_bytes }; count as usize])
    }

    fn sync_ranges(&self, ranges: &[Range]) -> Result<(), Errno> {
        let count = u32::try_from(ranges.len()).unwrap_or(u32::MAX);
        let mut sync =
            Array { count, reserved: 0, ptr: ranges.as_ptr().expose_provenance() as u64 };
        // SAFETY: its own structure, which points to as many ranges as it says.
        unsafe { self.call(code::SYNC, (&raw mut sync).cast()) }
    }

    pub(crate) fn release(&self, handle: u32) -> Result<(), Errno> {
        self.numbers(code::RELEASE, handle, 0)
    }

    pub(crate) fn arm(&self, steps: &[Step]) -> Result<(), Errno> {
        let count = u32::try_from(steps.len()).unwrap_or(u32::MAX);
        let mut sequence =
            Array { count, reserved: 0, ptr: steps.as_ptr().expose_provenance() as u64 };
        // SAFETY: its own structure, which points to as many steps as it says.
        unsafe { self.call(code::ARM, (&raw mut sequence).cast()) }
    }

    pub(crate) fn unmask(&self, interrupts: u32) -> Result<(), Errno> {
        self.numbers(code::UNMASK, interrupts, 0)
    }

    /// Which of `interrupts` came; none at the end of the limit.
    pub(crate) fn wait(&self, interrupts: u32, limit_us: u32) -> Result<u32, Errno> {
        let mut argument = [interrupts, limit_us];
        // SAFETY: it takes 8 bytes.
        unsafe { self.call(code::WAIT, argument.as_mut_ptr().cast()) }.map(|()| argument[0])
    }

    pub(crate) fn set_eventfd(&self, interrupt: u32, fd: i32) -> Result<(), Errno> {
        self.numbers(code::SET_EVENTFD, interrupt, fd.cast_unsigned())
    }

    pub(crate) fn reset(&self) -> Result<(), Errno> {
        // SAFETY: it takes no argument.
        unsafe { self.call(code::RESET, ptr::null_mut()) }
    }

    pub(crate) fn map(&self) -> Result<RawRegisters, Errno> {
        let window = self.info()?.window[0];
        self.map_memory(window.mmap_offset, window.len_bytes).map(RawRegisters)
    }

    pub(crate) fn map_at(
        &self,
        offset: u64,
        len_bytes: u64,
        access: ProtFlags,
        kind: MapFlags,
    ) -> Result<Map, Errno> {
        Map::of(self, offset, len_bytes, access, kind)
    }

    /// The usual mapping of memory of its own.
    pub(crate) fn map_memory(&self, offset: u64, len_bytes: u64) -> Result<Map, Errno> {
        self.map_at(offset, len_bytes, READ_WRITE, MapFlags::MAP_SHARED)
    }

    /// `read(2)` of `len_bytes`, without waiting.
    pub(crate) fn read(&self, len_bytes: usize) -> Result<u32, Errno> {
        let mut came = [0_u8; 8];
        // SAFETY: as many bytes as the array has, at most.
        let read =
            unsafe { libc::read(self.0.as_raw_fd(), came.as_mut_ptr().cast(), len_bytes.min(8)) };
        Errno::result(read).map(|_| u32::from_ne_bytes([came[0], came[1], came[2], came[3]]))
    }

    /// From now on `read` answers EAGAIN instead of waiting.
    pub(crate) fn set_nonblocking(&self) -> Result<(), Errno> {
        // SAFETY: flags of this descriptor.
        Errno::result(unsafe { libc::fcntl(self.0.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) })
            .map(drop)
    }

    /// The events that `poll(2)` sees within `timeout_ms`.
    pub(crate) fn poll(&self, timeout_ms: i32) -> i16 {
        let mut entry = libc::pollfd { fd: self.0.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one entry.
        unsafe { libc::poll(&raw mut entry, 1, timeout_ms) };
        entry.revents
    }
}

impl AsFd for RawDevNode {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[derive(Debug)]
pub(crate) struct RawRegisters(Map);

impl RawRegisters {
    /// The first page of the PCI function that the lab has made the contigo device `name`'s device
    /// of, past every driver.
    pub(crate) fn of_function(name: &str) -> Result<Self, Wrong> {
        let function =
            must("its function", fs::canonicalize(format!("/sys/class/contigo/{name}/device/..")))?;
        let file = OpenOptions::new().read(true).write(true).open(function.join("resource0"));
        let file = must("its registers through sysfs", file)?;
        must("mmap of its registers", Map::shared(file, 4096)).map(Self)
    }

    fn at(&self, offset_bytes: u32) -> *mut u32 {
        assert!(offset_bytes.is_multiple_of(4), "a register");
        self.0.at(offset_bytes as usize, 4).cast()
    }

    pub(crate) fn read(&self, offset_bytes: u32) -> u32 {
        // SAFETY: an aligned register within the mapping.
        unsafe { self.at(offset_bytes).read_volatile() }
    }

    pub(crate) fn write(&self, offset_bytes: u32, value: u32) {
        // SAFETY: as for `read`.
        unsafe { self.at(offset_bytes).write_volatile(value) }
    }
}
