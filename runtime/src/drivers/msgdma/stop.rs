#![allow(unsafe_code, reason = "stop and reset are bits of control registers")]
//! How the core is stopped: its masters at the end of the access under way, then the prefetcher,
//! then the dispatcher is reset, in the guide's order.

use super::{Msgdma, Way, regs, window::At};
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
        let (csr_at, waited_us) = (self.config.csr_at, self.config.stop_us.saturating_mul(3));
        let will_not = |status| Error::WillNotStop { device: "msgdma", status, waited_us };
        // SAFETY: a core that stops starts nothing.
        unsafe { regs::CONTROL.write(&At(&self.device, csr_at), regs::STOP | regs::STOP_DESCRIPTORS) };
        let stopped = self
            .wait_for(|device| regs::STATUS.read(&At(device, csr_at)), |status| status & (regs::STOPPED | regs::RESERVED) == regs::STOPPED);
        if let Some(at) = self.config.prefetcher_at {
            // SAFETY: as above.
            unsafe { regs::FETCH_CONTROL.write(&At(&self.device, at), regs::FETCH_RESET) };
            self.wait_for(
                |device| regs::FETCH_CONTROL.read(&At(device, at)),
                |status| status & (regs::RUN | regs::FETCH_RESET | regs::FETCH_RESERVED) == 0,
            )
            .map_err(will_not)?;
            // SAFETY: acknowledging moves no data.
            unsafe { regs::FETCH_STATUS.write(&At(&self.device, at), regs::FETCH_IRQ) };
        } else if let (Way::Slave(slave), Ok(())) = (&mut self.way, stopped) {
            slave.drain(&self.device);
        }
        // SAFETY: as above.
        unsafe { regs::CONTROL.write(&At(&self.device, csr_at), regs::RESET) };
        self.wait_for(
            |device| regs::STATUS.read(&At(device, csr_at)),
            |status| status & (regs::RESETTING | regs::BUSY | regs::EMPTY | regs::RESERVED) == regs::EMPTY,
        )
        .map_err(will_not)
    }

    /// The same as data. The polls are of registers with bits that the core never sets.
    pub(super) fn program(&self) -> StopProgram {
        let csr = |offset: usize| self.config.csr_at + offset;
        let mut steps: heapless::Vec<StopStep, 8> = heapless::Vec::new();
        let mut add = |step| steps.push(step).is_ok();
        add(StopStep::write(csr(regs::CONTROL.offset()), u32::MAX, regs::STOP | regs::STOP_DESCRIPTORS));
        if let Some(at) = self.config.prefetcher_at {
            let control = at + regs::FETCH_CONTROL.offset();
            add(StopStep::write(control, u32::MAX, regs::FETCH_RESET));
            add(StopStep::poll_until(control, regs::RUN | regs::FETCH_RESET | regs::FETCH_RESERVED, 0, PROGRAM_US));
        }
        add(StopStep::write(csr(regs::CONTROL.offset()), u32::MAX, regs::RESET));
        let idle = regs::RESETTING | regs::BUSY | regs::EMPTY | regs::RESERVED;
        add(StopStep::poll_until(csr(regs::STATUS.offset()), idle, regs::EMPTY, PROGRAM_US));
        StopProgram::new(&steps).unwrap_or_default()
    }
}
