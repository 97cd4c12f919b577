//! Readings during a piece of work, and the energy of the work on each rail.

use super::{Gauge, PowerError, Rail};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The time between two readings: an INA226 or INA260 has a new value every 2 ms at the least, and
/// more frequent readings would keep its bus busy with nothing else.
pub const STEP: Duration = Duration::from_millis(10);

/// The number of readings before the work, for the idle power.
const BEFORE: u32 = 10;

/// Runs `work` on this thread, while another thread reads each of `rails` every `step`. That thread
/// is started before the work, and joined after it.
///
/// If a rail fails, its entry has the error, and the other rails go on.
pub fn beside<R>(rails: &[Rail], step: Duration, work: impl FnOnce() -> R) -> (R, Vec<Energy>) {
    if rails.is_empty() {
        return (work(), Vec::new());
    }
    let mut lines: Vec<_> = rails.iter().map(Line::open).collect();
    for _ in 0..BEFORE {
        lines.iter_mut().for_each(Line::idle);
        thread::sleep(step);
    }
    let over = AtomicBool::new(false);
    let result = thread::scope(|scope| {
        let reader = scope.spawn(|| {
            while !over.load(Ordering::Acquire) {
                lines.iter_mut().for_each(Line::read);
                thread::park_timeout(step);
            }
            lines.iter_mut().for_each(Line::read);
        });
        // The reader also ends if the work panics.
        let _over = Over { flag: &over, reader: reader.thread() };
        work()
    });
    (result, lines.into_iter().map(|line| line.energy).collect())
}

/// The energy on one rail during a piece of work: the integral of its readings.
#[derive(Debug)]
pub struct Energy {
    /// The rail's name.
    pub rail: String,
    /// Power before the work, in microwatts: the mean of ten readings.
    pub idle_microwatts: i64,
    /// The number of readings during the work.
    pub readings: u32,
    /// The time from the first to the last of them.
    pub time: Duration,
    /// The energy between those, in femtojoules, which are microwatts times nanoseconds.
    femtojoules: i128,
    /// The error that ended the readings.
    pub error: Option<PowerError>,
}

impl Energy {
    /// Joules from the first to the last reading, including the idle power. `None`: the work ended
    /// before there were two readings, or the monitor failed.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "a figure of three digits is wanted")]
    pub fn joules(&self) -> Option<f64> {
        (self.readings > 1 && self.error.is_none()).then(|| self.femtojoules as f64 / 1e15)
    }

    /// The mean power in watts. `None` as in [`joules`](Self::joules).
    #[must_use]
    pub fn watts(&self) -> Option<f64> {
        self.joules()
            .map(|joules| joules / self.time.as_secs_f64())
            .filter(|watts| watts.is_finite())
    }
}

/// Tells the reader that the work is over.
struct Over<'a> {
    flag: &'a AtomicBool,
    reader: &'a thread::Thread,
}

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.flag.store(true, Ordering::Release);
        self.reader.unpark();
    }
}

struct Line {
    gauge: Option<Gauge>,
    energy: Energy,
    idles: i64,
    first: Option<Instant>,
    last: Option<(Instant, i64)>,
}

impl Line {
    fn open(rail: &Rail) -> Self {
        let (gauge, error) = match rail.open() {
            Ok(gauge) => (Some(gauge), None),
            Err(error) => (None, Some(error)),
        };
        let energy = Energy {
            rail: rail.name.clone(),
            idle_microwatts: 0,
            readings: 0,
            time: Duration::ZERO,
            femtojoules: 0,
            error,
        };
        Self { gauge, energy, idles: 0, first: None, last: None }
    }

    fn power(&mut self) -> Option<i64> {
        let read: Result<i64, PowerError> = self.gauge.as_mut()?.microwatts();
        read.map_err(|error| {
            self.gauge = None;
            self.energy.error = Some(error);
        })
        .ok()
    }

    fn idle(&mut self) {
        let Some(power) = self.power() else { return };
        self.idles = self.idles.saturating_add(1);
        // Moves the mean towards the new reading by that reading's share.
        self.energy.idle_microwatts = self
            .energy
            .idle_microwatts
            .saturating_add(power.saturating_sub(self.energy.idle_microwatts) / self.idles);
    }

    /// Takes a reading, and adds the trapezoid between it and the previous one.
    fn read(&mut self) {
        let Some(power) = self.power() else { return };
        let now = Instant::now();
        let first = *self.first.get_or_insert(now);
        if let Some((then, before)) = self.last {
            let ns = i128::try_from((now - then).as_nanos()).unwrap_or(i128::MAX);
            let area = (i128::from(before) + i128::from(power)).saturating_mul(ns) / 2;
            self.energy.femtojoules = self.energy.femtojoules.saturating_add(area);
        }
        self.energy.readings = self.energy.readings.saturating_add(1);
        self.energy.time = now - first;
        self.last = Some((now, power));
    }
}
