#![allow(unsafe_code, reason = "RS and Reset are registers")]
//! How a channel is stopped, alone or beside another, and the core reset.

use super::{
    channel::{AxiDmaChannel, Lane, Seen},
    config::{AxiDmaConfig, Side},
    driver::{is_busy_beside, set_busy, status_beside},
    regs,
};
use contigo_core::{
    hw::{self, Device, Mmio, Wait, wait::poll_every},
    job::{StopProgram, StopStep},
    types::{Error, Result},
};
use core::time::Duration;

/// Between two looks while it waits: no interrupt announces a stop.
const STOP_STEP_US: u32 = 1;

/// Clears RS and waits for the transfers under way: is the channel halted, and without an error?
/// One that waits for a packet halts when that has come, so the wait may be in vain.
///
/// # Errors
/// The interrupt's file failed: the channel had no time to halt.
pub(super) fn halt(at: &(impl Mmio + Wait), config: &AxiDmaConfig) -> Result<bool> {
    // SAFETY: a channel that does not run starts nothing.
    unsafe { regs::DMACR.write(at, 0) };
    let mut status = 0;
    let halted =
        poll_every(at, STOP_STEP_US, Duration::from_micros(config.stop_us.into()), |at| {
            status = regs::DMASR.read(at);
            regs::is_halted(status)
        })?;
    Ok(halted && status & regs::ERRORS == 0)
}

/// Resets the whole core by one channel's register, and waits until it is over. The transfers under
/// way end first: a reset is "accomplished gracefully" (PG021, DMACR.Reset).
///
/// # Errors
/// [`Error::WillNotStop`], or that of the interrupt's file.
pub(super) fn reset(at: &(impl Mmio + Wait), side: Side, config: &AxiDmaConfig) -> Result<()> {
    // SAFETY: a core that is reset starts nothing.
    unsafe { regs::DMACR.write(at, regs::RESET) };
    let mut control = 0;
    let over = poll_every(at, STOP_STEP_US, Duration::from_micros(config.stop_us.into()), |at| {
        control = regs::CONTROL.read(at);
        control & regs::RESET == 0 && regs::is_halted(regs::DMASR.read(at))
    })?;
    if over {
        Ok(())
    } else {
        Err(Error::WillNotStop {
            device: side.name(),
            status: control,
            waited_us: 2 * config.stop_us,
        })
    }
}

/// Asks the channels of `sides` to halt, and resets the core where one does not, by steps.
pub(super) fn program(sides: &[Side], config: &AxiDmaConfig) -> StopProgram {
    let (control, status, stop_us) = (regs::DMACR.offset(), regs::DMASR.offset(), config.stop_us);
    let bases = || sides.iter().map(|side| side.base());
    let halted = |base| {
        StopStep::poll_until(base + status, regs::HALTED | regs::RESERVED, regs::HALTED, stop_us)
    };
    let ask = bases().flat_map(|base| [StopStep::write(base + control, u32::MAX, 0), halted(base)]);
    let reset = bases().flat_map(|base| {
        let over = StopStep::poll_until(base + control, regs::RESET, 0, stop_us);
        [StopStep::write(base + control, u32::MAX, regs::RESET), over, halted(base)]
    });
    let program = StopProgram::of(ask).and_then(|ask| ask.or_else(&StopProgram::of(reset)?));
    program.unwrap_or_default()
}

impl Lane {
    /// The channel is about to be stopped: an end that only registers tell is kept.
    pub(super) fn keep_end(&mut self, at: &impl Mmio) {
        if self.ring.is_none() && self.runs && self.in_flight > 0 {
            self.ended = self.look(at).ok().flatten();
        }
    }

    /// Has it jobs that have not ended? All that it was given are done where it is idle.
    pub(super) fn is_busy(&self, at: &impl Mmio) -> bool {
        self.runs && self.in_flight > 0 && !regs::is_idle(regs::DMASR.read(at))
    }

    /// May a job be under way? The core says Idle late after a doorbell: it counts after a look
    /// that came behind the last one.
    pub(super) fn may_be_busy(&self, at: &impl Mmio) -> bool {
        self.is_busy(at)
            || self.runs && self.in_flight > 0 && !matches!(self.seen, Seen::Looked { .. })
    }

    /// The channel has stopped.
    pub(super) fn stopped(&mut self) {
        if self.runs && self.ring.is_none() {
            // Its end was kept, and `poll` returns it.
            self.in_flight = usize::from(self.ended.is_some());
        }
        self.runs = false;
    }

    /// Its jobs were stopped in the middle.
    pub(super) const fn cut(&mut self) {
        self.cut = matches!(self.side, Side::S2mm);
    }

    /// The sibling reset the core while this channel had no jobs. A receive may have taken the
    /// beginning of the next packet, which is gone then.
    pub(super) const fn was_reset(&mut self) {
        if self.runs {
            self.cut();
        }
        self.runs = false;
    }
}

impl<D: Device> AxiDmaChannel<D> {
    /// As [`Driver::stop`](contigo_core::Driver::stop).
    pub(super) fn end(&mut self) -> Result<()> {
        let at = self.lane.side.at(&self.device);
        if !self.was_reset() {
            self.lane.keep_end(&at);
        }
        if self.was_reset() {
            // The look may have come after the reset, where a register says Idle of nothing.
            self.lane.ended = None;
            if self.lane.runs {
                self.lane.cut();
            }
        }
        let (busy, held, unsure) =
            (self.lane.is_busy(&at), self.is_held(), self.lane.may_be_busy(&at));
        let sibling_works = is_busy_beside(&self.device, self.lane.side);
        // RS=0 waits for the packet of a receive, which may never come.
        let at_once = busy && !sibling_works && self.lane.side == Side::S2mm;
        let halted = !at_once && halt(&at, &self.lane.config)?;
        // A channel that did not halt was at work, and one that is held may have taken the
        // beginning of a packet for its next job. Before the reset, which may fail.
        if unsure || !halted || held {
            self.lane.cut();
        }
        if !halted || held || busy && !sibling_works {
            let (side, config) = (self.lane.side, &self.lane.config);
            hw::reset_all(&self.device, || reset(&self.at(), side, config))?;
        }
        self.lane.stopped();
        self.epoch = self.device.reset_epoch();
        set_busy(&self.device, self.lane.side, false);
        Ok(())
    }

    /// Does the sibling's error keep this channel halted until a reset?
    fn is_held(&self) -> bool {
        let failed = || status_beside(&self.device, self.lane.side).is_some_and(regs::has_failed);
        self.lane.runs && regs::is_halted(regs::DMASR.read(&self.at())) && failed()
    }
}
