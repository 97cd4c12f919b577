//! A burst's end, by the settings and by the board's faults.

use super::SlaveConfig;
use contigo::sim::SimBus;

/// The board strikes a job in one of its first bursts.
const WITHIN_BURSTS: u32 = 16;

/// How a burst ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Good,
    /// SLVERR.
    Error,
    /// It is never answered.
    Lost,
}

/// The fates of a core's bursts. The board's rates are for jobs, and memory knows none: a job is
/// the bursts between two times at which registers were written.
#[derive(Debug, Default)]
pub(crate) struct Fates {
    /// A register was written, and no burst came since.
    begins: bool,
    /// The fate of this job, and after how many bursts it strikes.
    strikes: Option<(u32, Fate)>,
}

impl Fates {
    /// A register was written.
    pub(crate) const fn begin(&mut self) {
        self.begins = true;
    }

    /// The fate of the burst that came now.
    pub(crate) fn next(&mut self, config: &SlaveConfig, bus: &mut SimBus<'_>) -> Fate {
        if std::mem::take(&mut self.begins) {
            let faults = *bus.faults();
            let fate = if bus.strikes(faults.stuck) || bus.strikes(faults.hang) {
                Some(Fate::Lost)
            } else if bus.strikes(faults.error) {
                Some(Fate::Error)
            } else {
                None
            };
            self.strikes = fate.map(|fate| (bus.rng().u32(..WITHIN_BURSTS), fate));
        }
        match self.strikes {
            Some((0, fate)) => {
                self.strikes = None;
                return fate;
            }
            Some((bursts, fate)) => self.strikes = Some((bursts - 1, fate)),
            None => {}
        }
        if bus.strikes(config.lost) {
            Fate::Lost
        } else if bus.strikes(config.errors) {
            Fate::Error
        } else {
            Fate::Good
        }
    }
}
