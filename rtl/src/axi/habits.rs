//! The habits of memory that come and go: whom it waits for.

use super::SlaveConfig;
use contigo::sim::SimBus;

/// One draw from the board's seed. Where the settings do not draw, they alone count.
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
