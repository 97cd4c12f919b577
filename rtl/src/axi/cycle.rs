//! One cycle of memory behind a master: the settings, the time and chance.

use super::chance::{Fate, Fates};
use super::{Breach, Burst, BurstKind, Findings, SlaveConfig, SlaveCounts};
use crate::ports::AxiAddress;
use contigo::sim::SimBus;
use std::ops::RangeInclusive;

pub(super) struct Cycle<'a, 'b> {
    pub(super) now: u64,
    pub(super) master: usize,
    pub(super) bus_bytes: usize,
    pub(super) config: &'a SlaveConfig,
    pub(super) counts: &'a mut SlaveCounts,
    pub(super) fates: &'a mut Fates,
    pub(super) findings: &'a mut Findings,
    pub(super) bus: &'a mut SimBus<'b>,
}

impl Cycle<'_, '_> {
    pub(super) fn found(&mut self, breach: Option<Breach>) {
        if let Some(breach) = breach {
            self.findings.add(self.now, Some(self.master), breach);
        }
    }

    pub(super) fn stalls(&mut self) -> bool {
        self.bus.strikes(self.config.stalls)
    }

    pub(super) fn latency(&mut self, cycles: &RangeInclusive<u32>) -> u64 {
        u64::from(self.bus.rng().u32(cycles.clone()))
    }

    /// The fate of a burst whose address came now.
    pub(super) fn fate(&mut self) -> Fate {
        let fate = self.fates.next(self.config, self.bus);
        self.counts.lost += u64::from(fate == Fate::Lost);
        fate
    }

    /// The burst of an address that was taken now.
    pub(super) fn accept(&mut self, address: &AxiAddress) -> Burst {
        let (burst, breach) = Burst::new(address, self.bus_bytes);
        self.found(breach);
        self.counts.narrow += u64::from(burst.beat_bytes < self.bus_bytes as u64);
        self.counts.not_rising += u64::from(burst.kind != BurstKind::Incr);
        burst
    }
}
