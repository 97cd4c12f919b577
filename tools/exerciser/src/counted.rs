#![allow(
    unsafe_code,
    reason = "a device behind a counter is the same device: its promises are passed on"
)]
//! How often a device's interrupt really came.

use contigo::{Device, Error, Mmio, Wait, forward};
use core::sync::atomic::{AtomicU64, Ordering};

/// A device that has an interrupt, and how many of its waits that ended: those that were over
/// before their time. (One without ends every wait early.) A driver that finds its job
/// done at the first look never waits, so this is the least number of interrupts, and 0 proves
/// nothing.
#[derive(Debug)]
pub struct Counted<'c, D> {
    device: D,
    interrupts: &'c AtomicU64,
}

impl<'c, D: Device> Counted<'c, D> {
    /// `device`, whose interrupts are counted in `interrupts` from now on.
    pub const fn new(device: D, interrupts: &'c AtomicU64) -> Self {
        Self { device, interrupts }
    }
}

// SAFETY: every access is the device's own; no other code has it.
unsafe impl<D: Device> Mmio for Counted<'_, D> {
    forward!(|this| this.device => len_bytes, read32, write32);
}

impl<D: Device> Wait for Counted<'_, D> {
    forward!(|this| this.device => now_us, looks_before_clock);
    fn wait_at_most(&self, timeout_us: u32) -> Result<(), Error> {
        let end_us = self.device.now_us().saturating_add(u64::from(timeout_us));
        self.device.wait_at_most(timeout_us)?;
        if self.device.now_us() < end_us {
            self.interrupts.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }
}

// SAFETY: the device's own port.
unsafe impl<D: Device> Device for Counted<'_, D> {
    forward!(|this| this.device => port, simulated);
}
