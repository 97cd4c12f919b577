#![allow(unsafe_code, reason = "TAILDESC is a doorbell")]
//! TAILDESC in two halves: how a running core with wide addresses is given more descriptors, and
//! never goes past the last one.
//!
//! With 32 address bits one write is all, and it may come at any time. With more, the lower half
//! counts from its own write on, and only the write of the upper half is the doorbell
//! (`axi_dma_register.vhd`: `TAILDESC_LSB_REGISTER`, `GEN_TAILUPDATE_EQL64`). The core compares its
//! tail with each descriptor when it fetches that, and pauses behind an equal one until a doorbell
//! (`axi_sg_ftch_pntr.vhd`: `COMPARE_ADDRESS`). So between two writes to a core at work it may
//! reach the new tail, and the doorbell then sends it past.
//!
//! Both halves are therefore written only while the core pauses: before its first job, where every
//! job has ended, or where Idle says so. While it works the lower half alone is written. A core
//! that sees it in time goes on without a pause; one that fetched the old tail before pauses there,
//! and [`Lane::resume`] rings. The upper half is one and the same for all descriptors.

use super::{
    lane::{Lane, halves, is_idle},
    regs,
};
use crate::{hw::Mmio, types::Result};

/// While the core may pause with work left, no interrupt tells of it: so often it is looked at.
const STEP_US: u32 = 20;

/// How TAILDESC was written last.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tail {
    /// The lower half was written since the last doorbell: the core may not have seen it.
    owed: bool,
    /// A job ended since the doorbell. Before, Idle may be that of the time before it.
    pub(super) moved: bool,
    /// The core is at the oldest job.
    pub(super) goes_on: bool,
}

impl Lane<'_> {
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
            if is_wide && self.in_flight == 0 {
                regs::TAILDESC_HIGH.write(at, high);
            }
        }
        self.tail.owed = is_wide && self.in_flight > 0;
        if self.in_flight == 0 {
            (self.tail.moved, self.tail.goes_on) = (false, false);
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
            self.tail = Tail::default();
            let (_, high) = halves(ring.addr(self.first));
            // SAFETY: the core is idle, and the oldest job's descriptor is open: it was not
            // fetched. Those from it to the tail name operands that were handed over.
            unsafe { regs::TAILDESC_HIGH.write(at, high) };
        }
        Ok(())
    }

    /// May the core pause with jobs left? It is at work until the first job after a doorbell ends,
    /// and while it is at the oldest one.
    const fn may_pause(&self) -> bool {
        self.tail.owed && self.tail.moved && !self.tail.goes_on && self.in_flight > 0 && self.runs
    }

    /// The longest wait without a look.
    pub(super) const fn step_us(&self) -> u32 {
        if self.may_pause() { STEP_US } else { u32::MAX }
    }
}
