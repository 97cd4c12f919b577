//! A job that ended well.

use super::Completion;

/// A job that ended well: its buffers, in their order, and what the device said.
#[derive(Debug)]
#[must_use = "it holds the job's buffers"]
pub struct Done<B, R = Completion> {
    /// The job's buffers, in their order.
    pub buffers: B,
    /// The driver's report, made from the completion; `()` for a device that says nothing.
    pub report: R,
    /// The device's own words: the slot, how many bytes, the status.
    pub completion: Completion,
}

impl<B, R> Done<B, R> {
    /// The same with what `act` makes of the buffers.
    #[inline]
    pub fn map<C>(self, act: impl FnOnce(B) -> C) -> Done<C, R> {
        Done { buffers: act(self.buffers), report: self.report, completion: self.completion }
    }
}
