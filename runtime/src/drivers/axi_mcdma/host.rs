#![allow(unsafe_code, reason = "registers and a port are promises, which the device keeps")]
//! The device as a channel's driver has it: one of several, or alone.

use crate::{
    hw::{Device, Mmio, Wait},
    job::CoreChannel,
    types::{Result, forward::forward},
};
use core::fmt;

/// Access to the registers that all channels share, for a channel's driver.
pub trait Host: Device {
    /// The device as all of its channels have it.
    type Whole: Device;

    /// Does something with registers that channels share, while no other channel does.
    ///
    /// # Errors
    /// [`Error::Contended`](crate::Error::Contended), or what `act` says.
    fn locked<R>(&self, act: impl FnOnce(&Self::Whole) -> Result<R>) -> Result<R>;

    /// Does what ends every channel's jobs.
    ///
    /// # Errors
    /// As [`locked`](Self::locked).
    fn reset<R>(&self, act: impl FnOnce(&Self::Whole) -> Result<R>) -> Result<R>;
}

impl<D: Device> Host for CoreChannel<'_, D> {
    type Whole = D;

    fn locked<R>(&self, act: impl FnOnce(&D) -> Result<R>) -> Result<R> {
        let whole = self.lock()?;
        act(&whole)
    }

    fn reset<R>(&self, act: impl FnOnce(&D) -> Result<R>) -> Result<R> {
        self.core().reset(act)
    }
}

/// A device that one driver has to itself.
pub struct Alone<D>(pub(super) D);

// SAFETY: every access is the device's own, and nobody else has it.
unsafe impl<D: Device> Mmio for Alone<D> {
    forward!(|this| this.0 => len_bytes, read32, write32);
}

impl<D: Device> Wait for Alone<D> {
    forward!(|this| this.0 => now_us, wait_at_most, arm_irq, looks_before_clock);
}

// SAFETY: the port is the device's.
unsafe impl<D: Device> Device for Alone<D> {
    forward!(|this| this.0 => port, reset_epoch, simulated);
}

impl<D: Device> Host for Alone<D> {
    type Whole = D;

    fn locked<R>(&self, act: impl FnOnce(&D) -> Result<R>) -> Result<R> {
        act(&self.0)
    }

    fn reset<R>(&self, act: impl FnOnce(&D) -> Result<R>) -> Result<R> {
        act(&self.0)
    }
}

impl<D: fmt::Debug> fmt::Debug for Alone<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
