//! A tail in two halves: how the driver appends descriptors to a running core with wide addresses
//! without letting it run past the last one. AMD's AXI DMA and AXI CDMA share one descriptor engine
//! (`axi_sg`), and the driver of AXI MCDMA assumes the same engine.
//!
//! With 32 address bits the tail is one write, at any time. With more, the lower half takes effect
//! when it is written, and only the write of the upper half is the doorbell (`axi_dma_register.vhd`
//! and `axi_cdma_register.vhd`: `TAILDESC_LSB_REGISTER`, `GEN_TAILUPDATE_EQL64`). The core compares
//! its tail with each descriptor as it fetches it, and pauses after an equal one until a doorbell
//! (`axi_sg_ftch_pntr.vhd`: `COMPARE_ADDRESS`). So a core at work may reach the new tail between
//! the two writes, and the doorbell then sends it past.
//!
//! Both halves are therefore written only while the core pauses: before its first job, when every
//! job has ended, or when Idle is set. While it works, only the lower half is written. A core that
//! sees it in time continues without a pause. One that has already fetched the old tail pauses
//! there, and the driver rings the doorbell. All descriptors have the same upper half.

/// Poll interval while the core may pause with work left, for which it raises no interrupt.
const STEP_US: u32 = 20;

/// How the tail was written last.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tail {
    /// The lower half was written since the last doorbell: the core may not have seen it.
    owed: bool,
    /// A job ended since the doorbell. Until then, Idle may date from before the doorbell.
    moved: bool,
    /// The core is at the oldest job.
    goes_on: bool,
}

impl Tail {
    /// Records a new job, for a core that has others or `is_free`. On `true` the driver writes both
    /// halves.
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

    /// Returns whether a core with jobs left may pause. It is at work until the first job after a
    /// doorbell ends, and while it is at the oldest job.
    pub(super) const fn may_pause(&self) -> bool {
        self.owed && self.moved && !self.goes_on
    }

    /// The longest wait between polls of such a core.
    pub(super) const fn step_us(&self) -> u32 {
        if self.may_pause() { STEP_US } else { u32::MAX }
    }
}
