//! The core's clock: one cycle, the cycles to a time, and those that are skipped.

use super::{QUIET_CYCLES, RtlModel};
use crate::axi::{AxiSlave, Breach};
use crate::ports::Beat;
use crate::trace;
use contigo::sim::SimBus;

impl RtlModel {
    /// The board's time in this cycle.
    pub(super) fn now_ns(&self) -> u64 {
        self.base_ns.unwrap_or(0).saturating_add(self.cycle.saturating_mul(self.config.cycle_ns))
    }

    /// The first cycle that has not begun at `ns`.
    pub(super) fn cycle_at(&mut self, ns: u64) -> u64 {
        let cycle_ns = self.config.cycle_ns.max(1);
        let base_ns = *self.base_ns.get_or_insert(ns.saturating_sub(self.cycle * cycle_ns));
        ns.saturating_sub(base_ns) / cycle_ns
    }

    /// One cycle.
    pub(super) fn step(&mut self, bus: &mut SimBus<'_>) {
        let now_ns = self.now_ns();
        if let Some(marks) = self.marks {
            let (cycle_ps, now_ps) =
                (self.config.cycle_ns * 1_000, self.cycle * self.config.cycle_ns * 1_000);
            self.core.mark(now_ps, cycle_ps / 2, &trace::heard(marks));
        }
        self.lite.drive(&mut self.input.lite, bus);
        for master in &mut self.masters {
            if let Some(input) = self.input.axi.get_mut(master.master()) {
                master.drive(self.cycle, input, &mut self.findings, bus);
            }
        }
        if let Some(stream) = &mut self.stream {
            stream.drive(now_ns, &mut self.input, bus);
        }
        self.out = self.core.step(&self.input);
        if let Some(twin) = &mut self.twin
            && twin.differs(&self.input, &self.out)
        {
            self.findings.add(self.cycle, None, Breach::Unknown);
        }
        self.lite.take(self.cycle, &self.input.lite, &self.out.lite, &mut self.findings);
        for master in &mut self.masters {
            let number = master.master();
            if let (Some(input), Some(out)) = (self.input.axi.get(number), self.out.axi.get(number))
            {
                master.take(self.cycle, input, out, &mut self.findings, bus);
            }
        }
        if let Some(stream) = &mut self.stream {
            stream.take(self.cycle, now_ns, &mut self.input, &self.out, &mut self.findings);
            // The core's own reset, which reaches what its streams end in.
            if self.core.shape().has_stream_rst == 1 && self.out.stream_rst_n == 0 {
                stream.reset(false);
                self.input.stream = Beat::default();
            }
        }
        self.look_at_idle(now_ns);
        self.irq.see(self.out.irq == 1, now_ns, self.began_ns, bus);
        self.cycle += 1;
    }

    fn look_at_idle(&mut self, now_ns: u64) {
        let idle = self.core.shape().has_idle == 1 && self.out.idle == 1;
        if !idle || self.lite.is_busy() || !self.masters.iter().all(AxiSlave::owes_nothing) {
            self.busy_cycle = self.cycle;
        }
        if !idle && !self.works {
            self.began_ns = now_ns;
        }
        self.works = !idle;
        let mut owed = self.masters.iter().map(|master| {
            let (reads, writes, addr) = master.owed();
            let asks = self
                .out
                .axi
                .get(master.master())
                .map_or((0, 0), |out| (out.ar.valid, out.aw.valid));
            (reads + asks.0 as usize, writes + asks.1 as usize, addr)
        });
        let owed = owed.find(|(reads, writes, _)| reads + writes > 0).filter(|_| idle);
        if let Some((reads, writes, addr)) = owed.filter(|_| !self.told_idle) {
            self.findings.add(self.cycle, None, Breach::IdleWhileOwed { reads, writes, addr });
        }
        self.told_idle = owed.is_some();
    }

    /// Nothing happens before this cycle, at most `until`, unless a register is accessed.
    fn idle_until(&self, until: u64) -> Option<u64> {
        let idle = self.out.idle == 1
            && self.cycle > self.busy_cycle + QUIET_CYCLES
            && self.masters.iter().all(AxiSlave::owes_nothing);
        let comes_ns = self.stream.as_ref().and_then(|stream| stream.comes_at_ns(self.now_ns()));
        let comes = comes_ns.map_or(u64::MAX, |ns| {
            ns.saturating_sub(self.base_ns.unwrap_or(0)) / self.config.cycle_ns.max(1)
        });
        let until = until.min(comes);
        (idle && until > self.cycle).then_some(until)
    }

    /// Steps to cycle `until`, or to the interrupt where `stops` is true.
    pub(super) fn run_to(&mut self, until: u64, stops: bool, bus: &mut SimBus<'_>) {
        let mut steps = 0;
        while self.cycle < until {
            if stops && self.irq.seen_from_ns().is_some_and(|at_ns| at_ns <= self.now_ns()) {
                return;
            }
            if let Some(cycle) = self.idle_until(until) {
                // A line that is late rises in the middle of a skip.
                let rises =
                    self.irq.seen_from_ns().filter(|_| stops).map(|at_ns| self.cycle_at(at_ns) + 1);
                self.cycle = rises.map_or(cycle, |rises| cycle.min(rises.max(self.cycle + 1)));
            } else if steps == self.config.most_cycles {
                self.findings.add(self.cycle, None, Breach::Lagged { cycles: until - self.cycle });
                self.cycle = until;
            } else {
                self.step(bus);
                steps += 1;
            }
        }
    }
}
