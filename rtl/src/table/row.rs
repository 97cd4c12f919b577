//! A row of the table, as text and as JSON.

use super::{Case, Setting, TableError};
use crate::RtlModel;
use crate::axi::Finding;
use crate::core::{Core, NoCore, PowerOn};
use contigo::sim::{SimBoard, SimDevice};
use std::fmt;
use std::time::Instant;

/// The rules broken that a row names; it counts the others.
const SHOWN: usize = 3;

/// The counts of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tally {
    /// Jobs that ran to their end, and whose outputs were compared.
    pub jobs: u64,
    /// Those with another output than the oracle's.
    pub mismatches: u64,
    /// Accesses of the core to bytes that were not handed over to it, or after its job's end. A
    /// read counts, too.
    pub stray: u64,
    /// Jobs that were stopped at a random moment.
    pub stops: u64,
    /// Lines that the runtime forgot to sync, on either side.
    pub syncs_missing: u64,
    /// The rules of AXI that the core broke.
    pub findings: Vec<Finding>,
    /// The core's clock.
    pub cycles: u64,
}

impl Tally {
    /// Takes the counts of the board and of the core, at the end of a run: a wrong access fails the
    /// row, and no job.
    pub(super) fn judge(
        &mut self,
        board: &SimBoard,
        device: &SimDevice<RtlModel>,
    ) -> Result<(), TableError> {
        let counts = board.counts();
        self.stray = counts.unowned_accesses + counts.stray_accesses;
        self.syncs_missing = counts.evictions + counts.lost_writes;
        device.model(|model| {
            (self.findings, self.cycles) = (model.findings().to_vec(), model.cycle())
        })?;
        Ok(())
    }

    /// Nothing went wrong.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.mismatches + self.stray + self.syncs_missing == 0 && self.findings.is_empty()
    }
}

/// A row: a core, behind a port, in one kind of memory.
#[derive(Debug)]
pub struct Row {
    core: &'static str,
    port: &'static str,
    stalls: &'static str,
    tally: Result<Tally, TableError>,
    seconds: f64,
}

impl Row {
    /// The titles of its columns.
    pub const TITLES: &str = "core         port          stalls    jobs  mismatches  stray \
        writes  stops  rules broken  seconds";

    /// Runs so many jobs.
    #[must_use]
    pub fn run(case: &Case, setting: &Setting, jobs: u64) -> Self {
        let since = Instant::now();
        let tally = (case.run)(setting, jobs);
        let port = if setting.coherent { "coherent" } else { "not coherent" };
        Self {
            core: case.core,
            port,
            stalls: setting.stalls,
            tally,
            seconds: since.elapsed().as_secs_f64(),
        }
    }

    /// Says why this core has no rows; `None`: it is here.
    #[must_use]
    pub fn skipped(case: &Case) -> Option<NoCore> {
        Core::open(case.core, PowerOn::Zeros).err()
    }

    /// Nothing went wrong.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.tally.as_ref().is_ok_and(Tally::is_good)
    }

    /// As a JSON object.
    #[must_use]
    pub fn json(&self) -> String {
        let Self { core, port, stalls, tally, seconds } = self;
        let head = format!(
            "{{\"core\":\"{core}\",\"port\":\"{port}\",\"stalls\":\"{stalls}\",\"seconds\":{seconds:.1}"
        );
        match tally {
            Ok(Tally { jobs, mismatches, stray, stops, syncs_missing, findings, cycles }) => {
                format!(
                    "{head},\"jobs\":{jobs},\"mismatches\":{mismatches},\"stray_writes\":{stray},\"stops\":{stops},\
                 \"syncs_missing\":{syncs_missing},\"rules_broken\":{},\"cycles\":{cycles}}}",
                    findings.len()
                )
            }
            Err(error) => {
                format!("{head},\"error\":\"{}\"}}", error.to_string().replace(['"', '\\'], "'"))
            }
        }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { core, port, stalls, tally, seconds } = self;
        write!(f, "{core:<12} {port:<13} {stalls:<8}")?;
        match tally {
            Ok(Tally { jobs, mismatches, stray, stops, syncs_missing, findings, .. }) => {
                write!(
                    f,
                    " {jobs:>5} {mismatches:>11} {stray:>13} {stops:>6} {:>13} {seconds:>8.1}",
                    findings.len()
                )?;
                if *syncs_missing > 0 {
                    write!(f, "\n  {syncs_missing} lines were not synced")?;
                }
                findings.iter().take(SHOWN).try_for_each(|finding| write!(f, "\n  {finding}"))?;
                if findings.len() > SHOWN {
                    write!(f, "\n  and {} more", findings.len() - SHOWN)
                } else {
                    Ok(())
                }
            }
            Err(error) => write!(f, " failed: {error}"),
        }
    }
}
