#![allow(unsafe_code, reason = "registers are passed on")]
//! The registers of one channel, in the window of both.

use super::config::Side;
use contigo_core::{
    forward,
    hw::{Mmio, Wait},
    types::Result,
};

/// One channel's registers: those of the core from byte `base` on, and its clock.
#[derive(Debug)]
pub(super) struct At<'d, D> {
    device: &'d D,
    base: usize,
}

impl Side {
    /// Its registers in the window of `device`.
    pub(super) const fn at<D>(self, device: &D) -> At<'_, D> {
        At { device, base: self.base() }
    }
}

// SAFETY: the device's registers, of one channel, whose driver makes this for one call.
unsafe impl<D: Mmio> Mmio for At<'_, D> {
    fn len_bytes(&self) -> usize {
        self.device.len_bytes().saturating_sub(self.base)
    }

    #[inline]
    fn read32(&self, offset: usize) -> u32 {
        self.device.read32(self.base + offset)
    }

    #[inline]
    unsafe fn write32(&self, offset: usize, value: u32) {
        // SAFETY: the caller's promise.
        unsafe { self.device.write32(self.base + offset, value) }
    }
}

impl<D: Wait> Wait for At<'_, D> {
    forward!(|this| *this.device => now_us, looks_before_clock);

    fn wait_at_most(&self, timeout_us: u32) -> Result<()> {
        self.device.wait_at_most(timeout_us)
    }
}
