//! How a log is kept.

/// The ring's size, the events' clock, and whether panics are events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The ring's size: a power of two in [`RING_BYTES`](crate::RING_BYTES). The newest events are
    /// there, and no others.
    pub ring_bytes: u32,
    /// Where the events' time comes from.
    pub clock: Clock,
    /// Is a panic an event? It is logged before the hook that was there does its work.
    pub panics: bool,
}

/// Where the events' time comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// Microseconds of `CLOCK_MONOTONIC` since the start. The vDSO answers, with no system call. A
    /// Cortex-A9 (Zynq-7000, Cyclone V) has no such answer: there each event is a system call.
    Monotonic,
    /// No time: each event says 0, in one byte. On a Cortex-A9 this keeps events free of system
    /// calls.
    None,
}

impl Default for Settings {
    /// 64 KiB, some 6,000 events; time; and panics.
    fn default() -> Self {
        Self { ring_bytes: 64 << 10, clock: Clock::Monotonic, panics: true }
    }
}
