#![allow(unsafe_code, reason = "an entry's value, which its word gives to one job alone")]
//! An entry for one job.

use super::{
    Slot,
    word::{JOB, LIVE},
};

/// An entry that a job has. Dropping it leaves the entry to the job for ever: leak, never free,
/// what a device may own.
#[must_use]
#[derive(Debug)]
pub struct JobHold<T: 'static> {
    pub(super) slot: &'static Slot<T>,
    pub(super) generation: u64,
}

impl<T> JobHold<T> {
    /// The job has it from here on, and no call: what others do with it is refused until its end.
    #[inline]
    pub fn begin(&self) {
        self.slot.word.leave(self.generation, JOB);
    }

    /// The value, whose entry stays the job's.
    #[inline]
    pub fn value(&mut self) -> &mut T {
        // SAFETY: the entry is in the state `CALL` or `JOB`, from which no other code takes it, and
        // this is its one hold; `&mut self` makes the borrow exclusive. It was live before, so that
        // the value is there, and no other code takes it away.
        unsafe { (*self.slot.value()).assume_init_mut() }
    }

    /// The device is finished with it: it is live again.
    #[inline]
    pub fn back(self) {
        self.slot.word.leave(self.generation, LIVE);
    }
}
