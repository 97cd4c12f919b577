//! Registers and interrupt of an opened device, as one driver gets them.

use contigo_core::hw::Wait;
use contigo_core::linux::Spin;
use contigo_core::linux::dev_node::DevNodeIrq;
use contigo_core::linux::device::{Registers, UioIrq};
use contigo_core::linux::vfio::VfioDevice;
use contigo_core::types::Error;
use contigo_core::types::platform::{AsFd, BorrowedFd};

/// How a driver takes a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attach {
    /// Which window of registers: a PCI function's BAR, or an entry of a contigo device's node's
    /// `reg`. Other devices have window 0.
    pub window: u8,
    /// Whether the driver waits for the interrupt, the first if there are several. Otherwise it
    /// polls, with no system call.
    pub interrupt: bool,
}

impl Default for Attach {
    /// The first window, with the interrupt.
    fn default() -> Self {
        Self { window: 0, interrupt: true }
    }
}

/// Registers of any kind.
pub(super) enum Attachment {
    /// With no interrupt the driver polls.
    Plain {
        registers: Registers,
        irq: Option<AnyIrq>,
    },
    Vfio(VfioDevice),
    #[cfg(feature = "sim")]
    Simulated(super::simulated::Simulated),
}

/// A handle on the interrupt of a UIO device, of a PCI function, or of a contigo device, for an
/// event loop beside a driver: [`AnyDevice::irq`](super::AnyDevice::irq). An interrupt that one
/// handle takes is gone for the other. It is `AsFd`: call
/// [`arm_irq`](Wait::arm_irq), then poll, then sleep.
#[derive(Debug)]
pub enum AnyIrq {
    /// Through `/dev/uioN`.
    Uio(UioIrq),
    /// Through the device node.
    DevNode(DevNodeIrq),
}

impl AnyIrq {
    /// How many interrupts this handle took.
    #[must_use]
    pub fn interrupts(&self) -> u64 {
        match self {
            Self::Uio(irq) => irq.interrupts(),
            Self::DevNode(irq) => irq.interrupts(),
        }
    }

    pub(super) fn second(&self) -> Result<Self, Error> {
        Ok(match self {
            Self::Uio(irq) => Self::Uio(irq.try_clone()?),
            Self::DevNode(irq) => Self::DevNode(irq.second()),
        })
    }
}

impl Wait for AnyIrq {
    fn now_us(&self) -> u64 {
        Spin.now_us()
    }

    fn wait_at_most(&self, timeout_us: u32) -> Result<(), Error> {
        match self {
            Self::Uio(irq) => irq.wait_at_most(timeout_us),
            Self::DevNode(irq) => irq.wait_at_most(timeout_us),
        }
    }

    fn arm_irq(&self) -> Result<Option<i32>, Error> {
        match self {
            Self::Uio(irq) => irq.arm_irq(),
            Self::DevNode(irq) => irq.arm_irq(),
        }
    }
}

impl AsFd for AnyIrq {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Uio(irq) => irq.as_fd(),
            Self::DevNode(irq) => irq.as_fd(),
        }
    }
}
