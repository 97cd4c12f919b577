#![allow(unsafe_code, reason = "a mapping of registers is what makes `MmioWindow`'s promise true")]
//! A device's registers, mapped into this process.

use crate::{Error, Mmio, MmioWindow, PhysAddr, backend::path::Fd};
use core::{ffi::CStr, ptr::NonNull};
use memmap2::{MmapOptions, MmapRaw};
use nix::libc::{EINVAL, O_RDWR, O_SYNC};

/// A device's registers, mapped into this process by [`Uio`](crate::Uio), [`PciFunction`](crate::PciFunction) or
/// [`from_dev_mem`](Self::from_dev_mem). It owns the mapping, and the lock that keeps a second driver away.
#[derive(Debug)]
pub struct Registers {
    window: MmioWindow,
    /// Dropped after `window`, which points into it.
    _map: MmapRaw,
    /// Holds the advisory lock, and for UIO the device itself.
    _file: Option<Fd>,
}

impl Registers {
    /// The most that one window has: 1 GiB, more than any accelerator's registers, so that its end fits a `usize` anywhere.
    const MAX_BYTES: u64 = 1 << 30;

    /// Maps `len_bytes` registers that begin `in_page_bytes` after `offset_bytes`, a multiple of the page, of `file`.
    pub(super) fn map(file: &Fd, call: &'static str, offset_bytes: u64, in_page_bytes: u64, len_bytes: u64) -> Result<Self, Error> {
        let os = |errno: Option<i32>| Error::Os { call, errno: errno.unwrap_or(EINVAL) };
        let end = in_page_bytes.checked_add(len_bytes).filter(|end| (1..=Self::MAX_BYTES).contains(end)).ok_or(os(None))?;
        let (Ok(end), Ok(skip), Ok(len)) = (usize::try_from(end), usize::try_from(in_page_bytes), usize::try_from(len_bytes)) else {
            return Err(os(None));
        };
        // memmap2 uses mmap64: on armv7 a register at 0xFF20_0000 is past what a 32-bit off_t reaches.
        let map = MmapOptions::new().len(end).offset(offset_bytes).map_raw(file.raw()).map_err(|error| os(error.raw_os_error()))?;
        let first = NonNull::new(map.as_mut_ptr()).filter(|_| skip.is_multiple_of(4)).ok_or(os(None))?;
        // SAFETY: `skip + len = end` bytes were mapped, readable and writable; a page and `skip` are multiples of 4. The mapping
        // is `self`'s, nobody else has its address, and it is dropped with the window. That no other program writes these
        // registers is the lock's business and root's.
        let window = unsafe { MmioWindow::new(first.add(skip).cast(), len) };
        Ok(Self { window, _map: map, _file: None })
    }

    /// The same registers, which keep `file` open as long as they live.
    pub(super) fn holding(self, file: Fd) -> Self {
        Self { _file: Some(file), ..self }
    }

    /// The registers at `addr`, through `/dev/mem`: only where nothing better is. It needs root and a kernel that allows it
    /// (`CONFIG_STRICT_DEVMEM` does not, for what a driver has claimed), has no interrupt, and nothing keeps a second driver
    /// away. A `generic-uio` node in the device tree has neither problem: see [`Uio`](crate::Uio).
    ///
    /// # Errors
    /// [`Error::Misaligned`] where `addr` is no multiple of 4; [`Error::Os`]: EACCES or EPERM, not allowed; ENOENT, the kernel
    /// has no `/dev/mem`.
    ///
    /// # Safety
    /// `len_bytes` bytes at `addr` are the registers of one device, which nobody else drives while this lives, and reading any of
    /// them harms nothing: a read where no device is can stop the whole machine (an external abort on Arm).
    ///
    /// Source: man 4 mem.
    pub unsafe fn from_dev_mem(addr: PhysAddr, len_bytes: usize) -> Result<Self, Error> {
        const PATH: &CStr = c"/dev/mem";
        if !addr.0.is_multiple_of(4) {
            return Err(Error::Misaligned { addr: addr.0, align_bytes: 4 });
        }
        let page_bytes = crate::backend::pagemap::page_bytes()? as u64;
        let in_page_bytes = addr.0 % page_bytes;
        // With O_SYNC the kernel maps what is not RAM uncached (`phys_mem_access_prot`).
        let file = Fd::open(PATH, O_RDWR | O_SYNC).map_err(|errno| Error::Os { call: "open(/dev/mem)", errno })?;
        Self::map(&file, "mmap(/dev/mem)", addr.0 - in_page_bytes, in_page_bytes, len_bytes as u64)
    }
}

// SAFETY: the window's registers: `map`'s callers name one device's, and hold the lock on it where there is one.
unsafe impl Mmio for Registers {
    fn len_bytes(&self) -> usize {
        self.window.len_bytes()
    }
    #[inline]
    fn read32(&self, offset: usize) -> u32 {
        self.window.read32(offset)
    }
    #[inline]
    unsafe fn write32(&self, offset: usize, value: u32) {
        // SAFETY: the caller's promise.
        unsafe { self.window.write32(offset, value) }
    }
}
