//! How a job comes out of a queue.

use crate::job::Completion;

/// A job that ended well: its buffers, in their order, and what the device said.
#[derive(Debug)]
#[must_use = "it holds the job's buffers"]
pub struct Done<B> {
    /// The job's buffers, in their order.
    pub buffers: B,
    /// Which job: the number that [`submit`](super::Queue::submit) returned.
    pub job: u64,
    /// How many bytes the device wrote, from the beginning of the operand that it writes. `None`:
    /// the device does not tell, and all bytes that it may write count as written.
    pub bytes: Option<usize>,
    /// The device's status for this job, as the driver's documentation has it; 0 if it has none.
    pub status: u32,
    /// What else the device reports, by the driver's documentation: a return value, a cycle count.
    pub words: [u32; 4],
    /// Is the packet's end in the operand? `None`: the device receives no packets.
    pub last: Option<bool>,
}

impl<B> Done<B> {
    pub(super) fn new(buffers: B, job: u64, completion: &Completion) -> Self {
        let Completion { bytes, status, words, last, .. } = *completion;
        Self { buffers, job, bytes, status, words, last }
    }
}

/// A job that had not ended when the device was stopped, or that it was never given.
#[derive(Debug)]
#[must_use = "it holds the job's buffers"]
pub struct Cancelled<B> {
    /// Its buffers, in their order: the device may have written them in part.
    pub buffers: B,
    /// Which job: the number that [`submit`](super::Queue::submit) returned.
    pub job: u64,
}
