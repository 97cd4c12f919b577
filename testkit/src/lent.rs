#![allow(unsafe_code, reason = "registers are passed on")]
//! Windows for a driver that owns its device: one that a test keeps, to look at registers
//! meanwhile, and one of a program that loses the processor.

use contigo::{
    Device, Mmio, Result, Wait, forward,
    sim::{Model, SimDevice, SimWindow},
};
use std::cell::Cell;

/// The registers of `window`, for a driver that owns its device.
#[derive(Debug)]
pub struct Lent<'w, D> {
    window: &'w D,
    at: usize,
    bits: u32,
}

impl<'w, D> Lent<'w, D> {
    /// The window as it is.
    #[must_use]
    pub const fn new(window: &'w D) -> Self {
        Self::with_bits(window, 0, 0)
    }

    /// The same, where the register at byte `at` always has these bits too.
    #[must_use]
    pub const fn with_bits(window: &'w D, at: usize, bits: u32) -> Self {
        Self { window, at, bits }
    }
}

// SAFETY: the window's registers, one of which says more.
unsafe impl<D: Mmio> Mmio for Lent<'_, D> {
    forward!(|this| *this.window => len_bytes, write32);

    fn read32(&self, offset: usize) -> u32 {
        self.window.read32(offset) | if offset == self.at { self.bits } else { 0 }
    }
}

impl<D: Wait> Wait for Lent<'_, D> {
    forward!(|this| *this.window => now_us, wait_at_most, arm_irq, looks_before_clock);
}

// SAFETY: the window's port and epoch.
unsafe impl<D: Device> Device for Lent<'_, D> {
    forward!(|this| *this.window => port, reset_epoch, simulated);
}

/// A program that loses the processor for a while after every fourth write of one register.
#[derive(Debug)]
pub struct Preempted<'d, 'b, M: Model> {
    window: SimWindow<'d, M>,
    device: &'d SimDevice<'b, M>,
    after: usize,
    for_us: u32,
    writes: Cell<u32>,
}

impl<'d, 'b, M: Model> Preempted<'d, 'b, M> {
    /// The window of `device`, and so many microseconds after a write at byte `after`.
    ///
    /// # Errors
    /// As [`SimDevice::window`].
    pub fn new(device: &'d SimDevice<'b, M>, after: usize, for_us: u32) -> Result<Self> {
        Ok(Self { window: device.window()?, device, after, for_us, writes: Cell::new(0) })
    }
}

// SAFETY: the window's registers.
unsafe impl<M: Model> Mmio for Preempted<'_, '_, M> {
    forward!(|this| this.window => len_bytes, read32);

    unsafe fn write32(&self, offset: usize, value: u32) {
        // SAFETY: the caller's promise.
        unsafe { self.window.write32(offset, value) };
        if offset == self.after {
            self.writes.set(self.writes.get() + 1);
            if self.writes.get().is_multiple_of(4) {
                // A device that does not advance is found by its driver.
                let _ = self.device.run_for(self.for_us);
            }
        }
    }
}

impl<M: Model> Wait for Preempted<'_, '_, M> {
    forward!(|this| this.window => now_us, wait_at_most);
}

// SAFETY: as the window.
unsafe impl<M: Model> Device for Preempted<'_, '_, M> {
    forward!(|this| this.window => port, simulated);
}
