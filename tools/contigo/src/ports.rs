//! `contigo board --registers` and `contigo board prepare`.

use crate::failure::Failure;
use crate::{output, overlay};
use clap::Args;
use contigo::design::{Design, parameter_number};
use contigo_bringup::bitstream::Family;
use contigo_bringup::machine::Machine;
use contigo_bringup::ports::{self, Cores, DevMem, Fact, Known, Reading, Setter, Verdict};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

#[derive(Args, Debug)]
pub(crate) struct Prepare {
    /// Set the widths that a design has: Vivado's design.hwh
    #[arg(long, value_name = "FILE")]
    design: Option<PathBuf>,
    /// A bitstream runs, whatever the kernel's manager says: U-Boot or a debugger loaded it
    #[arg(long)]
    loaded: bool,
    /// Write. Without it the writes are shown only
    #[arg(long)]
    yes: bool,
    /// Show the writes for a copy of a machine, with a file for its /dev/mem. It is not written
    #[arg(long, value_name = "FOLDER", conflicts_with = "yes")]
    machine: Option<PathBuf>,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// The processors, as Vivado calls them.
const PROCESSORS: [(&str, Family); 2] =
    [("processing_system7", Family::Zynq7000), ("zynq_ultra_ps_e", Family::ZynqMp)];

/// The field that comes before the ports of Zynq-7000.
const SHIFTERS: &str = "level shifters";

type Numbers = BTreeMap<String, u64>;

#[derive(Serialize)]
struct Entry {
    field: &'static str,
    addr: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wanted: Option<String>,
    /// "right", "wrong", "not compared" or "not read".
    verdict: &'static str,
    /// The reason why it was not read, or its cure.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

#[derive(Serialize)]
struct Write {
    field: &'static str,
    addr: String,
    from: String,
    to: String,
}

#[derive(Serialize)]
struct Report {
    /// Incremented when a field changes its meaning or is removed.
    version: u32,
    running: bool,
    registers: Vec<Entry>,
}

#[derive(Serialize)]
struct Prepared {
    version: u32,
    /// Whether the writes were made.
    written: bool,
    writes: Vec<Write>,
    /// Read once the level shifters are on, and then set if wrong.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    behind: Vec<&'static str>,
    /// Wrong or not read, and not settable here.
    left: Vec<Entry>,
}

impl Entry {
    fn of(fact: &Fact) -> Self {
        let field = fact.field;
        let (value, why) = match &fact.reading {
            Reading::Value(value) => (Some(field.say(*value)), None),
            Reading::Held => (
                None,
                Some(
                    "its block is held in reset by the boot code: it was \
                built for another design"
                        .to_owned(),
                ),
            ),
            Reading::Closed => (
                None,
                Some(
                    "closed: no bitstream runs, the level shifters or all clocks are off, or no \
                     design says that this port is used"
                        .to_owned(),
                ),
            ),
            Reading::Failed(error) => (None, Some(error.to_string())),
        };
        let verdict = match fact.verdict {
            Verdict::Right => "right",
            Verdict::Wrong => "wrong",
            Verdict::Unknown => "not compared",
            Verdict::Unread => "not read",
        };
        let cure = (fact.verdict == Verdict::Wrong).then(|| match field.setter {
            Setter::Prepare => "prepare sets it".to_owned(),
            Setter::Boot(cure) => cure.to_owned(),
        });
        let (addr, wanted) =
            (format!("{:#x}", field.addr), fact.wanted.map(|wanted| field.say(wanted)));
        Self { field: field.name, addr, value, wanted, verdict, note: why.or(cure) }
    }
}

fn listed(entries: &[Entry]) -> comfy_table::Table {
    let mut table = output::table(&["field", "register", "has", "should have", "verdict"]);
    for Entry { field, addr, value, wanted, verdict, note } in entries {
        let verdict = note
            .as_ref()
            .map_or_else(|| (*verdict).to_owned(), |note| format!("{verdict}: {note}"));
        let said = |value: &Option<String>| value.clone().unwrap_or_default();
        table.add_row([(*field).to_owned(), addr.clone(), said(value), said(wanted), verdict]);
    }
    table
}

/// Reads the registers, compares them, and prints the result.
pub(crate) fn registers(
    machine: &Machine,
    design: Option<&PathBuf>,
    loaded: bool,
    json: bool,
) -> Result<(), Failure> {
    let open = Open { loaded, writable: false };
    let (facts, running) = with(machine, design, &open, |family, registers, known| {
        Ok((ports::read(family, registers, known), known.running))
    })?;
    let entries: Vec<_> = facts.iter().map(Entry::of).collect();
    let report = Report { version: 1, running, registers: entries };
    output::report(json, &report, |report| listed(&report.registers))?;
    if facts.iter().all(|fact| fact.verdict == Verdict::Unread) {
        return Err(Failure::Usage("no register could be read".to_owned()));
    }
    wrong(&facts)
}

/// Shows the writes, or makes them.
pub(crate) fn prepare(options: &Prepare) -> Result<(), Failure> {
    let (prepared, facts) = prepared(&crate::machine(options.machine.as_ref()), options)?;
    let by_design = options.design.is_some();
    output::report(options.json, &prepared, |prepared| prepared.listed(by_design))?;
    wrong(&facts)
}

/// The writes, made or not, and the fields that stay wrong.
fn prepared(machine: &Machine, options: &Prepare) -> Result<(Prepared, Vec<Fact>), Failure> {
    let open = Open { loaded: options.loaded, writable: options.yes };
    let (mut facts, steps) =
        with(machine, options.design.as_ref(), &open, |family, registers, known| {
            let mut facts = ports::read(family, registers, known);
            let steps = if options.yes {
                ports::prepare(machine, family, registers, known, &mut facts)?
            } else {
                ports::plan(&facts)
            };
            Ok((facts, steps))
        })?;
    let writes: Vec<_> = steps
        .iter()
        .map(|step| Write {
            field: step.field.name,
            addr: format!("{:#x}", step.field.addr),
            from: step.field.say(step.from),
            to: step.field.say(step.to),
        })
        .collect();
    let is_set = |fact: &Fact| steps.iter().any(|step| step.field.name == fact.field.name);
    facts.retain(|fact| !is_set(fact) && is_open(fact));
    // The ports behind the level shifters are read and set only once the shifters are on.
    let mut behind = Vec::new();
    if !options.yes && steps.iter().any(|step| step.field.name == SHIFTERS) {
        behind = facts
            .extract_if(.., |fact| matches!(fact.reading, Reading::Closed))
            .map(|fact| fact.field.name)
            .collect();
    }
    let left = facts.iter().map(Entry::of).collect();
    Ok((Prepared { version: 1, written: options.yes, writes, behind, left }, facts))
}

impl Prepared {
    fn listed(&self, by_design: bool) -> String {
        let mut text = Vec::new();
        if self.writes.is_empty() {
            let design = if by_design { "" } else { "; --design compares the ports' widths, too" };
            text.push(format!("nothing to set{design}"));
        } else {
            let mut table = output::table(&["field", "register", "from", "to"]);
            for Write { field, addr, from, to } in &self.writes {
                table.add_row([*field, addr, from, to]);
            }
            text.push(table.to_string());
            if !self.behind.is_empty() {
                let names = self.behind.join(", ");
                text.push(format!(
                    "behind the level shifters --yes reads these, too, and sets \
                    those that are wrong: {names}"
                ));
            }
            text.push(
                if self.written {
                    "set, and read back"
                } else {
                    "nothing was written: --yes writes"
                }
                .to_owned(),
            );
        }
        if !self.left.is_empty() {
            text.push(format!("not to be set here:\n{}", listed(&self.left)));
        }
        text.join("\n")
    }
}

/// Whether a field that should have a value has another one, or its value is not known.
fn is_open(fact: &Fact) -> bool {
    fact.wanted.is_some() && fact.verdict != Verdict::Right
}

fn wrong(facts: &[Fact]) -> Result<(), Failure> {
    let names: Vec<_> =
        facts.iter().filter(|fact| is_open(fact)).map(|fact| fact.field.name).collect();
    if !names.is_empty() {
        let names = names.join(", ");
        return Err(Failure::Usage(format!(
            "wrong or unread: {names}; start no job until they are right (contigo board prepare)"
        )));
    }
    Ok(())
}

/// The access to the registers.
struct Open {
    /// The caller states that a bitstream runs.
    loaded: bool,
    /// The caller will write.
    writable: bool,
}

/// Calls `then` with the machine's registers and everything that is known of the machine.
fn with<T>(
    machine: &Machine,
    design: Option<&PathBuf>,
    open: &Open,
    then: impl FnOnce(Family, &DevMem, &Known<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    // An error in the file is reported before errors of the machine.
    let design = design.map(|file| numbers(file)).transpose()?;
    let family = ports::family(machine)?;
    if let Some((of, _)) = design.as_ref().filter(|(of, _)| *of != family) {
        return Err(Failure::Usage(format!(
            "the design is for a {of}, and this machine is a {family}"
        )));
    }
    let number = |name: &str| design.as_ref().and_then(|(_, numbers)| numbers.get(name).copied());
    let registers = DevMem::open(machine, open.writable)?;
    let running = open.loaded || ports::is_running(machine);
    let (stopped, cores) = (ports::is_stopped(machine), Cores::of(machine, family));
    let known = Known { design: design.is_some().then_some(&number), running, stopped, cores };
    then(family, &registers, &known)
}

/// The current fields, compared with a design if one is given.
pub(crate) fn facts(machine: &Machine, design: Option<&PathBuf>) -> Result<Vec<Fact>, Failure> {
    with(machine, design, &Open { loaded: false, writable: false }, |family, registers, known| {
        Ok(ports::read(family, registers, known))
    })
}

/// Checks that a file is a design of a processor that is known here.
pub(crate) fn is_design(file: &Path) -> Result<(), Failure> {
    numbers(file).map(drop)
}

/// The parameters of a design's processor.
fn numbers(file: &Path) -> Result<(Family, Numbers), Failure> {
    let refused = |why: String| Failure::Usage(format!("{}: {why}", file.display()));
    let text = overlay::source(file)?;
    let design = Design::read(&text).map_err(|error| refused(error.to_string()))?;
    let known =
        |ip: &str| PROCESSORS.iter().find(|&&(name, _)| name == ip).map(|&(_, family)| family);
    let found = design.instances().find_map(|core| Some((known(core.ip())?, core)));
    let (family, core) =
        found.ok_or_else(|| refused("no processor of Zynq is in it".to_owned()))?;
    let numbers = core
        .parameters()
        .filter_map(|(name, value)| Some((name.to_owned(), parameter_number(value)?)))
        .collect();
    Ok((family, numbers))
}

#[cfg(test)]
mod tests;
