//! The printed result, and its verdict.

use super::engine::Chosen;
use super::run::{Task, Tested};
use crate::failure::Failure;
use crate::output;
use contigo::names::MemoryName;
use contigo_exerciser::{Fault, Outcome, Stopped, Tally};
use serde::Serialize;
use std::fmt;

/// The whole report, as `--json` prints it.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    memory: Memory,
    engine: Engine,
    port: Port,
    /// Whether the driver's own memory is coherent, snooped or synced; null: it has none.
    descriptors: Option<String>,
    seed: u64,
    slot_bytes: usize,
    rows: Vec<Row>,
    tried: Vec<Case>,
    verdict: &'static str,
    /// The reasons of a failure; empty if the test passed.
    reasons: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Memory {
    name: String,
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
struct Row {
    mode: &'static str,
    jobs: u64,
    bytes: u64,
    mb_per_s: f64,
    mismatches: u64,
    canary_hits: u64,
    interrupts: Option<u64>,
}

#[derive(Debug, Serialize)]
struct Case {
    case: &'static str,
    jobs: u64,
}

impl Report {
    pub(crate) fn new(
        memory: &MemoryName,
        engine: &Chosen,
        task: &Task<'_>,
        tested: &Tested,
    ) -> Self {
        let reasons = reasons(engine, tested);
        let Tested {
            backend,
            base,
            len_bytes,
            port,
            slot_bytes,
            descriptors,
            has_interrupt,
            ref outcomes,
            tried,
        } = *tested;
        Self {
            memory: Memory {
                name: memory.to_string(),
                backend,
                base: format!("{:#x}", base.raw()),
                len_bytes,
            },
            engine: Engine {
                name: engine.to_string(),
                simulated: engine.is_simulated(),
                interrupt: has_interrupt,
            },
            port: Port {
                name: port.name,
                addr_bits: port.addr_bits,
                coherent: port.coherent,
                lab_port: engine.lab_port,
            },
            descriptors: descriptors.map(|descriptors| descriptors.to_string()),
            seed: task.seed,
            slot_bytes,
            rows: outcomes.iter().map(Row::from).collect(),
            tried: tried.cases().map(|(case, jobs)| Case { case, jobs }).into(),
            verdict: if reasons.is_empty() { "passed" } else { "failed" },
            reasons,
        }
    }

    /// The failures of the run.
    pub(crate) fn verdict(&self) -> Result<(), Failure> {
        if self.reasons.is_empty() {
            Ok(())
        } else {
            Err(Failure::SelfTest(self.reasons.join("; ")))
        }
    }

    pub(crate) fn jobs(&self) -> u64 {
        self.rows.iter().map(|row| row.jobs).sum()
    }
}

/// Every error that was found, and its cure.
fn reasons(engine: &Chosen, tested: &Tested) -> Vec<String> {
    let told = |outcome: &Outcome, fault: Fault| {
        let advice = match fault {
            Fault::Wrong { first, .. } => format!(" (again: --jobs {})", first.job.number),
            // Two engines can refuse the same memory: one when its own program opens it, the other
            // when a job starts.
            Fault::Stopped(Stopped { error: contigo::Error::CannotSync { .. }, .. })
                if !engine.is_simulated() && !engine.lab_port =>
            {
                " (in an emulator, which has no caches, --lab-port)".into()
            }
            _ => String::new(),
        };
        format!("{}: {fault}{advice}", outcome.mode)
    };
    tested
        .outcomes
        .iter()
        .flat_map(|outcome| outcome.faults().map(move |fault| told(outcome, fault)))
        .collect()
}

/// The rows of the table, one for each of a mode's numbers.
const NUMBERS: [&str; 6] = ["jobs", "bytes", "MB/s", "mismatches", "canary hits", "interrupts"];

impl Row {
    /// The numbers, in the order of `NUMBERS`.
    fn numbers(&self) -> [String; 6] {
        let interrupts = self.interrupts.map_or("-".to_owned(), |count| count.to_string());
        let [jobs, bytes, mismatches, canary_hits] =
            [self.jobs, self.bytes, self.mismatches, self.canary_hits]
                .map(|number| number.to_string());
        [jobs, bytes, format!("{:.2}", self.mb_per_s), mismatches, canary_hits, interrupts]
    }
}

impl From<&Outcome> for Row {
    fn from(outcome: &Outcome) -> Self {
        let Outcome { mode, seconds, interrupts, tally, .. } = *outcome;
        let Tally { jobs, bytes, mismatches, canary_hits, .. } = tally;
        Self {
            mode,
            jobs,
            bytes,
            mb_per_s: mb_per_s(bytes, seconds),
            mismatches,
            canary_hits,
            interrupts,
        }
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
        line(
            "memory",
            format_args!(
                "{name}, {len_bytes} bytes at {base}, 64 slots of {} bytes",
                self.slot_bytes
            ),
        )?;
        line("engine", format_args!("{}", self.engine.name))?;
        let snoops = match (self.port.coherent, self.port.lab_port) {
            (_, true) => "taken for coherent because of --lab-port",
            (true, false) => "coherent",
            (false, false) => "not coherent",
        };
        line("port", format_args!("{}, {} bits, {snoops}", self.port.name, self.port.addr_bits))?;
        if let Some(descriptors) = &self.descriptors {
            line("driver", format_args!("descriptors: {descriptors}"))?;
        }
        line("seed", format_args!("{}", self.seed))?;
        let modes: Vec<_> =
            ["mode"].into_iter().chain(self.rows.iter().map(|row| row.mode)).collect();
        let mut table = output::table(&modes);
        for (index, what) in NUMBERS.iter().enumerate() {
            let numbers = self.rows.iter().filter_map(|row| row.numbers().into_iter().nth(index));
            table.add_row([(*what).to_owned()].into_iter().chain(numbers));
        }
        writeln!(f, "{table}")?;
        let mut table = output::table(&["tried", "jobs"]);
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
