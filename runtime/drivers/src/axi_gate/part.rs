#![allow(unsafe_code, reason = "registers of a device, passed on")]
//! A part of a register window.

use contigo_core::forward;
use contigo_core::hw::{Device, Mmio, Siblings, Wait};
use contigo_core::mem::Port;
use contigo_core::types::Error;

/// A part of a device's registers as a device, for a core and its gate in one window.
#[derive(Debug)]
pub struct Part<'d, D> {
    device: &'d D,
    from: usize,
    len_bytes: usize,
}

impl<'d, D: Device> Part<'d, D> {
    /// The `len_bytes` bytes of `device` starting at `from`.
    ///
    /// # Errors
    /// [`Error::RegisterWindow`]: they are not inside.
    ///
    /// # Safety
    /// No other code writes registers of this part while this value lives.
    pub unsafe fn new(device: &'d D, from: usize, len_bytes: usize) -> Result<Self, Error> {
        let need_bytes = from.saturating_add(len_bytes);
        if !from.is_multiple_of(4) || need_bytes > device.len_bytes() {
            return Err(Error::RegisterWindow {
                device: "a part of a window",
                need_bytes,
                have_bytes: device.len_bytes(),
            });
        }
        Ok(Self { device, from, len_bytes })
    }

    /// Translates to an offset in the whole window; a register outside of the part has none.
    const fn at(&self, offset: usize) -> usize {
        if offset < self.len_bytes { self.from + offset } else { usize::MAX }
    }
}

// SAFETY: 1. the registers are the device's. 2. `new`'s caller promised it.
unsafe impl<D: Device> Mmio for Part<'_, D> {
    fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    fn read32(&self, offset: usize) -> u32 {
        self.device.read32(self.at(offset))
    }

    unsafe fn write32(&self, offset: usize, value: u32) {
        // SAFETY: the caller's promise.
        unsafe { self.device.write32(self.at(offset), value) }
    }
}

impl<D: Device> Wait for Part<'_, D> {
    forward!(|this| *this.device => now_us, wait_at_most, arm_irq, looks_before_clock);
}

// SAFETY: the port is the device's.
unsafe impl<D: Device> Device for Part<'_, D> {
    fn port(&self) -> &Port {
        self.device.port()
    }

    fn simulated(&self) -> Option<&dyn contigo_core::mem::SimulatedDevice> {
        self.device.simulated()
    }

    fn siblings(&self) -> Option<&Siblings> {
        self.device.siblings()
    }
}
