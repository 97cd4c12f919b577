//! An engine's interrupt, as a run waits for it and counts it.

use super::{IrqEvents, Mode};
use core::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// For one job, interrupt or not: the slowest engine here takes 200 ms in an emulator on a busy
/// machine.
pub const JOB_TIMEOUT: Duration = Duration::from_secs(5);

/// The facts about an engine's interrupt.
#[derive(Clone, Copy, Debug)]
pub enum Line<'l> {
    /// It has none here, or none was asked for.
    None,
    /// It can be waited for before the engine is looked at.
    Events(&'l IrqEvents),
    /// Waits that it ended are counted.
    Counted(&'l AtomicU64),
}

impl<'l> Line<'l> {
    /// How a run waits for the end of a job: for the interrupt, or by the clock where there is
    /// none.
    #[must_use]
    pub const fn mode(self) -> Mode<'l> {
        match self {
            Self::Events(events) => Mode::Events(events, JOB_TIMEOUT),
            Self::None | Self::Counted(_) => Mode::Waiting(JOB_TIMEOUT),
        }
    }

    /// How many interrupts ended a wait so far; `None` where there is none.
    #[must_use]
    pub fn came(self) -> Option<u64> {
        match self {
            Self::None => None,
            Self::Events(events) => Some(events.came()),
            Self::Counted(count) => Some(count.load(Ordering::Relaxed)),
        }
    }
}
