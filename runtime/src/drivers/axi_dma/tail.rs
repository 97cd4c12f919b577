#![allow(unsafe_code, reason = "TAILDESC is a doorbell")]
//! TAILDESC of a channel ([`Tail`](crate::drivers::tail::Tail)).

use super::{
    lane::{Lane, halves, is_idle},
    regs,
};
use crate::{hw::Mmio, types::Result};

impl Lane {
    /// Makes `tail` the last descriptor.
    ///
    /// # Safety
    /// The descriptors up to it name operands that were handed over.
    pub(super) unsafe fn write_tail(&mut self, at: &impl Mmio, tail: u64) {
        let (low, high) = halves(tail);
        let is_wide = self.config.address_bits > 32;
        // SAFETY: the caller's promise. The core pauses where it has no jobs.
        unsafe {
            regs::TAILDESC.write(at, low);
            if self.tail.give(is_wide, self.in_flight == 0) && is_wide {
                regs::TAILDESC_HIGH.write(at, high);
            }
        }
    }

    /// Rings where the core pauses before the oldest job.
    pub(super) fn resume(&mut self, at: &impl Mmio) -> Result<()> {
        if !self.may_pause() || !is_idle(regs::DMASR.read(at)) {
            return Ok(());
        }
        let Some(ring) = &mut self.ring else { return Ok(()) };
        let mut status = [0];
        self.looks += 1;
        ring.read(self.first, regs::STATUS_AT, &mut status)?;
        if status[0] & regs::COMPLETE == 0 {
            self.tail.rung();
            self.idle = false;
            let (_, high) = halves(ring.addr(self.first));
            // SAFETY: the core is idle, and the oldest job's descriptor is open: it was not
            // fetched. Those from it to the tail name operands that were handed over.
            unsafe { regs::TAILDESC_HIGH.write(at, high) };
        }
        Ok(())
    }

    const fn may_pause(&self) -> bool {
        self.tail.may_pause() && self.in_flight > 0 && self.runs
    }

    /// The longest wait without a look.
    pub(super) const fn step_us(&self) -> u32 {
        if self.may_pause() { self.tail.step_us() } else { u32::MAX }
    }
}
