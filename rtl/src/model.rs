#![allow(unsafe_code, reason = "a core keeps its promises as well as its author did; the checks look")]
//! A core as a model of the simulated board.

use crate::{
    axi::{AxiSlave, Breach, Finding, Findings, LiteMaster, SlaveCounts, StreamPorts},
    config::RtlConfig,
    core::{Core, NoCore, PowerOn},
    irq::IrqLine,
    ports::{In, MASTERS, Out},
    trace::{self, Marks},
    twin::Twin,
};
use contigo::sim::{Model, SimBus, stream::StreamCounts};
use std::{io, path::Path};

/// For so long a core must have been idle before its clock is skipped. A register's write and an
/// answer take some cycles until the core has seen to them.
const QUIET_CYCLES: u64 = 32;
/// The reset line is pulled for so long. AMD asks for 16 cycles (PG164).
const RESET_CYCLES: u64 = 16;
/// A core that Verilator compiled, as a [`Model`]: registers by AXI-Lite, the board's memory behind
/// its masters, its interrupt, its streams.
///
/// Its clock follows the board's. It stands still only while the core says that it is idle, is owed
/// nothing, and nothing comes by a stream.
///
/// The faults of the board: `error` answers a burst with SLVERR, `hang` and `stuck` lose an answer,
/// `late_irq` and `lost_irq` are the interrupt's.
#[derive(Debug)]
pub struct RtlModel {
    core: Core,
    twin: Option<Twin>,
    config: RtlConfig,
    input: In,
    out: Out,
    lite: LiteMaster,
    masters: Vec<AxiSlave>,
    stream: Option<StreamPorts>,
    findings: Findings,
    cycle: u64,
    /// The board's time at cycle 0.
    base_ns: Option<u64>,
    /// The last cycle in which the core was not idle, was owed an answer, or was accessed.
    busy_cycle: u64,
    /// It is not idle, and since when.
    works: bool,
    began_ns: u64,
    /// A breach of idleness was told.
    told_idle: bool,
    irq: IrqLine,
    /// The runtime's signals, while the core is traced.
    marks: Option<Marks>,
}

impl RtlModel {
    /// The core of this name, after a reset.
    ///
    /// # Errors
    /// [`NoCore`].
    pub fn new(name: &str, config: RtlConfig) -> Result<Self, NoCore> {
        let power_on = if config.finds_unknowns { PowerOn::Zeros } else { config.power_on };
        let core = Core::open(name, power_on)?;
        let twin = if config.finds_unknowns { Some(Twin::open(name)?) } else { None };
        let shape = *core.shape();
        let bits = shape.data_bits.into_iter().take(MASTERS).enumerate().filter(|(_, bits)| *bits > 0);
        let masters = bits.map(|(master, bits)| AxiSlave::new(master, bits, config.memory.clone())).collect();
        let streams = shape.stream_in_bits + shape.stream_out_bits > 0;
        let stream = streams.then(|| StreamPorts::new(&shape, config.stream, config.stream_stalls));
        let lite = LiteMaster::new(config.lite);
        let (input, out, findings) = (In::default(), Out::default(), Findings::default());
        let mut model = Self {
            core,
            twin,
            config,
            input,
            out,
            lite,
            masters,
            stream,
            findings,
            cycle: 0,
            base_ns: None,
            busy_cycle: 0,
            works: false,
            began_ns: 0,
            told_idle: false,
            irq: IrqLine::default(),
            marks: None,
        };
        Model::reset(&mut model);
        Ok(model)
    }

    /// Writes the core's signals into a new VCD file from here on, for GTKWave or Surfer. The
    /// runtime's are beside them on one time line, those of the whole program. A clock that is
    /// skipped is a gap.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn trace(&mut self, path: &Path) -> io::Result<()> {
        trace::listen();
        self.core.trace(path)?;
        self.marks = Some(Marks::default());
        Ok(())
    }

    /// The rules that it broke.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        self.findings.list()
    }

    /// The counts of master `master`; `None`: it has none of this number.
    #[must_use]
    pub fn counts(&self, master: usize) -> Option<&SlaveCounts> {
        self.masters.get(master).map(AxiSlave::counts)
    }

    /// The counts of its streams.
    #[must_use]
    pub fn stream_counts(&self) -> Option<StreamCounts> {
        self.stream.as_ref().map(StreamPorts::counts)
    }

    /// Its clock.
    #[must_use]
    pub const fn cycle(&self) -> u64 {
        self.cycle
    }

    /// Memory owes it answers: bursts of reads and of writes.
    #[must_use]
    pub fn owed(&self) -> (usize, usize) {
        self.masters.iter().map(AxiSlave::owed).fold((0, 0), |sum, (reads, writes, _)| (sum.0 + reads, sum.1 + writes))
    }

    /// The board's time in this cycle.
    fn now_ns(&self) -> u64 {
        self.base_ns.unwrap_or(0).saturating_add(self.cycle.saturating_mul(self.config.cycle_ns))
    }

    /// The first cycle that has not begun at `ns`.
    fn cycle_at(&mut self, ns: u64) -> u64 {
        let cycle_ns = self.config.cycle_ns.max(1);
        let base_ns = *self.base_ns.get_or_insert(ns.saturating_sub(self.cycle * cycle_ns));
        ns.saturating_sub(base_ns) / cycle_ns
    }

    /// One cycle.
    fn step(&mut self, bus: &mut SimBus<'_>) {
        let now_ns = self.now_ns();
        if let Some(marks) = self.marks {
            let (cycle_ps, now_ps) = (self.config.cycle_ns * 1_000, self.cycle * self.config.cycle_ns * 1_000);
            self.core.mark(now_ps, cycle_ps / 2, &trace::heard(marks));
        }
        self.lite.drive(&mut self.input.lite, bus);
        for (master, input) in self.masters.iter_mut().zip(&mut self.input.axi) {
            master.drive(self.cycle, input, &mut self.findings, bus);
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
        for ((master, input), out) in self.masters.iter_mut().zip(&self.input.axi).zip(&self.out.axi) {
            master.take(self.cycle, input, out, &mut self.findings, bus);
        }
        if let Some(stream) = &mut self.stream {
            stream.take(self.cycle, now_ns, &mut self.input, &self.out, &mut self.findings);
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
        let mut owed = self.masters.iter().zip(&self.out.axi).map(|(master, out)| {
            let (reads, writes, addr) = master.owed();
            (reads + out.ar.valid as usize, writes + out.aw.valid as usize, addr)
        });
        let owed = owed.find(|(reads, writes, _)| reads + writes > 0).filter(|_| idle);
        if let Some((reads, writes, addr)) = owed.filter(|_| !self.told_idle) {
            self.findings.add(self.cycle, None, Breach::IdleWhileOwed { reads, writes, addr });
        }
        self.told_idle = owed.is_some();
    }

    /// Nothing happens before this cycle, at most `until`, unless somebody accesses a register.
    fn idle_until(&self, until: u64) -> Option<u64> {
        let idle = self.out.idle == 1 && self.cycle > self.busy_cycle + QUIET_CYCLES && self.masters.iter().all(AxiSlave::owes_nothing);
        let comes_ns = self.stream.as_ref().and_then(|stream| stream.comes_at_ns(self.now_ns()));
        let comes = comes_ns.map_or(u64::MAX, |ns| ns.saturating_sub(self.base_ns.unwrap_or(0)) / self.config.cycle_ns.max(1));
        let until = until.min(comes);
        (idle && until > self.cycle).then_some(until)
    }

    /// Steps to cycle `until`, or to the interrupt where `stops` says so.
    fn run_to(&mut self, until: u64, stops: bool, bus: &mut SimBus<'_>) {
        let mut steps = 0;
        while self.cycle < until {
            if stops && self.irq.seen_from_ns().is_some_and(|at_ns| at_ns <= self.now_ns()) {
                return;
            }
            if let Some(cycle) = self.idle_until(until) {
                // A line that is late rises in the middle of a skip.
                let rises = self.irq.seen_from_ns().filter(|_| stops).map(|at_ns| self.cycle_at(at_ns) + 1);
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

    /// An access to a register, with the cycles that it takes.
    fn access(&mut self, offset: usize, value: Option<u32>, bus: &mut SimBus<'_>) -> u32 {
        let offset = u32::try_from(offset).unwrap_or(u32::MAX);
        self.lite.begin(offset, value, bus);
        self.mark(|marks| {
            (marks.access, marks.offset, marks.value) = (1 + u32::from(value.is_some()), offset, value.unwrap_or(marks.value))
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
        self.access(offset, Some(value), bus);
    }

    /// While the core works, the next microsecond: nobody can foretell more.
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
                self.findings.add(self.cycle, None, Breach::NoInterrupt { waited_ns: deadline_ns.saturating_sub(from_ns) });
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
        for (master, out) in self.masters.iter_mut().zip(&self.out.axi) {
            master.reset(self.cycle, out, &mut self.findings);
        }
        if let Some(stream) = &mut self.stream {
            stream.reset();
        }
        self.input.rst_n = 1;
        (self.busy_cycle, self.works, self.told_idle) = (self.cycle, false, false);
        self.irq = IrqLine::default();
    }
}
