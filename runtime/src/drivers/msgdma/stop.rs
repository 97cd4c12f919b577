#![allow(unsafe_code, reason = "stop and reset are bits of control registers")]
//! How the core is stopped: its masters at the end of the access under way, then the prefetcher,
//! then the dispatcher is reset, in the guide's order.
//!
//! A prefetcher that waits for room in the dispatcher's FIFO does not see its own reset
//! (`altera_msgdma_prefetcher_read.v`, `WR_WAIT`), and a dispatcher that was stopped makes no room.
//! That is so where the core's FIFO is shallower than the setting `depth`. A reset of the
//! dispatcher makes room. The descriptor that comes then may begin, so that the dispatcher is
//! stopped and reset once more.

use super::{
    driver::{Msgdma, Way},
    regs,
    window::At,
};
use crate::{
    hw::{Device, wait::poll_every},
    job::{StopProgram, StopStep},
    types::{Error, Result},
};
use core::time::Duration;

/// Between two looks while it waits: no interrupt announces the end of a stop.
const STOP_STEP_US: u32 = 5;
/// How long each wait of the kernel's program is, where this program is gone.
const PROGRAM_US: u32 = 200_000;

impl<D: Device> Msgdma<'_, D> {
    /// Waits for `done`, at most for the limit. The error is the register's last word.
    fn wait_for(&self, mut register: impl FnMut(&D) -> u32, done: impl Fn(u32) -> bool) -> Result<(), u32> {
        let (mut status, mut met) = (0, false);
        // An interrupt's file that fails only ends the waiting: what counts is the register.
        let _ = poll_every(&self.device, STOP_STEP_US, Duration::from_micros(self.config.stop_us.into()), |device| {
            status = register(device);
            met = done(status);
            met
        });
        if met { Ok(()) } else { Err(status) }
    }

    /// Stops and resets the core. Between the two, ends are kept that a reset would clear.
    pub(super) fn halt(&mut self) -> Result<()> {
        // The dispatcher's stop, the prefetcher's, and a reset: two times at most.
        let waited_us = self.config.stop_us.saturating_mul(6);
        let will_not = |status| Error::WillNotStop { device: "msgdma", status, waited_us };
        let stopped = self.stop_dispatcher();
        if let Some(at) = self.config.prefetcher_at {
            // SAFETY: a core that stops starts nothing.
            unsafe { regs::FETCH_CONTROL.write(&At(&self.device, at), regs::FETCH_RESET) };
            if self.prefetcher_stops(at).is_err() {
                // It may wait for room.
                self.reset_dispatcher(0).map_err(will_not)?;
                let _ = self.stop_dispatcher();
                self.prefetcher_stops(at).map_err(will_not)?;
            }
            // SAFETY: acknowledging moves no data.
            unsafe { regs::FETCH_STATUS.write(&At(&self.device, at), regs::FETCH_IRQ) };
        } else if let (Way::Slave(slave), Ok(())) = (&mut self.way, stopped) {
            slave.drain(&self.device);
        }
        self.reset_dispatcher(regs::EMPTY).map_err(will_not)
    }

    /// Lets no descriptor begin, and stops the masters.
    fn stop_dispatcher(&self) -> Result<(), u32> {
        let csr_at = self.config.csr_at;
        // SAFETY: a core that stops starts nothing.
        unsafe { regs::CONTROL.write(&At(&self.device, csr_at), regs::STOP | regs::STOP_DESCRIPTORS) };
        let (bits, stopped) = (regs::STOPPED | regs::RESERVED, regs::STOPPED);
        self.wait_for(|device| regs::STATUS.read(&At(device, csr_at)), |status| status & bits == stopped)
    }

    fn prefetcher_stops(&self, at: usize) -> Result<(), u32> {
        let bits = regs::RUN | regs::FETCH_RESET | regs::FETCH_RESERVED;
        self.wait_for(|device| regs::FETCH_CONTROL.read(&At(device, at)), |status| status & bits == 0)
    }

    /// Resets the dispatcher and the masters. `empty`: it must be idle then, with this bit.
    fn reset_dispatcher(&self, empty: u32) -> Result<(), u32> {
        let csr_at = self.config.csr_at;
        // SAFETY: a core that is reset starts nothing.
        unsafe { regs::CONTROL.write(&At(&self.device, csr_at), regs::RESET) };
        let bits = regs::RESETTING | regs::RESERVED | if empty == 0 { 0 } else { regs::BUSY | empty };
        self.wait_for(|device| regs::STATUS.read(&At(device, csr_at)), |status| status & bits == empty)
    }

    /// The same as data. The polls are of registers with bits that the core never sets.
    pub(super) fn program(&self) -> StopProgram {
        let (control, status) = (self.config.csr_at + regs::CONTROL.offset(), self.config.csr_at + regs::STATUS.offset());
        let ask = StopStep::write(control, u32::MAX, regs::STOP | regs::STOP_DESCRIPTORS);
        let reset = StopStep::write(control, u32::MAX, regs::RESET);
        let idle = regs::RESETTING | regs::BUSY | regs::EMPTY | regs::RESERVED;
        let over = StopStep::poll_until(status, idle, regs::EMPTY, PROGRAM_US);
        let Some(at) = self.config.prefetcher_at else {
            return StopProgram::new(&[ask, reset, over]).unwrap_or_default();
        };
        let fetch = at + regs::FETCH_CONTROL.offset();
        let fetch_reset = StopStep::write(fetch, u32::MAX, regs::FETCH_RESET);
        let fetch_over = StopStep::poll_until(fetch, regs::RUN | regs::FETCH_RESET | regs::FETCH_RESERVED, 0, PROGRAM_US);
        let room = StopStep::poll_until(status, regs::RESETTING | regs::RESERVED, 0, PROGRAM_US);
        let first = StopProgram::new(&[ask, fetch_reset, fetch_over, reset, over]);
        let second = StopProgram::new(&[reset, room, ask, fetch_over, reset, over]);
        first.and_then(|first| first.or_else(&second?)).unwrap_or_default()
    }
}
