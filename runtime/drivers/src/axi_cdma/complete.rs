#![allow(
    unsafe_code,
    reason = "interrupts are acknowledged, a core that pauses is rung, and a reset is a register"
)]
//! Detects a job's end, in registers or in descriptors; and stops a core by its soft reset, which
//! lets started bursts end.

use super::descriptors::{Chain, Look};
use super::regs;
use crate::checks::stops;
use contigo_core::hw::Device;
use contigo_core::hw::wait::{poll_every, poll_until};
use contigo_core::job::Completion;
use contigo_core::types::{Error, Result};
use core::time::Duration;

/// So many reads of a register, 100 ns and more each, outlast the answer to a descriptor's write.
const LATE_READS: u32 = 4;
/// The time between polls for a reset's end.
const STOP_STEP_US: u32 = 10;

/// The one job of simple mode.
#[derive(Debug)]
pub(super) enum Simple {
    /// The core was reset: the next job writes CDMACR first.
    Reset,
    /// There is no job.
    Idle,
    /// A job that reads `from`. `ended`: it ended before a reset that did not finish.
    Running { from: u64, ended: bool },
    /// The core was reset during a job. `ended`: the job ended before, and was not reported.
    Stopped { ended: bool },
}

impl Simple {
    /// Records a new job, and returns whether to write CDMACR.
    pub(super) const fn give(&mut self, from: u64) -> bool {
        let starts = matches!(self, Self::Reset | Self::Stopped { .. });
        *self = Self::Running { from, ended: false };
        starts
    }

    /// The core will be reset, which clears the signs of an end.
    pub(super) fn resets(&mut self, device: &impl Device) {
        if let Self::Running { ended, .. } | Self::Stopped { ended } = self {
            *ended |= regs::ended_well(regs::CDMASR.read(device));
        }
    }

    pub(super) const fn was_reset(&mut self) {
        *self = match *self {
            Self::Running { ended, .. } | Self::Stopped { ended } => Self::Stopped { ended },
            Self::Idle | Self::Reset => Self::Reset,
        };
    }

    /// Whether the job has ended; after a reset, whether it had ended before.
    pub(super) fn look(
        &mut self,
        device: &impl Device,
        timeout: Duration,
    ) -> Result<Option<Completion>> {
        let from = match *self {
            Self::Reset | Self::Idle => return Ok(None),
            Self::Running { from, .. } => from,
            Self::Stopped { ended } => {
                *self = Self::Reset;
                return Ok(ended.then_some(Completion::of(0)));
            }
        };
        let (mut status, mut ended) = (0, false);
        poll_until(device, timeout, |device| {
            status = regs::CDMASR.read(device);
            ended = regs::ended_well(status);
            ended || status == u32::MAX || status & regs::ERRORS != 0
        })?;
        if ended {
            // SAFETY: acknowledging moves no data.
            unsafe { regs::CDMASR.write(device, status & regs::IRQS) };
            *self = Self::Idle;
            return Ok(Some(Completion::of(0)));
        }
        if status == u32::MAX || status & regs::ERRORS != 0 {
            return Err(fault(status, from));
        }
        Ok(None)
    }
}

/// Whether the oldest job of a chain has ended; after a reset, whether it had ended before.
pub(super) fn look_at_chain(
    device: &impl Device,
    chain: &mut Chain,
    timeout: Duration,
) -> Result<Option<Completion>> {
    if chain.is_empty() {
        return Ok(None);
    }
    if !chain.is_running() {
        return Ok(chain.tell_ended().map(Completion::of));
    }
    if let Some(end) = look_again_at_chain(device, chain)? {
        return Ok(Some(end));
    }
    let mut found = Ok(None);
    // No interrupt signals that the core pauses with jobs left.
    poll_every(device, chain.tail.step_us(), timeout, |device| {
        found = look_at_registers(device, chain);
        !matches!(found, Ok(None))
    })?;
    found
}

/// The end of the oldest job of a running chain, if its descriptor shows it before any register.
pub(super) fn look_again_at_chain(
    device: &impl Device,
    chain: &mut Chain,
) -> Result<Option<Completion>> {
    if chain.is_empty() || !chain.is_running() {
        return Ok(None);
    }
    let Some(slot) = chain.look_first()? else { return Ok(None) };
    acknowledge_last(device, chain);
    Ok(Some(Completion::of(slot)))
}

/// As `look_at_chain`, once, for a chain whose descriptors showed nothing, or were not polled.
fn look_at_registers(device: &impl Device, chain: &mut Chain) -> Result<Option<Completion>> {
    let status = regs::CDMASR.read(device);
    if status == u32::MAX {
        return Err(fault(status, chain.first_addr()));
    }
    if status & regs::IRQS != 0 {
        // Before the descriptor is read: a later end raises it again.
        // SAFETY: acknowledging moves no data.
        unsafe { regs::CDMASR.write(device, status & regs::IRQS) };
    }
    let (is_its_own, was_known) = chain.acknowledged();
    let (failed, is_idle) = (status & regs::ERRORS != 0, status & regs::IDLE != 0);
    if is_idle {
        chain.knows(chain.rung());
    } else if !failed {
        let steps = chain.steps_to(regs::CURDESC_LOW.read(device));
        if steps == Some(0) {
            chain.tail.goes_on();
            return Ok(None);
        }
        chain.knows(steps.unwrap_or(0));
    }
    match chain.look()? {
        Look::Complete => {
            let slot = chain.tell();
            // A core may be idle before the descriptor's write, after which the interrupt comes.
            let is_over = is_idle && (was_known || is_its_own && status & regs::IOC != 0);
            if !is_over {
                acknowledge_last(device, chain);
            }
            return Ok(Some(Completion::of(slot)));
        }
        Look::Failed => {
            return Err(fault_at(device, regs::CDMASR.read(device), chain.reads_from()));
        }
        // The jobs before the error were reported.
        Look::Nothing if failed => return Err(fault_at(device, status, chain.reads_from())),
        Look::Nothing => chain.knows(0),
    }
    let pauses = is_idle && chain.tail.may_pause() && chain.rung() > 0;
    if pauses && chain.is_before_oldest(regs::CURDESC_LOW.read(device)) {
        chain.tail.rung();
        // SAFETY: the core pauses before the oldest job, whose descriptor is open and whose
        // doorbell was rung. Those up to the tail name bytes of jobs in flight.
        unsafe { regs::TAILDESC_HIGH.write(device, chain.upper_half()) };
    }
    // Or CURDESC advanced before the status was written.
    Ok(None)
}

/// Acknowledges the interrupts of ends after the last one, where no poll follows. The last one's
/// may have come after those that were acknowledged, or come now: the core raises it once the
/// descriptor's write was answered. An error's stays.
fn acknowledge_last(device: &impl Device, chain: &Chain) {
    if !chain.is_empty() {
        return;
    }
    for _ in 0..LATE_READS {
        let ends = regs::CDMASR.read(device) & (regs::IOC | regs::DELAY);
        if ends != 0 {
            // SAFETY: acknowledging moves no data.
            unsafe { regs::CDMASR.write(device, ends) };
            return;
        }
    }
}

/// The fault of a job: with the descriptor if its fetch failed, else with the read address.
fn fault_at(device: &impl Device, status: u32, from: u64) -> Error {
    let addr = if status & regs::SG_ERRORS != 0 {
        u64::from(regs::CURDESC_HIGH.read(device)) << 32 | u64::from(regs::CURDESC_LOW.read(device))
    } else {
        from
    };
    fault(status, addr)
}

const fn fault(status: u32, addr: u64) -> Error {
    Error::FaultAt { device: "axi_cdma", status, what: regs::describe(status), addr }
}

/// Resets a core, and waits for the reset's end.
pub(super) fn reset(device: &impl Device, stop_us: u32) -> Result<()> {
    // SAFETY: the reset starts nothing.
    unsafe { regs::CDMACR.write(device, regs::RESET) };
    stops(device, "axi_cdma", STOP_STEP_US, stop_us, |device| {
        let control = regs::CDMACR.read(device);
        let resting = regs::CDMASR.read(device) & (regs::IDLE | regs::CDMASR_ZEROES) == regs::IDLE;
        (resting && control & (regs::RESET | regs::CDMACR_ZEROES) == 0, control)
    })
}
