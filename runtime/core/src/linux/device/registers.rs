#![allow(unsafe_code, reason = "a mapping of registers is what makes `MmioWindow`'s promise true")]
//! A device's registers, mapped into this process.

use crate::hw::{Mmio, MmioWindow};
use crate::linux::os::fd::Fd;
use crate::linux::os::{Kernel, RUNNING, SystemCalls, pagemap};
use crate::trace::{self, Event, Site};
use crate::types::forward::forward;
use crate::types::shared::Shared;
use crate::types::{Error, PhysAddr};
use core::ptr::NonNull;
use memmap2::MmapRaw;
use nix::libc::{EACCES, EINVAL, EPERM, O_RDWR, O_SYNC};

/// A device's registers, mapped into this process by [`DevNode`](crate::linux::dev_node::DevNode),
/// [`Uio`](crate::linux::device::Uio), [`PciFunction`](crate::linux::device::PciFunction) or
/// [`from_dev_mem`](Self::from_dev_mem). It owns the mapping, and holds the lock that keeps a
/// second driver away, where there is one.
///
/// ```no_run
/// use contigo::{Mmio, linux::device::Uio};
/// let (registers, _irq) = Uio::find("dma-controller@f8003000")?.into_parts();
/// // Arm DDI 0424, "Peripheral Identification Registers": 8 bits each.
/// let id = [0xFE0, 0xFE4, 0xFE8, 0xFEC].map(|offset| registers.read32(offset));
/// # let _ = id;
/// # Ok::<(), contigo::Error>(())
/// ```
#[derive(Debug)]
pub struct Registers(Shared<Mapped>);

#[derive(Debug)]
struct Mapped {
    window: MmioWindow,
    /// Dropped after `window`, which points into it.
    _map: MmapRaw,
    /// Holds the advisory lock, where it is not on the mapped file, which the mapping keeps open.
    _lock: Option<Fd>,
}

/// Which bytes of a file are registers.
#[derive(Clone, Copy, Debug)]
pub(in crate::linux) struct Extent {
    /// Where the mapping begins, a multiple of the page.
    pub(in crate::linux) offset_bytes: u64,
    /// How far into that the first register is, a multiple of 4.
    pub(in crate::linux) in_page_bytes: u64,
    pub(in crate::linux) len_bytes: u64,
}

impl Registers {
    /// The most that one window has: 1 GiB, more than any accelerator's registers, so that its end
    /// fits a `usize` anywhere.
    const MAX_BYTES: u64 = 1 << 30;

    /// Maps `extent` of `file`, which `kernel` has opened, and keeps `lock` open as long as it
    /// lives. `call` is for errors.
    #[cfg_attr(feature = "audit", track_caller)]
    pub(in crate::linux) fn map(
        kernel: &Kernel,
        file: &Fd,
        call: &'static str,
        extent: Extent,
        lock: Option<Fd>,
    ) -> Result<Self, Error> {
        let os = |errno: Option<i32>| Error::Os { call, errno: errno.unwrap_or(EINVAL) };
        let Extent { offset_bytes, in_page_bytes, len_bytes } = extent;
        let end = in_page_bytes
            .checked_add(len_bytes)
            .filter(|end| (1..=Self::MAX_BYTES).contains(end))
            .ok_or(os(None))?;
        let (Ok(end), Ok(skip), Ok(len)) =
            (usize::try_from(end), usize::try_from(in_page_bytes), usize::try_from(len_bytes))
        else {
            return Err(os(None));
        };
        let map = kernel.map(file, offset_bytes, end, call)?;
        let first =
            NonNull::new(map.as_mut_ptr()).filter(|_| skip.is_multiple_of(4)).ok_or(os(None))?;
        // SAFETY: `skip + len = end` bytes were mapped, readable and writable; a page and `skip`
        // are multiples of 4. The mapping has no other owner than the window beside it, and is
        // dropped after it. The lock and root see to it that no other program writes these
        // registers.
        let window = unsafe { MmioWindow::new(first.add(skip).cast(), len) };
        trace::happened(Event::MapRegisters { len_bytes: len }, Site::here());
        Shared::new(Mapped { window, _map: map, _lock: lock }).map(Self)
    }

    /// A second handle on the same registers.
    ///
    /// # Safety
    /// Only one of the two is used at a time: the caller gives it to the next driver after the last
    /// one has released them, or to a gate that lies among them.
    #[doc(hidden)]
    #[must_use]
    pub unsafe fn second(&self) -> Self {
        Self(self.0.clone())
    }

    /// The registers at `addr`, through `/dev/mem`: use it only where there is nothing better, and
    /// only where the user asked for it by name.
    ///
    /// A `generic-uio` node in the device tree ([`Uio`](crate::linux::device::Uio)) is better in
    /// every way. It has an interrupt, an ordinary user may be given it, and a second driver is
    /// kept away. The kernel knows that the registers are in use and keeps the device's clocks on.
    /// This needs root, and a kernel that allows it. `CONFIG_STRICT_DEVMEM` forbids RAM;
    /// `CONFIG_IO_STRICT_DEVMEM` also forbids registers that a driver has claimed.
    ///
    /// # Errors
    /// [`Error::Misaligned`] where `addr` is no multiple of 4. [`Error::Argument`] where
    /// `len_bytes` is no multiple of 4, or 0, or above 1 GiB. [`Error::Denied`]: not root, or the
    /// kernel does not allow it. [`Error::Os`]: ENOENT, the kernel has no `/dev/mem`.
    ///
    /// # Safety
    /// `len_bytes` bytes at `addr` are the registers of one device, which no other code drives
    /// while this lives. Reading any of them is harmless; a read where there is no device can stop
    /// the whole machine (an external abort on Arm).
    ///
    /// Source: man 4 mem; Linux `drivers/char/mem.c`.
    ///
    /// ```no_run
    /// use contigo::{PhysAddr, linux::device::Registers};
    /// // SAFETY: UG585, appendix B: the PL330's secure registers, 4 KiB; no other program drives it.
    /// let registers = unsafe { Registers::from_dev_mem(PhysAddr(0xF800_3000), 4096)? };
    /// # let _ = registers;
    /// # Ok::<(), contigo::Error>(())
    /// ```
    #[cfg_attr(feature = "audit", track_caller)]
    pub unsafe fn from_dev_mem(addr: PhysAddr, len_bytes: usize) -> Result<Self, Error> {
        const FIX: &str = "be root, on a kernel without CONFIG_STRICT_DEVMEM for these registers; \
         or use a generic-uio node and Uio::find";
        if !addr.0.is_multiple_of(4) {
            return Err(Error::Misaligned { addr: addr.0, align_bytes: 4 });
        }
        let len_bytes = len_bytes as u64;
        if !(4..=Self::MAX_BYTES).contains(&len_bytes) || !len_bytes.is_multiple_of(4) {
            return Err(Error::Argument {
                name: "len_bytes",
                value: len_bytes,
                min: 4,
                max: Self::MAX_BYTES,
                multiple_of: 4,
            });
        }
        let denied = |error| match error {
            Error::Os { errno: errno @ (EACCES | EPERM), .. } => {
                Error::Denied { what: "/dev/mem", errno, fix: FIX }
            }
            error => error,
        };
        let in_page_bytes = addr.0 % pagemap::page_bytes()? as u64;
        let extent = Extent { offset_bytes: addr.0 - in_page_bytes, in_page_bytes, len_bytes };
        // With O_SYNC the kernel maps what is not RAM uncached (`phys_mem_access_prot`).
        let file = Fd::open(c"/dev/mem", O_RDWR | O_SYNC)
            .map_err(|errno| denied(Error::Os { call: "open(/dev/mem)", errno }))?;
        Self::map(&RUNNING, &file, "mmap(/dev/mem)", extent, None).map_err(denied)
    }
}

// SAFETY: 1. The window's registers: `map`'s callers name one device's. 2. They map none twice, and
// hold the lock on the device, by the mapping or by `_lock`; for `/dev/mem`, which has none, its
// caller promised it.
unsafe impl Mmio for Registers {
    forward!(|this| this.0.window => len_bytes, read32, write32);
}
