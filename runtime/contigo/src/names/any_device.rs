#![allow(
    unsafe_code,
    reason = "registers and a port are promises, which each kind of device keeps"
)]
//! A device of any kind as one type.

use super::attachment::{AnyIrq, Attachment};
use super::opened::OpenDevice;
use contigo_core::hw::{Device, Mmio, Wait};
use contigo_core::linux::Spin;
use contigo_core::linux::device::Registers;
use contigo_core::mem::Port;
use contigo_core::types::Error;
use contigo_core::types::platform::{AsFd, BorrowedFd};
use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};

/// A device of any kind, for one driver: registers, interrupt and port.
/// [`OpenDevice::attach`](super::OpenDevice::attach) makes one. When it is dropped, the next driver
/// can take the device, and its [`Queue::new`](crate::Queue::new) stops what the last one left
/// running. If it is forgotten, no driver can.
pub struct AnyDevice {
    attachment: Attachment,
    port: Port,
    /// Counts interrupts, if the program asked for that.
    interrupts: Option<&'static AtomicU64>,
    /// Dropped last.
    _attached: Option<Attached>,
}

/// While it lives, no other driver gets the device, which stays open.
struct Attached(OpenDevice);

impl Drop for Attached {
    fn drop(&mut self) {
        self.0.let_go();
    }
}

impl AnyDevice {
    /// `device` was marked as attached for this value.
    pub(super) const fn new(attachment: Attachment, port: Port, device: OpenDevice) -> Self {
        Self { attachment, port, interrupts: None, _attached: Some(Attached(device)) }
    }

    /// A second handle on the registers of a device that a driver has.
    pub(super) const fn second(attachment: Attachment, port: Port) -> Self {
        Self { attachment, port, interrupts: None, _attached: None }
    }

    /// A device of which the program has only the registers
    /// ([`Registers::from_dev_mem`](crate::linux::device::Registers::from_dev_mem)): it is polled.
    ///
    /// # Safety
    /// As [`Wired::new`](crate::hw::Wired::new); and no other code drives these registers while
    /// it lives.
    #[must_use]
    pub const unsafe fn of_registers(registers: Registers, port: Port) -> Self {
        Self::second(Attachment::Plain { registers, irq: None }, port)
    }

    /// Counts interrupts in `interrupts` from now on: each wait that ended before its time. A
    /// driver whose job is done at the first poll never waits, so the count is a lower bound.
    pub const fn count_in(&mut self, interrupts: &'static AtomicU64) {
        self.interrupts = Some(interrupts);
    }

    /// Returns whether it has an interrupt to wait for. A simulated one has.
    #[must_use]
    pub const fn has_interrupt(&self) -> bool {
        !matches!(&self.attachment, Attachment::Plain { irq: None, .. })
    }

    /// The file of its interrupt, to wait for together with others, as described at
    /// [`UioIrq`](crate::linux::device::UioIrq), [`DevNodeIrq`](crate::linux::dev_node::DevNodeIrq)
    /// and [`VfioDevice::raw_fd`](crate::linux::vfio::VfioDevice::raw_fd); `None` where it has
    /// none.
    #[must_use]
    pub fn interrupt(&self) -> Option<BorrowedFd<'_>> {
        match &self.attachment {
            Attachment::Plain { irq, .. } => irq.as_ref().map(AsFd::as_fd),
            Attachment::Vfio(device) => {
                // SAFETY: it is open as long as the device, which is borrowed as long as what is
                // returned.
                device.raw_fd().map(|fd| unsafe { BorrowedFd::borrow_raw(fd) })
            }
            #[cfg(feature = "sim")]
            Attachment::Simulated(_) => None,
        }
    }

    /// A second handle on its interrupt, for an event loop; `None` where it has none. Simulated and
    /// VFIO devices have no such handle.
    ///
    /// # Errors
    /// As [`UioIrq::try_clone`](crate::linux::device::UioIrq::try_clone).
    pub fn irq(&self) -> Result<Option<AnyIrq>, Error> {
        match &self.attachment {
            Attachment::Plain { irq: Some(irq), .. } => irq.second().map(Some),
            _ => Ok(None),
        }
    }
}

// SAFETY: 1. The registers of one device: a mapping's, VFIO's, or a model's. 2. `attached` gives
// them to one value at a time, and the open device holds the lock that keeps other programs away.
unsafe impl Mmio for AnyDevice {
    fn len_bytes(&self) -> usize {
        match &self.attachment {
            Attachment::Plain { registers, .. } => registers.len_bytes(),
            Attachment::Vfio(device) => device.len_bytes(),
            #[cfg(feature = "sim")]
            Attachment::Simulated(device) => device.len_bytes(),
        }
    }

    #[inline]
    fn read32(&self, offset: usize) -> u32 {
        match &self.attachment {
            Attachment::Plain { registers, .. } => registers.read32(offset),
            Attachment::Vfio(device) => device.read32(offset),
            #[cfg(feature = "sim")]
            Attachment::Simulated(device) => device.read32(offset),
        }
    }

    #[inline]
    unsafe fn write32(&self, offset: usize, value: u32) {
        // SAFETY: the caller's promise.
        unsafe {
            match &self.attachment {
                Attachment::Plain { registers, .. } => registers.write32(offset, value),
                Attachment::Vfio(device) => device.write32(offset, value),
                #[cfg(feature = "sim")]
                Attachment::Simulated(device) => device.write32(offset, value),
            }
        }
    }
}

impl Wait for AnyDevice {
    fn now_us(&self) -> u64 {
        match &self.attachment {
            #[cfg(feature = "sim")]
            Attachment::Simulated(device) => device.now_us(),
            _ => Spin.now_us(),
        }
    }

    fn wait_at_most(&self, timeout_us: u32) -> Result<(), Error> {
        let end_us = self.interrupts.map(|_| self.now_us().saturating_add(u64::from(timeout_us)));
        let waited = match &self.attachment {
            Attachment::Plain { irq: Some(irq), .. } => irq.wait_at_most(timeout_us),
            Attachment::Plain { irq: None, .. } => Spin.wait_at_most(timeout_us),
            Attachment::Vfio(device) => device.wait_at_most(timeout_us),
            #[cfg(feature = "sim")]
            Attachment::Simulated(device) => device.wait_at_most(timeout_us),
        };
        if let (Some(interrupts), Some(end_us)) = (self.interrupts, end_us)
            && self.now_us() < end_us
        {
            interrupts.fetch_add(1, Ordering::Relaxed);
        }
        waited
    }

    fn arm_irq(&self) -> Result<Option<i32>, Error> {
        match &self.attachment {
            Attachment::Plain { irq: Some(irq), .. } => irq.arm_irq(),
            Attachment::Vfio(device) => device.arm_irq(),
            _ => Ok(None),
        }
    }

    fn looks_before_clock(&self) -> u32 {
        match &self.attachment {
            Attachment::Plain { irq: None, .. } => Spin.looks_before_clock(),
            Attachment::Vfio(device) => device.looks_before_clock(),
            _ => 0,
        }
    }
}

// SAFETY: `OpenDevice::attach` gave it the port that the kernel or the simulated board reports, and
// `attach_wired`'s caller promised the others.
unsafe impl Device for AnyDevice {
    fn port(&self) -> &Port {
        &self.port
    }

    fn simulated(&self) -> Option<&dyn contigo_core::mem::SimulatedDevice> {
        match &self.attachment {
            #[cfg(feature = "sim")]
            Attachment::Simulated(device) => device.simulated(),
            _ => None,
        }
    }
}

impl fmt::Debug for AnyDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyDevice")
            .field("len_bytes", &self.len_bytes())
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}
