#![allow(unsafe_code, reason = "ioctls and mappings of the kernel's contract")]
//! The calls of `kernel-helpers/uapi/contigo.h`, raw: with structures of this file's own, and every
//! errno as it comes. The runtime stands between a program and the kernel; here nothing does.

use crate::map::Map;
use nix::{
    errno::Errno,
    libc,
    sys::mman::{MapFlags, ProtFlags, mmap, munmap},
};
use std::{
    ffi::c_void,
    fs::{File, OpenOptions},
    io,
    num::NonZeroUsize,
    os::fd::{AsFd, AsRawFd, BorrowedFd},
    ptr::NonNull,
};

/// `CONTIGO_INFO_*`, as far as a test asks.
pub(crate) mod info {
    pub(crate) const IOMMU: u32 = 1 << 1;
    pub(crate) const RESET: u32 = 1 << 5;
    pub(crate) const STRICT: u32 = 1 << 6;
    pub(crate) const ALONE: u32 = 1 << 7;
    pub(crate) const CONFINED: u32 = 1 << 8;
}

/// `CONTIGO_IMPORT_*`.
pub(crate) mod import {
    pub(crate) const CONTIGUOUS: u32 = 1;
    pub(crate) const READ_ONLY: u32 = 1 << 1;
    pub(crate) const WAIT: u32 = 1 << 2;
}

/// The codes of the calls, as a C program prints them.
pub(crate) mod code {
    pub(crate) const GET_INFO: u32 = 0xC150;
    pub(crate) const SET_DMA_BITS: u32 = 0x4008_C151;
    pub(crate) const IMPORT: u32 = 0xC028_C152;
    pub(crate) const GET_SEGMENTS: u32 = 0xC018_C153;
    pub(crate) const RELEASE: u32 = 0x4008_C154;
    pub(crate) const SYNC: u32 = 0x4010_C155;
    pub(crate) const ARM: u32 = 0x4010_C156;
    pub(crate) const SET_BUS_MASTER: u32 = 0x4008_C157;
    pub(crate) const UNMASK: u32 = 0x4008_C158;
    pub(crate) const SET_EVENTFD: u32 = 0x4008_C159;
    pub(crate) const RESET: u32 = 0xC15A;
}

/// `struct contigo_window`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Window {
    pub(crate) len_bytes: u64,
    pub(crate) mmap_offset: u64,
    pub(crate) in_page_bytes: u32,
    pub(crate) flags: u32,
}

/// `struct contigo_info`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Info {
    argsz: u32,
    pub(crate) abi: u32,
    pub(crate) flags: u32,
    pub(crate) dma_bits: u32,
    pub(crate) imports: u32,
    pub(crate) kept: u32,
    pub(crate) interrupts: u32,
    pub(crate) granule_bytes: u32,
    pub(crate) dma_limit: u64,
    pub(crate) kept_bytes: u64,
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
    wait_us: u32,
    reserved: u32,
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

/// `struct contigo_program`.
#[repr(C)]
struct Program {
    count: u32,
    reserved: u32,
    ptr: u64,
}

const _: () = assert!(size_of::<Info>() == 192 && size_of::<Import>() == 40 && size_of::<Step>() == 24);

impl Step {
    pub(crate) const fn write(offset_bytes: u32, value: u32) -> Self {
        Self { kind: 1, window: 0, offset_bytes, mask: u32::MAX, value, timeout_us: 0 }
    }

    pub(crate) const fn poll(offset_bytes: u32, mask: u32, value: u32, timeout_us: u32) -> Self {
        Self { kind: 2, window: 0, offset_bytes, mask, value, timeout_us }
    }

    pub(crate) const ELSE: Self = Self { kind: 4, window: 0, offset_bytes: 0, mask: 0, value: 0, timeout_us: 0 };
}

/// An opened guard.
#[derive(Debug)]
pub(crate) struct RawGuard(File);

impl RawGuard {
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

    /// A call whose argument is two numbers.
    fn numbers(&self, code: u32, first: u32, second: u32) -> Result<(), Errno> {
        let mut argument = [first, second];
        // SAFETY: these calls take 8 bytes.
        unsafe { self.call(code, argument.as_mut_ptr().cast()) }
    }

    pub(crate) fn info(&self) -> Result<Info, Errno> {
        let mut info = Info { argsz: 192, ..Info::default() };
        // SAFETY: the kernel writes at most `argsz` bytes.
        unsafe { self.call(code::GET_INFO, (&raw mut info).cast()) }.map(|()| info)
    }

    pub(crate) fn import(&self, buffer: impl AsFd, flags: u32, wait_us: u32) -> Result<Import, Errno> {
        let mut import = Import { fd: buffer.as_fd().as_raw_fd(), flags, wait_us, ..Import::default() };
        // SAFETY: its own structure.
        unsafe { self.call(code::IMPORT, (&raw mut import).cast()) }.map(|()| import)
    }

    pub(crate) fn release(&self, handle: u32) -> Result<(), Errno> {
        self.numbers(code::RELEASE, handle, 0)
    }

    pub(crate) fn arm(&self, steps: &[Step]) -> Result<(), Errno> {
        let count = u32::try_from(steps.len()).unwrap_or(u32::MAX);
        let mut program = Program { count, reserved: 0, ptr: steps.as_ptr().expose_provenance() as u64 };
        // SAFETY: its own structure, which points to as many steps as it says.
        unsafe { self.call(code::ARM, (&raw mut program).cast()) }
    }

    pub(crate) fn set_bus_master(&self, on: bool) -> Result<(), Errno> {
        self.numbers(code::SET_BUS_MASTER, on.into(), 0)
    }

    pub(crate) fn unmask(&self, interrupts: u32) -> Result<(), Errno> {
        self.numbers(code::UNMASK, interrupts, 0)
    }

    pub(crate) fn set_eventfd(&self, interrupt: u32, fd: i32) -> Result<(), Errno> {
        self.numbers(code::SET_EVENTFD, interrupt, fd.cast_unsigned())
    }

    pub(crate) fn reset(&self) -> Result<(), Errno> {
        // SAFETY: it takes no argument.
        unsafe { self.call(code::RESET, std::ptr::null_mut()) }
    }

    /// The first window's registers.
    pub(crate) fn map(&self) -> Result<RawRegisters, Errno> {
        let window = self.info()?.window[0];
        let whole = (window.len_bytes + u64::from(window.in_page_bytes)).next_multiple_of(4096);
        self.map_at(window.mmap_offset, whole, ProtFlags::PROT_READ | ProtFlags::PROT_WRITE, MapFlags::MAP_SHARED)
            .map(|map| RawRegisters { map, in_page_bytes: window.in_page_bytes as usize })
    }

    /// A mapping as the test asks for it.
    pub(crate) fn map_at(&self, offset: u64, len_bytes: u64, access: ProtFlags, kind: MapFlags) -> Result<Pages, Errno> {
        let len_bytes = usize::try_from(len_bytes).ok().and_then(NonZeroUsize::new).ok_or(Errno::EOVERFLOW)?;
        let offset = offset.try_into().map_err(|_| Errno::EOVERFLOW)?;
        // SAFETY: a new mapping, of which no reference is made.
        let start = unsafe { mmap(None, len_bytes, access, kind, &self.0, offset) }?;
        Ok(Pages { start, len_bytes })
    }

    /// `read(2)` of `len_bytes`, without waiting.
    pub(crate) fn read(&self, len_bytes: usize) -> Result<u32, Errno> {
        let mut came = [0_u8; 8];
        // SAFETY: as many bytes as the array has, at most.
        let read = unsafe { libc::read(self.0.as_raw_fd(), came.as_mut_ptr().cast(), len_bytes.min(8)) };
        Errno::result(read).map(|_| u32::from_ne_bytes([came[0], came[1], came[2], came[3]]))
    }

    /// From now on `read` answers EAGAIN instead of waiting.
    pub(crate) fn set_nonblocking(&self) -> Result<(), Errno> {
        // SAFETY: flags of this descriptor.
        Errno::result(unsafe { libc::fcntl(self.0.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) }).map(drop)
    }

    /// The events that `poll(2)` sees within `timeout_ms`.
    pub(crate) fn poll(&self, timeout_ms: i32) -> i16 {
        let mut entry = libc::pollfd { fd: self.0.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one entry.
        unsafe { libc::poll(&raw mut entry, 1, timeout_ms) };
        entry.revents
    }
}

impl AsFd for RawGuard {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Mapped pages, which are unmapped when this is dropped.
#[derive(Debug)]
pub(crate) struct Pages {
    start: NonNull<c_void>,
    len_bytes: NonZeroUsize,
}

// SAFETY: a mapping belongs to the process, and is reached by volatile accesses only.
unsafe impl Send for Pages {}
// SAFETY: as above.
unsafe impl Sync for Pages {}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: this value's own mapping, and its end.
        let _ = unsafe { munmap(self.start, self.len_bytes.get()) };
    }
}

/// Mapped registers of 32 bits.
#[derive(Debug)]
pub(crate) struct RawRegisters {
    map: Pages,
    in_page_bytes: usize,
}

impl RawRegisters {
    /// The first page of a PCI function's first BAR, past every driver.
    pub(crate) fn of_function(name: &str) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(format!("/sys/bus/pci/devices/{name}/resource0"))?;
        let len_bytes = NonZeroUsize::new(4096).ok_or(io::ErrorKind::InvalidInput)?;
        // SAFETY: a new mapping, of which no reference is made.
        let start = unsafe { mmap(None, len_bytes, ProtFlags::PROT_READ | ProtFlags::PROT_WRITE, MapFlags::MAP_SHARED, &file, 0) }?;
        Ok(Self { map: Pages { start, len_bytes }, in_page_bytes: 0 })
    }

    fn at(&self, offset_bytes: u32) -> *mut u32 {
        let offset = self.in_page_bytes + offset_bytes as usize;
        assert!(offset + 4 <= self.map.len_bytes.get() && offset.is_multiple_of(4), "a register of this window");
        // SAFETY: within the mapping, as was just seen.
        unsafe { self.map.start.as_ptr().byte_add(offset).cast() }
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

/// All bytes of a dma-buf, mapped.
pub(crate) fn mapped(buffer: impl AsFd, len_bytes: usize) -> io::Result<Map> {
    Map::shared(buffer.as_fd(), len_bytes).map_err(|error| io::Error::other(error.to_string()))
}
