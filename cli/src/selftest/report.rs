//! The printed result, and whether it is good news.

use super::{
    engine::Chosen,
    run::{Outcome, Row, Task},
};
use crate::{failure::Failure, table};
use contigo::names::MemoryName;
use contigo_testkit::exercise::Tally;
use serde::Serialize;
use std::fmt;

/// All of it, as `--json` prints it.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    memory: Memory,
    engine: Engine,
    port: Port,
    seed: u64,
    slot_bytes: usize,
    rows: Vec<RowReport>,
    tried: Vec<Case>,
    verdict: &'static str,
    /// Why it failed; empty where it passed.
    reasons: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Memory {
    name: String,
    /// The key of 0.1 for the same, for this release.
    heap: String,
    backend: &'static str,
    base: String,
    len_bytes: usize,
}

#[derive(Debug, Serialize)]
struct Engine {
    name: String,
    simulated: bool,
    interrupt: bool,
}

#[derive(Debug, Serialize)]
struct Port {
    name: &'static str,
    addr_bits: u32,
    coherent: bool,
    lab_port: bool,
}

#[derive(Debug, Serialize)]
struct RowReport {
    mode: &'static str,
    jobs: u64,
    bytes: u64,
    mb_per_s: f64,
    mismatches: u64,
    canary_hits: u64,
    interrupts: Option<u64>,
    allocations: u64,
}

#[derive(Debug, Serialize)]
struct Case {
    case: &'static str,
    jobs: u64,
}

impl Report {
    pub(crate) fn new(memory: &MemoryName, engine: &Chosen, task: &Task, outcome: &Outcome) -> Self {
        let reasons = reasons(engine, outcome);
        let Outcome { backend, base, len_bytes, port, slot_bytes, has_interrupt, ref rows, tried, .. } = *outcome;
        Self {
            memory: Memory { name: memory.to_string(), heap: memory.to_string(), backend, base: format!("{:#x}", base.raw()), len_bytes },
            engine: Engine { name: engine.to_string(), simulated: engine.is_simulated(), interrupt: has_interrupt },
            port: Port { name: port.name, addr_bits: port.addr_bits, coherent: port.coherent, lab_port: engine.lab_port },
            seed: task.seed,
            slot_bytes,
            rows: rows.iter().map(RowReport::from).collect(),
            tried: tried.cases().map(|(case, jobs)| Case { case, jobs }).into(),
            verdict: if reasons.is_empty() { "passed" } else { "failed" },
            reasons,
        }
    }

    /// The failures of the run.
    pub(crate) fn verdict(&self) -> Result<(), Failure> {
        if self.reasons.is_empty() { Ok(()) } else { Err(Failure::SelfTest(self.reasons.join("; "))) }
    }

    fn jobs(&self) -> u64 {
        self.rows.iter().map(|row| row.jobs).sum()
    }
}

/// Everything that is wrong.
fn reasons(engine: &Chosen, outcome: &Outcome) -> Vec<String> {
    let mut reasons = Vec::new();
    let sum = |field: fn(&Row) -> u64| outcome.rows.iter().map(field).sum::<u64>();
    let allocations = sum(|row| row.allocations);
    for Row { mode, tally, .. } in &outcome.rows {
        if let Some(first) = tally.first_wrong {
            let (mismatches, canary_hits, number) = (tally.mismatches, tally.canary_hits, first.job.number);
            reasons.push(format!(
                "{mode}: {mismatches} mismatches and {canary_hits} canary hits, the first: {first} (again: --jobs {number})"
            ));
        }
    }
    if let Some(stopped) = outcome.stopped {
        // Two engines refuse the same memory: one when it is opened, for its own program, one when
        // a job starts.
        let advice = match (stopped.error, engine) {
            (contigo::Error::CannotSync { .. }, engine) if !engine.is_simulated() && !engine.lab_port => {
                " (in an emulator, which has no caches, --lab-port)"
            }
            _ => "",
        };
        reasons.push(format!("{stopped}{advice}"));
    }
    if let Some(silent) = outcome.rows.iter().find(|row| row.interrupts == Some(0) && row.tally.jobs > 0) {
        reasons.push(format!("{} jobs waited for an interrupt, and none came: check the node's interrupts", silent.tally.jobs));
    }
    if allocations > 0 {
        reasons.push(format!("{allocations} heap allocations while jobs ran"));
    }
    reasons
}

/// The rows of the table, one for each of a mode's numbers.
const NUMBERS: [&str; 7] = ["jobs", "bytes", "MB/s", "mismatches", "canary hits", "interrupts", "heap allocations"];

impl RowReport {
    /// In the order of `NUMBERS`.
    fn numbers(&self) -> [String; 7] {
        let interrupts = self.interrupts.map_or("-".to_owned(), |count| count.to_string());
        let [jobs, bytes, mismatches, canary_hits, allocations] =
            [self.jobs, self.bytes, self.mismatches, self.canary_hits, self.allocations].map(|number| number.to_string());
        [jobs, bytes, format!("{:.2}", self.mb_per_s), mismatches, canary_hits, interrupts, allocations]
    }
}

impl From<&Row> for RowReport {
    fn from(row: &Row) -> Self {
        let Row { mode, seconds, interrupts, allocations, tally } = *row;
        let Tally { jobs, bytes, mismatches, canary_hits, .. } = tally;
        Self { mode, jobs, bytes, mb_per_s: mb_per_s(bytes, seconds), mismatches, canary_hits, interrupts, allocations }
    }
}

#[allow(clippy::cast_precision_loss, reason = "a run of 2^53 bytes takes months")]
fn mb_per_s(bytes: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { (bytes as f64 / seconds / 10_000.0).round() / 100.0 } else { 0.0 }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = |label: &str, value: fmt::Arguments<'_>| writeln!(f, "{label:>7}: {value}");
        let Memory { name, base, len_bytes, .. } = &self.memory;
        line("memory", format_args!("{name}, {len_bytes} bytes at {base}, 64 slots of {} bytes", self.slot_bytes))?;
        line("engine", format_args!("{}", self.engine.name))?;
        let snoops = match (self.port.coherent, self.port.lab_port) {
            (_, true) => "taken for coherent because --lab-port says so",
            (true, false) => "coherent",
            (false, false) => "not coherent",
        };
        line("port", format_args!("{}, {} bits, {snoops}", self.port.name, self.port.addr_bits))?;
        line("seed", format_args!("{}", self.seed))?;
        let modes: Vec<_> = ["mode"].into_iter().chain(self.rows.iter().map(|row| row.mode)).collect();
        let mut table = table::new(&modes);
        for (index, what) in NUMBERS.iter().enumerate() {
            let numbers = self.rows.iter().filter_map(|row| row.numbers().into_iter().nth(index));
            table.add_row([(*what).to_owned()].into_iter().chain(numbers));
        }
        writeln!(f, "{table}")?;
        let mut table = table::new(&["tried", "jobs"]);
        for Case { case, jobs } in &self.tried {
            table.add_row([*case, &jobs.to_string()]);
        }
        writeln!(f, "{table}")?;
        if !self.engine.interrupt {
            writeln!(f, "no interrupt: polled only")?;
        }
        match self.reasons.as_slice() {
            [] => {
                let simulated = if self.engine.simulated { ", by a simulated engine" } else { "" };
                write!(f, "passed: {} jobs{simulated}, every byte where it should be", self.jobs())
            }
            reasons => write!(f, "FAILED: {}", reasons.join("; ")),
        }
    }
}
