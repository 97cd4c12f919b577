//! A core as a model of the simulated board.

mod board;
mod clock;

use crate::axi::{AxiSlave, Breach, Finding, Findings, LiteMaster, SlaveCounts, StreamPorts};
use crate::config::RtlConfig;
use crate::core::{Core, NoCore, PowerOn};
use crate::irq::IrqLine;
use crate::ports::{In, MASTERS, Out};
use crate::trace::{self, Marks};
use crate::twin::Twin;
use contigo::sim::Model;
use contigo::sim::stream::StreamCounts;
use std::io;
use std::path::Path;

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
/// `late_irq` and `lost_irq` are the interrupt's. `short` is a lie of the core's own registers: it
/// is refused by [`Breach::NoSuchFault`](crate::axi::Breach::NoSuchFault).
#[derive(Debug)]
pub struct RtlModel {
    core: Core,
    twin: Option<Twin>,
    config: RtlConfig,
    input: In,
    out: Out,
    lite: LiteMaster,
    /// A core may have the second master and not the first, so each has its number.
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
    /// The fault that it cannot have was told.
    told_fault: bool,
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
        let bits =
            shape.data_bits.into_iter().take(MASTERS).enumerate().filter(|(_, bits)| *bits > 0);
        let masters =
            bits.map(|(master, bits)| AxiSlave::new(master, bits, config.memory.clone())).collect();
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
            told_fault: false,
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

    /// The rules of AXI among them, as text: what no fault of the board explains. That a wait saw
    /// no interrupt, and that a fault cannot be had, stay out.
    pub fn broken_rules(&self) -> impl Iterator<Item = String> {
        let of_axi = |found: &&Finding| {
            !matches!(found.breach, Breach::NoInterrupt { .. } | Breach::NoSuchFault { .. })
        };
        self.findings.list().iter().filter(of_axi).map(ToString::to_string)
    }

    /// The counts of master `master`; `None`: it has none of this number.
    #[must_use]
    pub fn counts(&self, master: usize) -> Option<&SlaveCounts> {
        self.masters.iter().find(|slave| slave.master() == master).map(AxiSlave::counts)
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
        self.masters
            .iter()
            .map(AxiSlave::owed)
            .fold((0, 0), |sum, (reads, writes, _)| (sum.0 + reads, sum.1 + writes))
    }
}
