//! A tail in two halves: how a running core with wide addresses is given more descriptors, and
//! never goes past the last one. AMD's AXI DMA and AXI CDMA have one engine for descriptors
//! (`axi_sg`), and the driver of AXI MCDMA takes its engine for the same.
//!
//! With 32 address bits one write is all, and it may come at any time. With more, the lower half
//! counts from its own write on, and only the write of the upper half is the doorbell
//! (`axi_dma_register.vhd` and `axi_cdma_register.vhd`: `TAILDESC_LSB_REGISTER`,
//! `GEN_TAILUPDATE_EQL64`). The core compares its tail with each descriptor when it fetches that,
//! and pauses behind an equal one until a doorbell (`axi_sg_ftch_pntr.vhd`: `COMPARE_ADDRESS`). So
//! between two writes to a core at work it may reach the new tail, and the doorbell then sends it
//! past.
//!
//! Both halves are therefore written only while the core pauses: before its first job, where every
//! job has ended, or where Idle is set. While it works the lower half alone is written. A core
//! that sees it in time goes on without a pause. One that fetched the old tail before pauses there,
//! and its driver rings. The upper half is one and the same for all descriptors.

/// While the core may pause with work left, no interrupt tells of it: so often it is looked at.
const STEP_US: u32 = 20;

/// How the tail was written last.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tail {
    /// The lower half was written since the last doorbell: the core may not have seen it.
    owed: bool,
    /// A job ended since the doorbell. Before, Idle may be that of the time before it.
    moved: bool,
    /// The core is at the oldest job.
    goes_on: bool,
}

impl Tail {
    /// A job is given to a core that has others or `is_free`, and both halves are written where
    /// this returns `true`.
    pub(super) const fn give(&mut self, is_wide: bool, is_free: bool) -> bool {
        if is_wide {
            self.owed = !is_free;
            if is_free {
                (self.moved, self.goes_on) = (false, false);
            }
        }
        is_free
    }

    /// The oldest job ended.
    pub(super) const fn moves(&mut self) {
        (self.moved, self.goes_on) = (true, false);
    }

    /// CURDESC is the oldest job's.
    pub(super) const fn goes_on(&mut self) {
        self.goes_on = true;
    }

    /// The doorbell was rung.
    pub(super) const fn rung(&mut self) {
        *self = Self { owed: false, moved: false, goes_on: false };
    }

    /// May a core with jobs left pause? It is at work until the first job after a doorbell ends,
    /// and while it is at the oldest one.
    pub(super) const fn may_pause(&self) -> bool {
        self.owed && self.moved && !self.goes_on
    }

    /// The longest wait of such a core without a look.
    pub(super) const fn step_us(&self) -> u32 {
        if self.may_pause() { STEP_US } else { u32::MAX }
    }
}
