//! `contigo doctor`: what keeps DMA from working on a machine, and what to do.

use crate::failure::Failure;
use crate::selftest::{self, Probed};
use crate::{output, ports};
use clap::Args;
use contigo_bringup::board::Board;
use contigo_bringup::doctor::{self, Finding, Verdict};
use contigo_bringup::machine::Machine;
use contigo_bringup::plain;
use contigo_bringup::ports::stuck;
use serde::Serialize;
use std::borrow::Cow;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Look at a copy of a machine instead of this one; docs/doctor.md lists its folders
    #[arg(long, value_name = "FOLDER")]
    machine: Option<PathBuf>,
    /// Copy with a DMA engine of the SoC that no other program uses, and compare every byte: does
    /// the port do as the tree says? It drives hardware, for two seconds at most. As root it reads
    /// the registers around the fabric's ports, too
    #[arg(long, conflicts_with = "machine")]
    probe: bool,
    /// Compare these registers with a design: Vivado's design.hwh
    #[arg(long, value_name = "FILE", requires = "probe")]
    design: Option<PathBuf>,
    /// Show what is fine and what was skipped, too
    #[arg(long)]
    all: bool,
    /// Print one JSON object with every check instead of a table
    #[arg(long)]
    json: bool,
}

/// The columns beside the names: area, verdict, and enough room for the text.
const OTHERS: u16 = 54;

/// The name of the check that measures a port.
const MEASURED: &str = "port-measured";

/// The longest text of a measurement, in letters.
const FOUND_MAX: usize = 400;

#[derive(Serialize)]
struct Report {
    /// Incremented when a field changes its meaning or is removed.
    version: u32,
    faults: usize,
    notes: usize,
    skipped: usize,
    checks: Vec<Entry>,
}

#[derive(Serialize)]
struct Entry {
    id: Cow<'static, str>,
    area: &'static str,
    title: &'static str,
    verdict: &'static str,
    found: String,
    cause: &'static str,
    cure: &'static str,
    source: &'static str,
}

impl Entry {
    fn of(finding: Finding) -> Self {
        let doctor::Check { id, title, cause, cure, source, .. } = *finding.check;
        Self {
            id: id.into(),
            area: finding.area,
            title,
            verdict: finding.outcome.verdict.name(),
            found: finding.outcome.found,
            cause,
            cure,
            source,
        }
    }

    /// The row of an engine's measured port.
    fn probed(measured: Result<Probed, String>) -> Self {
        let (verdict, found) = match measured {
            Ok(Probed { right: true, found, .. }) => (Verdict::Fine, found),
            Ok(Probed { right: false, found, .. }) => (Verdict::Fault, found),
            Err(why) => (Verdict::Skipped, format!("not measurable: {why}")),
        };
        Self {
            id: MEASURED.into(),
            area: "coherency",
            title: "each copy through an engine's port ends, with every byte right",
            verdict: verdict.name(),
            found: plain(&found, FOUND_MAX),
            cause: "The tree or the board's facts say that the port snoops, and it does not, or \
                    its memory is another one.",
            cure: "contigo selftest shows the job; take dma-coherent from the engine's node, or \
                   correct the port",
            source: "https://github.com/ikwzm/udmabuf/issues/94",
        }
    }
}

/// A row for the engine's port, and one for each other port of the board, which only a core of the
/// fabric could measure. No engine is started after a register that did not answer.
fn probed(machine: &Machine, stuck: Option<u64>) -> Vec<Entry> {
    if let Some(addr) = stuck {
        return vec![Entry::probed(Err(format!(
            "no engine is started while a processor waits for {addr:#x}: restart the board"
        )))];
    }
    let measured = selftest::probe();
    let own = measured.as_ref().map_or("", |probed| probed.port);
    let names = Board::of(machine).known.ports().into_iter().filter(|name| *name != own);
    let why = || Err("no idle engine stands on it".to_owned());
    let others: Vec<_> = names
        .map(|name| Entry { id: format!("{MEASURED}:{name}").into(), ..Entry::probed(why()) })
        .collect();
    std::iter::once(Entry::probed(measured)).chain(others).collect()
}

/// Runs the checks, and prints them: status 1 if there is a fault.
pub(crate) fn doctor(options: &Options) -> Result<ExitCode, Failure> {
    let machine = crate::machine(options.machine.as_ref());
    // An error in the design ends the command. Other reasons for missing registers are a row.
    let design = options.design.as_ref();
    design.map_or(Ok(()), |file| ports::is_design(file))?;
    let registers = options
        .probe
        .then(|| ports::facts(&machine, design).map_err(|failure| failure.to_string()));
    let stuck = registers
        .as_ref()
        .and_then(|registers| registers.as_ref().ok())
        .and_then(|facts| stuck(facts));
    let mut checks: Vec<_> =
        doctor::doctor_with(&machine, registers)?.into_iter().map(Entry::of).collect();
    if options.probe {
        checks.extend(probed(&machine, stuck));
    }
    let count =
        |verdict: Verdict| checks.iter().filter(|entry| entry.verdict == verdict.name()).count();
    let (faults, notes, skipped) =
        (count(Verdict::Fault), count(Verdict::Note), count(Verdict::Skipped));
    let report = Report { version: 1, faults, notes, skipped, checks };
    output::report(options.json, &report, |report| report.listed(options.all))?;
    Ok(ExitCode::from(u8::from(faults > 0)))
}

impl Report {
    fn listed(&self, all: bool) -> String {
        let bad = |entry: &&Entry| ["fault", "note"].contains(&entry.verdict);
        let mut table = output::table(&["check", "area", "verdict", "found"]);
        for entry in self.checks.iter().filter(|entry| all || bad(entry)) {
            table.add_row([&entry.id, entry.area, entry.verdict, &entry.found]);
        }
        output::keep_names(&mut table, OTHERS);
        let mut text = if table.row_count() > 0 { format!("{table}\n\n") } else { String::new() };
        for Entry { id, title, verdict, found, cause, cure, source, .. } in
            self.checks.iter().filter(bad)
        {
            text += &format!(
                "{verdict} {id}: expected: {title}\n  found  {found}\n  cause  {cause}\n  cure   \
                 {cure}\n  from   {source}\n\n"
            );
        }
        let (all, looked) = (self.checks.len(), self.checks.len() - self.skipped);
        text + &format!(
            "faults: {}, notes: {}, looked at: {looked} of {all}; the rest does not apply or \
             cannot be read",
            self.faults, self.notes
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_bytes_are_a_fault_of_the_port() {
        for (right, verdict) in [(true, "fine"), (false, "fault")] {
            let probed = Probed { right, port: "sim", found: "200 copies".to_owned() };
            assert_eq!(Entry::probed(Ok(probed)).verdict, verdict);
        }
        assert_eq!(Entry::probed(Err("no engine".into())).verdict, "skipped");
    }

    #[test]
    fn no_engine_starts_after_dead_register() {
        let rows = probed(&Machine::copy("/nowhere"), Some(0xf800_9000));
        let said: Vec<_> =
            rows.iter().map(|row| (&*row.id, row.verdict, row.found.as_str())).collect();
        let why = "not measurable: no engine is started while a processor waits for 0xf8009000: \
                   restart the board";
        assert_eq!(said, [(MEASURED, "skipped", why)]);
    }
}
