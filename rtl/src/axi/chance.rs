//! What memory leaves to chance: how a burst ends, what it waits for, the order of its answers.

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

/// What memory waits for before it takes a burst: what the settings say and, if they allow a draw,
/// what one draw from the board's seed adds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Habits {
    ready_after_valid: bool,
    /// 0: any order of a write's address and data, 1: the data first, 2: the address first.
    order: u8,
}

impl Habits {
    pub(super) fn draw(config: &SlaveConfig, bus: &mut SimBus<'_>) -> Self {
        if !config.draws {
            return Self::default();
        }
        Self { ready_after_valid: bus.rng().bool(), order: bus.rng().u8(..3) }
    }

    pub(super) const fn ready_after_valid(self, config: &SlaveConfig) -> bool {
        config.ready_after_valid || self.ready_after_valid
    }

    pub(super) const fn data_first(self, config: &SlaveConfig) -> bool {
        config.data_first || !config.address_first && self.order == 1
    }

    pub(super) const fn address_first(self, config: &SlaveConfig) -> bool {
        !config.data_first && (config.address_first || self.order == 2)
    }
}

/// The place of the next burst to be answered at `now`, among those under way, oldest first: each
/// with its ID and the cycle from which its answer is ready. Bursts of one ID are answered in their
/// order, those of different IDs in any (A5.3).
pub(super) fn next_answer(
    bursts: impl Iterator<Item = (u32, u64)> + Clone,
    now: u64,
    reorders: bool,
    bus: &mut SimBus<'_>,
) -> Option<usize> {
    if !reorders {
        return bursts.clone().next().filter(|(_, due)| *due <= now).map(|_| 0);
    }
    let all = bursts.clone().enumerate();
    let is_first =
        |place: usize, id: u32| !bursts.clone().take(place).any(|(other, _)| other == id);
    let ready = || {
        all.clone()
            .filter(|&(place, (id, due))| due <= now && is_first(place, id))
            .map(|(place, _)| place)
    };
    match ready().count() {
        0 => None,
        count => ready().nth(bus.rng().usize(..count)),
    }
}
