#![allow(
    unsafe_code,
    reason = "a core keeps its promises as well as its author did; the checks look"
)]
//! The core as the board sees it: registers, time, the interrupt and the reset line.

use super::{RESET_CYCLES, RtlModel};
use crate::axi::{AxiSlave, Breach};
use crate::irq::IrqLine;
use crate::ports::In;
use crate::trace::Marks;
use contigo::sim::{Model, SimBus};

impl RtlModel {
    /// An access to a register, with the cycles that it takes.
    fn access(&mut self, offset: usize, value: Option<u32>, bus: &mut SimBus<'_>) -> u32 {
        let offset = u32::try_from(offset).unwrap_or(u32::MAX);
        self.lite.begin(offset, value, bus);
        self.mark(|marks| {
            (marks.access, marks.offset, marks.value) =
                (1 + u32::from(value.is_some()), offset, value.unwrap_or(marks.value))
        });
        let answer = self.end_access(bus);
        self.mark(|marks| (marks.access, marks.value) = (0, value.unwrap_or(answer)));
        answer
    }

    fn mark(&mut self, set: impl FnOnce(&mut Marks)) {
        if let Some(marks) = &mut self.marks {
            set(marks);
        }
    }

    fn end_access(&mut self, bus: &mut SimBus<'_>) -> u32 {
        // The master's own patience ends each access.
        for _ in 0..=u64::from(self.config.lite.patience_cycles) + 1 {
            if let Some(answer) = self.lite.take_answer() {
                return answer;
            }
            self.step(bus);
        }
        u32::MAX
    }
}

// SAFETY: it reads and writes memory only as its core's masters ask, which know only the addresses
// in its registers. The core's author keeps the promises of a driver's device; `findings` tells
// where they were seen broken.
unsafe impl Model for RtlModel {
    const WINDOW_BYTES: usize = 1 << 16;

    fn window_bytes(&self) -> usize {
        self.config.window_bytes.min(Self::WINDOW_BYTES)
    }

    fn advance(&mut self, bus: &mut SimBus<'_>) {
        let until = self.cycle_at(bus.now_ns());
        self.run_to(until, false, bus);
    }

    fn read32(&mut self, offset: usize, bus: &mut SimBus<'_>) -> u32 {
        self.access(offset, None, bus)
    }

    fn write32(&mut self, offset: usize, value: u32, bus: &mut SimBus<'_>) {
        self.masters.iter_mut().for_each(AxiSlave::begin);
        if bus.faults().short > 0 && !std::mem::replace(&mut self.told_fault, true) {
            self.findings.add(self.cycle, None, Breach::NoSuchFault { fault: "short" });
        }
        self.access(offset, Some(value), bus);
    }

    /// While the core works, the next microsecond: more cannot be foretold.
    fn irq_at_ns(&self) -> Option<u64> {
        self.irq.seen_from_ns().or_else(|| self.works.then(|| self.now_ns() + 1_000))
    }

    fn run(&mut self, deadline_ns: u64, bus: &mut SimBus<'_>) -> u64 {
        let (worked, from_ns) = (self.works, bus.now_ns());
        let until = self.cycle_at(deadline_ns);
        self.mark(|marks| marks.waits = 1);
        self.run_to(until, true, bus);
        self.mark(|marks| marks.waits = 0);
        let is_seen = self.irq.seen_from_ns().is_some_and(|at_ns| at_ns <= self.now_ns());
        if !is_seen {
            let silent = self.config.has_irq && worked && !self.works && self.out.irq == 0;
            if silent && self.owed() == (0, 0) {
                self.findings.add(
                    self.cycle,
                    None,
                    Breach::NoInterrupt { waited_ns: deadline_ns.saturating_sub(from_ns) },
                );
            }
            return deadline_ns;
        }
        let now_ns = self.now_ns().clamp(from_ns, deadline_ns);
        bus.run_until(now_ns);
        now_ns
    }

    fn reset(&mut self) {
        self.input = In::default();
        for _ in 0..RESET_CYCLES {
            self.out = self.core.step(&self.input);
            if let Some(twin) = &mut self.twin {
                twin.differs(&self.input, &self.out);
            }
            self.cycle += 1;
        }
        self.lite.reset(self.cycle, &self.out.lite, &mut self.findings);
        for master in &mut self.masters {
            if let Some(out) = self.out.axi.get(master.master()) {
                master.reset(self.cycle, out, &mut self.findings);
            }
        }
        if let Some(stream) = &mut self.stream {
            stream.reset(true);
        }
        self.input.rst_n = 1;
        (self.busy_cycle, self.works, self.told_idle) = (self.cycle, false, false);
        self.irq = IrqLine::default();
    }
}
