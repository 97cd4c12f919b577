#![allow(unsafe_code, reason = "a reset is a register")]
//! How a core is stopped: by its soft reset, which lets bursts that were begun end.

use super::{
    driver::{AxiCdma, Mode},
    regs,
};
use crate::{
    hw::{Device, wait::poll_every},
    job::{StopProgram, StopStep},
    types::{Error, Result},
};
use core::time::Duration;

/// Between two looks while it waits.
const STOP_STEP_US: u32 = 10;

/// Resets a core, and waits for the reset's end.
pub(super) fn reset(device: &impl Device, stop_us: u32) -> Result<()> {
    let mut status = 0;
    // SAFETY: the reset starts nothing.
    unsafe { regs::CDMACR.write(device, regs::RESET) };
    let over = poll_every(device, STOP_STEP_US, Duration::from_micros(stop_us.into()), |device| {
        status = regs::CDMACR.read(device);
        let resting = regs::CDMASR.read(device) & (regs::IDLE | regs::CDMASR_ZEROES) == regs::IDLE;
        resting && status & (regs::RESET | regs::CDMACR_ZEROES) == 0
    })?;
    if over { Ok(()) } else { Err(Error::WillNotStop { device: "axi_cdma", status, waited_us: stop_us }) }
}

impl<D: Device> AxiCdma<D> {
    /// Resets the core, and waits for the reset's end.
    pub(super) fn halt(&mut self) -> Result<()> {
        match &mut self.mode {
            // The reset clears what tells.
            Mode::Simple { at_work: Some(_), ended } => *ended |= regs::ended_well(regs::CDMASR.read(&self.device)),
            Mode::Simple { at_work: None, .. } => {}
            Mode::Sg(chain) => chain.resets(),
        }
        reset(&self.device, self.config.stop_us)?;
        self.runs = false;
        Ok(())
    }

    /// The reset, and its end by the same two registers.
    pub(super) fn program(&self) -> StopProgram {
        StopProgram::new(&[
            StopStep::write(regs::CDMACR.offset(), u32::MAX, regs::RESET),
            StopStep::poll_until(regs::CDMACR.offset(), regs::RESET | regs::CDMACR_ZEROES, 0, self.config.stop_us),
            StopStep::poll_until(regs::CDMASR.offset(), regs::IDLE | regs::CDMASR_ZEROES, regs::IDLE, self.config.stop_us),
        ])
        .unwrap_or_default()
    }
}
