//! The end of one job, as its device reports it.

use crate::types::Error;

/// The end of one job, as its driver read it from the device. The queue does not trust it: a slot
/// without a job in flight is [`Error::NoSuchJob`], and more bytes than the job has are
/// [`Error::BadCompletion`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Completion {
    /// Which job: the slot that [`Driver::submit`](crate::Driver::submit) named.
    pub slot: usize,
    /// How many bytes the device wrote, from the beginning of the operand that it writes. `None`:
    /// the device does not tell, and all bytes that it may write count as written. A driver whose
    /// jobs have several operands that the device writes returns `None`.
    pub bytes: Option<usize>,
    /// The device's status for this job, as the driver's documentation has it; 0 if it has none.
    pub status: u32,
    /// What else the device reports: a return value, a cycle count, a packet's user words.
    pub words: [u32; 4],
    /// Why this job failed, if it failed alone and the other jobs go on.
    pub failed: Option<&'static str>,
    /// Does the receiving operand hold the packet's end? If not, the packet was longer, and its
    /// rest comes in the next job. `None`: the device receives no packets.
    pub last: Option<bool>,
}

impl Completion {
    /// The job in `slot` ended well, and the device reports nothing else.
    #[must_use]
    pub const fn of(slot: usize) -> Self {
        Self { slot, bytes: None, status: 0, words: [0; 4], failed: None, last: None }
    }

    /// Returns whether it can be true of a job that may write `most_bytes`. `None`: there is no
    /// job.
    #[inline]
    pub(super) fn is_possible(&self, most_bytes: Option<usize>) -> bool {
        most_bytes.is_some_and(|most_bytes| self.bytes.is_none_or(|bytes| bytes <= most_bytes))
    }

    /// The error for an impossible completion.
    #[cold]
    pub(super) fn refusal(&self, device: &'static str, most_bytes: Option<usize>) -> Error {
        let (slot, bytes) = (self.slot, self.bytes.unwrap_or(0));
        most_bytes.map_or(Error::NoSuchJob { device, slot }, |most_bytes| Error::BadCompletion {
            device,
            slot,
            bytes,
            most_bytes,
        })
    }
}
