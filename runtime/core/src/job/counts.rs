//! The counts of a queue's jobs.

/// How a queue's jobs ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct QueueCounts {
    /// Jobs that the device was given.
    pub pushed: u64,
    /// Jobs that ended well.
    pub completed: u64,
    /// Jobs that failed alone, while the others went on.
    pub failed: u64,
    /// Jobs that were taken back after a stop.
    pub cancelled: u64,
    /// How often the device was stopped: by a fault, or by [`Queue::stop`](crate::Queue::stop).
    pub stopped: u64,
    /// How often the device was left without a job, an underrun: for a stream, loss. The hardware's
    /// own count if it has one ([`Driver::underruns`](crate::Driver::underruns)); otherwise how
    /// often the last job ended before the next one was pushed, also at the end, when none follows.
    pub underruns: u64,
}
