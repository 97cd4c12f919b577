//! An interrupt that is waited for outside of the engine, as an event loop does.

use contigo::{
    Error, Result,
    hw::poll_until,
    names::{AnyDevice, AnyIrq},
};
use core::{fmt, time::Duration};

/// An interrupt line that a run waits for before it looks at the engine. An engine that is done at
/// the first look, as QEMU's are that copy inside the doorbell's register access, would never be
/// waited for otherwise.
pub trait Events: fmt::Debug {
    /// Makes ready for the interrupt of the next job; earlier interrupts are forgotten.
    ///
    /// # Errors
    /// An error of the interrupt's file.
    fn arm(&self) -> Result<()>;

    /// Waits until the interrupt has come, at most for `timeout`.
    ///
    /// # Errors
    /// [`Error::Timeout`], or an error of the interrupt's file.
    fn wait(&self, timeout: Duration) -> Result<()>;
}

/// The interrupt of a real device, by a second handle.
#[derive(Debug)]
pub struct IrqEvents(AnyIrq);

impl IrqEvents {
    /// Of a device that has one.
    ///
    /// # Errors
    /// [`Error::Os`] where no descriptor is left.
    pub fn of(device: &AnyDevice) -> Result<Option<Self>> {
        Ok(device.irq()?.map(Self))
    }

    /// How many interrupts came: by a wait, or before one.
    pub fn came(&self) -> u64 {
        self.0.interrupts()
    }
}

impl Events for IrqEvents {
    fn arm(&self) -> Result<()> {
        self.0.arm()
    }

    fn wait(&self, timeout: Duration) -> Result<()> {
        let before = self.came();
        match poll_until(&self.0, timeout, |irq| irq.interrupts() > before)? {
            true => Ok(()),
            false => Err(Error::Timeout { timeout_us: contigo::types::timeout_us(timeout)? }),
        }
    }
}
