//! Memory behind a core's AXI4 master: the simulated board's, with the board's faults.

use super::chance::Fates;
use super::cycle::Cycle;
use super::reads::Reads;
use super::writes::Writes;
use super::{Breach, Channel, Findings, SlaveConfig, SlaveCounts};
use crate::ports::{AxiIn, AxiOut};
use contigo::sim::SimBus;

/// Memory behind a core's AXI4 master.
///
/// A cycle has two halves. [`drive`](Self::drive) sets the core's inputs; after the core has seen
/// them, [`take`](Self::take) looks at its outputs. A transfer is a channel whose valid and ready
/// are both 1 in the two.
#[derive(Debug)]
pub struct AxiSlave {
    master: usize,
    bus_bytes: usize,
    config: SlaveConfig,
    counts: SlaveCounts,
    fates: Fates,
    reads: Reads,
    writes: Writes,
}

impl AxiSlave {
    /// Memory behind the core's master number `master`, whose data has `data_bits`.
    #[must_use]
    pub fn new(master: usize, data_bits: u32, config: SlaveConfig) -> Self {
        let bus_bytes = (data_bits as usize / 8).clamp(4, 64);
        let (counts, fates) = (SlaveCounts::default(), Fates::default());
        Self {
            master,
            bus_bytes,
            config,
            counts,
            fates,
            reads: Reads::new(),
            writes: Writes::new(),
        }
    }

    /// The number of its master among the core's ports.
    #[must_use]
    pub const fn master(&self) -> usize {
        self.master
    }

    /// Its counts.
    #[must_use]
    pub const fn counts(&self) -> &SlaveCounts {
        &self.counts
    }

    /// Its settings, which may change between two cycles.
    pub const fn config_mut(&mut self) -> &mut SlaveConfig {
        &mut self.config
    }

    /// The bursts under way: reads, writes, and the first byte of the oldest.
    #[must_use]
    pub fn owed(&self) -> (usize, usize, u64) {
        let oldest = self.writes.oldest().or_else(|| self.reads.oldest());
        (self.reads.owed(), self.writes.owed(), oldest.unwrap_or(0))
    }

    /// Nothing is under way.
    #[must_use]
    pub fn owes_nothing(&self) -> bool {
        self.reads.owed() + self.writes.owed() == 0
    }

    /// A register was written: the next burst may be the first of a job.
    pub const fn begin(&mut self) {
        self.fates.begin();
    }

    /// The core's inputs in cycle `now`.
    pub fn drive(
        &mut self,
        now: u64,
        input: &mut AxiIn,
        findings: &mut Findings,
        bus: &mut SimBus<'_>,
    ) {
        *input = AxiIn::default();
        let Self { master, bus_bytes, config, counts, fates, reads, writes } = self;
        let mut cycle = Cycle {
            now,
            master: *master,
            bus_bytes: *bus_bytes,
            config,
            counts,
            fates,
            findings,
            bus,
        };
        reads.drive(input, &mut cycle);
        writes.drive(input, &mut cycle);
    }

    /// The core's outputs in cycle `now`, after it has seen `input`.
    pub fn take(
        &mut self,
        now: u64,
        input: &AxiIn,
        out: &AxiOut,
        findings: &mut Findings,
        bus: &mut SimBus<'_>,
    ) {
        let Self { master, bus_bytes, config, counts, fates, reads, writes } = self;
        let mut cycle = Cycle {
            now,
            master: *master,
            bus_bytes: *bus_bytes,
            config,
            counts,
            fates,
            findings,
            bus,
        };
        reads.take(input, out, &mut cycle);
        writes.take(input, out, &mut cycle);
    }

    /// The reset line was pulled, the memory's too: what was under way is gone. `out` is how the
    /// core is in reset.
    pub fn reset(&mut self, now: u64, out: &AxiOut, findings: &mut Findings) {
        let valid =
            [(Channel::Aw, out.aw.valid), (Channel::W, out.wvalid), (Channel::Ar, out.ar.valid)];
        for (channel, _) in valid.into_iter().filter(|(_, valid)| *valid == 1) {
            findings.add(now, Some(self.master), Breach::ValidInReset { channel });
        }
        self.reads.reset();
        self.writes.reset();
        self.fates = Fates::default();
    }
}
