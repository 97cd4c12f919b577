//! The energy of a piece of work on one rail.

use super::PowerError;
use std::time::Duration;

/// The energy on one rail while a piece of work ran: the area below its readings.
#[derive(Debug)]
pub struct Energy {
    /// The rail's name.
    pub rail: String,
    /// Power before the work, in microwatts: the mean of ten readings.
    pub idle_microwatts: i64,
    /// The readings while the work ran.
    pub readings: u32,
    /// From the first to the last of them.
    pub time: Duration,
    /// Between those, in femtojoules, which are microwatts times nanoseconds.
    pub(super) femtojoules: i128,
    /// The error that ended the readings.
    pub error: Option<PowerError>,
}

impl Energy {
    /// Joules from the first to the last reading, the idle power in it. `None`: the work was over
    /// before there were two readings, or the monitor failed.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "a figure of three digits is wanted")]
    pub fn joules(&self) -> Option<f64> {
        (self.readings > 1 && self.error.is_none()).then(|| self.femtojoules as f64 / 1e15)
    }

    /// The mean power in watts. `None` as with [`joules`](Self::joules).
    #[must_use]
    pub fn watts(&self) -> Option<f64> {
        self.joules()
            .map(|joules| joules / self.time.as_secs_f64())
            .filter(|watts| watts.is_finite())
    }
}
