//! How a channel beside another is stopped, or one that has the core to itself.

use super::{
    at::At,
    channel::AxiDmaChannel,
    config::Side,
    fault, halt, regs,
    shared::{is_busy_beside, set_busy, status_beside},
};
use crate::{
    hw::{self, Device},
    types::Result,
};

impl<D: Device> AxiDmaChannel<D> {
    /// As [`Driver::stop`](crate::Driver::stop).
    pub(super) fn end(&mut self) -> Result<()> {
        let at = At { device: &self.device, base: self.lane.side.base() };
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
        let (busy, held, unsure) = (self.lane.is_busy(&at), self.is_held(), self.lane.may_be_busy(&at));
        let sibling_works = is_busy_beside(&self.device, self.lane.side);
        // RS=0 waits for the packet of a receive, which may never come.
        let at_once = busy && !sibling_works && self.lane.side == Side::S2mm;
        let halted = !at_once && halt::halt(&at, &self.lane.config)?;
        // A channel that did not halt was at work, and one that is held may have taken the
        // beginning of a packet for its next job. Before the reset, which may fail.
        if unsure || !halted || held {
            self.lane.cut();
        }
        if !halted || held || busy && !sibling_works {
            self.reset_core()?;
        }
        self.lane.stopped();
        self.epoch = self.device.reset_epoch();
        set_busy(&self.device, self.lane.side, false);
        Ok(())
    }

    /// Does the sibling's error keep this channel halted until a reset?
    fn is_held(&self) -> bool {
        let failed = || status_beside(&self.device, self.lane.side).is_some_and(fault::has_failed);
        self.lane.runs && halt::is_halted(regs::DMASR.read(&self.at())) && failed()
    }

    /// Resets the core, which ends the sibling's jobs.
    fn reset_core(&self) -> Result<()> {
        let (side, config) = (self.lane.side, &self.lane.config);
        hw::reset_all(&self.device, || halt::reset(&self.at(), side, config))
    }
}
