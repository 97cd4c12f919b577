//! Who owns a slot now.

use contigo::{CpuBuf, DevBuf};
use core::ops::Range;

/// One slot, on the side of its owner.
#[derive(Debug)]
pub(super) enum Held {
    /// The CPU's.
    Cpu(CpuBuf),
    /// Still the device's, and these bytes of it: no other may go into a job.
    Dev(DevBuf, Range<usize>),
    /// In a job under way, or lost with one that failed.
    Out,
}

impl Held {
    pub(super) const fn is_dev(&self) -> bool {
        matches!(self, Self::Dev(..))
    }
}
