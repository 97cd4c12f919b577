#![allow(
    unsafe_code,
    reason = "a mapping of registers, and the unsafe traits of a device that the IOMMU confines"
)]
//! The registers and the interrupt of a device behind an IOMMU.

use super::abi::{RegionInfo, size_of_u32};
use super::interrupt::Signal;
use super::space::{Capabilities, os};
use super::{Interrupt, Vfio, calls};
use crate::hw::{Device, Mmio, MmioWindow, Wait};
use crate::linux::Spin;
use crate::linux::os::text::event;
use crate::linux::os::{SystemCalls, ask};
use crate::mem::Port;
use crate::trace::{self, Event, Site};
use crate::types::Error;
use crate::types::forward::forward;
use core::fmt;
use core::ptr::NonNull;
use core::sync::atomic::Ordering;
use memmap2::MmapRaw;
use nix::errno::Errno;

/// The last BAR of a PCI function.
const LAST_BAR: u8 = 5;

/// One BAR's registers, one interrupt, and the port: a device for a driver. There is one at a time
/// for each [`Vfio`], to which it holds a handle; dropping it turns off bus mastering and the
/// interrupt.
///
/// The caller claims no port: the master reaches only what the kernel mapped for it, at the
/// addresses of this address space's bus, and the IOMMU refuses everything else. So a wrong address
/// in a register can harm only memory of this `Vfio`. (The driver still promises to write the right
/// ones: [`Mmio::write32`]. The caller claims which core this is when it makes the driver.)
///
/// Registers and the whole BAR are the device's own. Where the MSI-X table lies in the BAR, it is
/// in the window too: leave it to the kernel.
pub struct VfioDevice {
    vfio: Vfio,
    window: MmioWindow,
    signal: Signal,
    port: Port,
    // Held: the window is this mapping.
    _bar: MmapRaw,
}

impl Vfio {
    /// Resets the device from outside, not through its driver: all of its DMA ends, and its
    /// registers are as after power-on. Then call [`Queue::stop`](crate::Queue::stop).
    ///
    /// # Errors
    /// [`Error::Unsupported`] where the kernel cannot; [`Error::Os`].
    ///
    /// # Safety
    /// As [`DevNode::reset`](crate::linux::dev_node::DevNode::reset): no other thread calls a queue
    /// or a stream of this device meanwhile. The IOMMU confines a job that starts with cleared
    /// addresses, but its end may be taken for the end of another job whose output the device did
    /// not write.
    pub unsafe fn reset(&self) -> Result<(), Error> {
        if !self.0.resets {
            let fix = "see that its last driver stopped it, and open it without a reset";
            return Err(Error::Unsupported {
                what: "the kernel knows no reset for this PCI function alone",
                fix,
            });
        }
        calls::reset(&self.0.kernel, &self.0.device)
            .map_err(|errno| os("ioctl(VFIO_DEVICE_RESET)", errno))
    }
}

impl VfioDevice {
    /// Opens the registers of BAR number `bar`, and `interrupt`. The device is reset first, so that
    /// nothing remains of its last user, and then may master the bus.
    ///
    /// # Errors
    /// - [`Error::Argument`]: there is no such BAR. [`Error::Unsupported`]: it cannot be mapped
    ///   whole (I/O ports, a size below a page, parts that the kernel keeps). Or the device has no
    ///   such interrupt, or the kernel cannot reset it ([`open_unreset`](Self::open_unreset)).
    /// - [`Error::HasDriver`]: this `Vfio` has a device already, or had one that was forgotten.
    /// - [`Error::Os`], [`Error::Unexpected`]: what the kernel says.
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn open(vfio: &Vfio, bar: u8, interrupt: Interrupt) -> Result<Self, Error> {
        let this = Self::quiet(vfio, bar, interrupt)?;
        // SAFETY: `this` alone has the registers, and no driver has it yet.
        unsafe { vfio.reset()? };
        vfio.0.config.enable(&vfio.0.kernel, &vfio.0.device, true)?;
        Ok(this)
    }

    /// As [`open`](Self::open), for a device that the kernel cannot reset: `quiesce` brings it to
    /// rest by its registers, while it may not master the bus.
    ///
    /// # Errors
    /// As [`open`](Self::open), and the error of `quiesce`.
    ///
    /// # Safety
    /// When `quiesce` has returned `Ok`, the device does no DMA of its own accord: nothing of an
    /// earlier user is pending in it that would begin or continue once it may master the bus. Such
    /// DMA would hit addresses that this program uses for its own memory.
    #[cfg_attr(feature = "audit", track_caller)]
    pub unsafe fn open_unreset(
        vfio: &Vfio,
        bar: u8,
        interrupt: Interrupt,
        quiesce: impl FnOnce(&mut Self) -> Result<(), Error>,
    ) -> Result<Self, Error> {
        let mut this = Self::quiet(vfio, bar, interrupt)?;
        quiesce(&mut this)?;
        vfio.0.config.enable(&vfio.0.kernel, &vfio.0.device, true)?;
        Ok(this)
    }

    /// Which interrupt is on: never [`Interrupt::Any`].
    #[must_use]
    pub const fn interrupt(&self) -> Interrupt {
        self.signal.kind
    }

    /// The eventfd of the interrupt, to wait for together with other files. `None` if there is no
    /// interrupt, and for [`Interrupt::Intx`]: VFIO masks the line when it comes, and only this
    /// device's wait unmasks it. The descriptor is borrowed: valid while this value lives, never to
    /// be closed. It is readable from an interrupt until the next wait, or until its 8 bytes are
    /// read: read them before the next sleep.
    #[must_use]
    pub fn raw_fd(&self) -> Option<i32> {
        if self.signal.kind == Interrupt::Intx {
            return None;
        }
        self.signal.raw_fd()
    }

    /// Opens everything, but leaves bus mastering off.
    #[cfg_attr(feature = "audit", track_caller)]
    fn quiet(vfio: &Vfio, bar: u8, interrupt: Interrupt) -> Result<Self, Error> {
        if bar > LAST_BAR {
            return Err(Error::Argument {
                name: "bar",
                value: bar.into(),
                min: 0,
                max: LAST_BAR.into(),
                multiple_of: 1,
            });
        }
        if vfio.0.taken.swap(true, Ordering::Acquire) {
            return Err(Error::HasDriver);
        }
        let made = vfio.0.config.enable(&vfio.0.kernel, &vfio.0.device, false).and_then(|()| {
            let map = registers(vfio, bar)?;
            Ok((map, Signal::enable(&vfio.0.kernel, &vfio.0.device, interrupt)?))
        });
        let (map, signal) = made.inspect_err(|_| vfio.0.taken.store(false, Ordering::Release))?;
        let (base, len_bytes) = (map.as_mut_ptr().cast::<u32>(), map.len());
        // SAFETY: `registers` checked that the mapping is not at address 0.
        let base = unsafe { NonNull::new_unchecked(base) };
        // SAFETY: 1. A mapping begins at a page; it has `len_bytes` bytes, readable and writable,
        // of one device's registers (`calls.rs`, 1), and lives in `_bar` as long as the window,
        // never remapped. 2. No other code writes them: the kernel gives the device to one user,
        // and `taken` gives its registers to one value.
        let window = unsafe { MmioWindow::new(base, len_bytes) };
        trace::happened(Event::MapRegisters { len_bytes }, Site::here());
        Ok(Self { vfio: vfio.clone(), window, signal, port: vfio.port(), _bar: map })
    }
}

/// Maps a BAR, all of it.
fn registers(vfio: &Vfio, bar: u8) -> Result<MmapRaw, Error> {
    let mut info = RegionInfo::ask(bar.into());
    let asked = ask(&vfio.0.kernel, &vfio.0.device, &mut info);
    asked.map_err(|errno| os("ioctl(VFIO_DEVICE_GET_REGION_INFO)", errno))?;
    if info.size == 0 || info.flags & RegionInfo::MMAP == 0 {
        let fix = "it has I/O ports, is smaller than a page, or is not there; use the BAR that \
         has the registers";
        return Err(Error::Unsupported { what: "this BAR cannot be mapped", fix });
    }
    let caps =
        Capabilities { words: &info.caps, at_bytes: core::mem::offset_of!(RegionInfo, caps) };
    let first = if info.flags & RegionInfo::CAPS == 0 { 0 } else { info.cap_offset };
    // With more capabilities than there is room for, the kernel names none: it does not
    // report then whether parts are left out.
    let cut = info.argsz > size_of_u32::<RegionInfo>();
    if cut || !matches!(caps.find(first, RegionInfo::SPARSE_MMAP), Some(None)) {
        let fix = "a newer kernel maps it whole (VFIO_REGION_INFO_CAP_SPARSE_MMAP)";
        return Err(Error::Unsupported { what: "the kernel keeps parts of this BAR", fix });
    }
    const CALL: &str = "mmap(BAR)";
    let len_bytes = usize::try_from(info.size)
        .map_err(|_| Error::Os { call: CALL, errno: Errno::EOVERFLOW as i32 })?;
    vfio.0.kernel.map(&vfio.0.device, info.offset, len_bytes, CALL)
}

impl Drop for VfioDevice {
    /// Ends the device's DMA, then its interrupt. Where the first fails, no second driver gets the
    /// registers.
    fn drop(&mut self) {
        let (kernel, device) = (&self.vfio.0.kernel, &self.vfio.0.device);
        let stopped = self.vfio.0.config.enable(kernel, device, false);
        if let Err(_error) = self.signal.disable(kernel, device) {
            event!("vfio: the interrupt would not be turned off");
        }
        match stopped {
            Ok(()) => self.vfio.0.taken.store(false, Ordering::Release),
            Err(_error) => event!("vfio: bus mastering would not be turned off"),
        }
    }
}

// SAFETY: the window's registers: those of the device that `vfio` has open.
unsafe impl Mmio for VfioDevice {
    forward!(|this| this.window => len_bytes, read32, write32);
}

impl Wait for VfioDevice {
    fn now_us(&self) -> u64 {
        Spin.now_us()
    }
    fn looks_before_clock(&self) -> u32 {
        if self.signal.kind == Interrupt::Polled { Spin.looks_before_clock() } else { 0 }
    }
    fn wait_at_most(&self, timeout_us: u32) -> Result<(), Error> {
        self.signal.wait(&self.vfio.0.kernel, &self.vfio.0.device, timeout_us)
    }
    fn arm_irq(&self) -> Result<Option<i32>, Error> {
        self.signal.arm(&self.vfio.0.kernel, &self.vfio.0.device)
    }
}

// SAFETY: every address that the device puts on its bus is translated by the IOMMU's table of this
// address space, or refused. The kernel attached the device to it before it gave out the device's
// file, and an address space begins empty (`calls.rs`, 2). So the bus, the window and the offset of
// 0 are true; and so is `coherent`, by the reasons in `VfioMemory`'s documentation.
unsafe impl Device for VfioDevice {
    fn port(&self) -> &Port {
        &self.port
    }
}

impl fmt::Debug for VfioDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VfioDevice")
            .field("len_bytes", &self.window.len_bytes())
            .field("interrupt", &self.signal.kind)
            .finish_non_exhaustive()
    }
}
