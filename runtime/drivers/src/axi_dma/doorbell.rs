#![allow(unsafe_code, reason = "a doorbell starts transfers")]
//! The doorbell of a channel with descriptors: when it is rung, whether the channel was dry by
//! then, and when the core pauses before it.

use super::lane::{Lane, Owed, Seen};
use super::regs;
use crate::checks::{high, low};
use contigo_core::hw::Mmio;
use contigo_core::types::Result;

impl Lane {
    /// Rings the doorbell that is owed, if the channel was not stopped since. Counts an underrun
    /// here: until now the channel had none of the new descriptors.
    #[inline]
    pub(super) fn doorbell(&mut self, at: &impl Mmio) {
        let Some(Owed { tail, before, is_free }) = self.owed.take().filter(|_| self.runs) else {
            return;
        };
        self.underruns += u64::from(before.is_some_and(|before| self.is_dry(at, before, is_free)));
        if let Seen::Looked { .. } = self.seen {
            self.seen = Seen::Nothing;
        }
        // SAFETY: the descriptors up to the tail name operands of jobs in flight, or of the one
        // that is being submitted.
        unsafe { self.write_tail(at, tail, is_free) };
    }

    /// Returns whether the descriptor at `index` is done.
    #[inline]
    pub(super) fn is_done(&mut self, index: usize) -> bool {
        let Some(ring) = &mut self.ring else { return false };
        let mut status = [0];
        self.looks += 1;
        ring.read(index, regs::STATUS_AT, &mut status).is_ok() && status[0] & regs::COMPLETE != 0
    }

    /// Returns whether a running channel has no descriptor left: it had no job (`is_free`), or
    /// `last` is done. It may have used that one since a poll. So that one is polled, on a port
    /// that snoops. On others DMASR is read here unless a poll showed that, and the next poll saves
    /// one read. An Idle right after the last doorbell is not believed: the core reports it late.
    #[inline]
    fn is_dry(&mut self, at: &impl Mmio, last: usize, is_free: bool) -> bool {
        let before = core::mem::take(&mut self.seen);
        if matches!(before, Seen::Looked { idle: true }) || is_free {
            return true;
        }
        if self.is_coherent() {
            // Its status is written before the channel is idle, and a descriptor that comes between
            // is in time.
            return self.is_done(last) && regs::is_idle(regs::DMASR.read(at));
        }
        let status = regs::DMASR.read(at);
        if status & regs::TOLD != 0 {
            self.seen = Seen::Told(status);
        }
        matches!(before, Seen::Looked { .. }) && regs::is_idle(status)
    }

    /// Makes `tail` the last descriptor, of a channel that has other jobs or `is_free`.
    ///
    /// # Safety
    /// The descriptors up to it name operands that were handed over.
    #[inline]
    unsafe fn write_tail(&mut self, at: &impl Mmio, tail: u64, is_free: bool) {
        let is_wide = self.config.address_bits > 32;
        // SAFETY: the caller's promise. The core pauses if it has no jobs.
        unsafe {
            regs::TAILDESC.write(at, low(tail));
            if self.tail.give(is_wide, is_free) && is_wide {
                regs::TAILDESC_HIGH.write(at, high(tail));
            }
        }
    }

    /// Rings the doorbell if the core, which [may pause](Self::may_pause), does so before the
    /// oldest job.
    #[cold]
    pub(super) fn resume(&mut self, at: &impl Mmio) -> Result<()> {
        if !regs::is_idle(regs::DMASR.read(at)) {
            return Ok(());
        }
        let Some(ring) = &mut self.ring else { return Ok(()) };
        let mut status = [0];
        self.looks += 1;
        ring.read(self.first, regs::STATUS_AT, &mut status)?;
        if status[0] & regs::COMPLETE == 0 {
            self.tail.rung();
            if let Seen::Looked { idle } = &mut self.seen {
                *idle = false;
            }
            let upper = high(ring.addr(self.first));
            // SAFETY: the core is idle, and the oldest job's descriptor is open: it was not
            // fetched. Those from it to the tail name operands that were handed over.
            unsafe { regs::TAILDESC_HIGH.write(at, upper) };
        }
        Ok(())
    }

    /// Returns whether the core may pause with jobs left whose doorbell was rung.
    #[inline]
    pub(super) const fn may_pause(&self) -> bool {
        self.tail.may_pause() && self.in_flight > 0 && self.runs && self.owed.is_none()
    }

    /// The longest wait without a poll.
    pub(super) const fn step_us(&self) -> u32 {
        if self.may_pause() { self.tail.step_us() } else { u32::MAX }
    }
}
