#![allow(unsafe_code, reason = "jobs are passed on")]
//! A driver in whose bursts some jobs ring the doorbell, as jobs do that waited in a queue, and
//! whose doorbell is rung after some stops, when it starts nothing.

use contigo::mem::DevSlice;
use contigo::{Driver, Result, forward};
use fastrand::Rng;

/// Passes every third job of a burst or so to `submit`.
pub(super) struct Mixed<'d> {
    driver: &'d mut dyn Driver,
    rng: Rng,
}

impl<'d> Mixed<'d> {
    pub(super) const fn new(driver: &'d mut dyn Driver, rng: Rng) -> Self {
        Self { driver, rng }
    }
}

// SAFETY: the driver's methods; `submit` asks of its callers as much as `submit_more`.
unsafe impl Driver for Mixed<'_> {
    forward!(|this| this.driver => name, port, simulated, addr_bits, operands, depth, in_order,
        check, submit, doorbell, poll, stop_program, arm_irq, underruns);

    unsafe fn submit_more(&mut self, slot: usize, operands: &[DevSlice], w: &[u32]) -> Result<()> {
        if self.rng.u8(..3) == 0 {
            // SAFETY: the caller's promise.
            unsafe { self.driver.submit(slot, operands, w) }
        } else {
            // SAFETY: as above.
            unsafe { self.driver.submit_more(slot, operands, w) }
        }
    }

    fn stop(&mut self) -> Result<()> {
        self.driver.stop()?;
        if self.rng.bool() { self.driver.doorbell() } else { Ok(()) }
    }
}
