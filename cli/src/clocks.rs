//! `contigo clocks`: the clocks of this machine's fabric, against a design, and one of them set.

use crate::{board, failure::Failure, output, table};
use clap::Args;
use contigo::design::Design;
use contigo_bringup::clocks::{self, Checked, Clock, Control, Fabric, Verdict, Wanted};
use serde::Serialize;
use std::{fs, path::PathBuf};

/// The options of `clocks`.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Compare with what a design was built for: Vivado's design.hwh. Status 1 where a clock is off
    /// or too fast
    #[arg(long, value_name = "FILE")]
    design: Option<PathBuf>,
    /// Set one: fclk0=100000000 or pl0=100000000, in Hz. Nothing may use the fabric
    #[arg(long, value_name = "CLOCK=HZ", value_parser = setting, conflicts_with = "design")]
    set: Option<(Fabric, u64)>,
    /// All of the kernel's clocks, not the fabric's and the guarded devices' only
    #[arg(long)]
    all: bool,
    /// Look at a copy of a machine instead of this one, with its /sys/kernel/debug/clk
    #[arg(long, value_name = "FOLDER", conflicts_with = "set")]
    machine: Option<PathBuf>,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

fn setting(text: &str) -> Result<(Fabric, u64), String> {
    let (name, hz) = text.split_once('=').ok_or("write CLOCK=HZ")?;
    let fabric = Fabric::named(name).ok_or("the clocks are fclk0 to fclk3, and pl0 to pl3")?;
    Ok((fabric, hz.parse().map_err(|_| "the rate is in Hz: 100000000")?))
}

#[derive(Debug, Serialize)]
struct Entry {
    clock: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<String>,
    hz: u64,
    enables: u32,
    /// Absent: the kernel cannot see it.
    #[serde(skip_serializing_if = "Option::is_none")]
    running: Option<bool>,
    users: Vec<String>,
    /// The guarded devices that have it from the device tree.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tree: Vec<Compared>,
}

impl Entry {
    fn of(clock: Clock, wanted: &[Checked]) -> Self {
        let tree = wanted.iter().filter(|checked| checked.clock.as_ref() == Some(&clock)).map(Compared::of_guard).collect();
        let Clock { name, parent, hz, enables, running, consumers } = clock;
        Self { clock: name, parent, hz, enables, running, users: consumers, tree }
    }
}

#[derive(Debug, Serialize)]
struct Compared {
    core: String,
    wanted_hz: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    clock: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hz: Option<u64>,
    verdict: String,
}

impl Compared {
    fn of(checked: &Checked) -> Self {
        Self {
            core: checked.wanted.who.clone(),
            wanted_hz: checked.wanted.hz,
            clock: checked.clock.as_ref().map(|clock| clock.name.clone()),
            hz: checked.clock.as_ref().map(|clock| clock.hz),
            verdict: checked.verdict.to_string(),
        }
    }

    /// The same for a guarded device, whose clocks the kernel's module turns on for its program.
    fn of_guard(checked: &Checked) -> Self {
        let off = (checked.verdict == Verdict::Off).then(|| "off until a program opens it".to_owned());
        let compared = Self::of(checked);
        Self { verdict: off.unwrap_or(compared.verdict), ..compared }
    }
}

#[derive(Debug, Serialize)]
struct Set {
    clock: String,
    hz: u64,
}

/// Prints the clocks, compares them, or sets one.
pub(crate) fn clocks(options: &Options) -> Result<(), Failure> {
    let machine = board::machine(options.machine.as_ref());
    if let Some((fabric, hz)) = options.set {
        let hz = Control::find(&machine, fabric)?.set(&machine, hz)?;
        let set = Set { clock: fabric.to_string(), hz };
        return if options.json { output::json(&set) } else { output::text(format_args!("{fabric}: {}", rate(hz))) };
    }
    let clocks = match &options.design {
        // A file that is wrong is said before the machine is.
        Some(file) => {
            let wanted = wanted(file)?;
            return compared(&clocks::check(&clocks::clocks(&machine)?, &wanted), options.json);
        }
        None => clocks::clocks(&machine)?,
    };
    let guards = machine.list("sys/class/contigo");
    let shown =
        |clock: &Clock| options.all || Fabric::named(&clock.name).is_some() || clock.consumers.iter().any(|user| guards.contains(user));
    let tree = clocks::check(&clocks, &clocks::wanted(&machine));
    let entries: Vec<_> = clocks.iter().filter(|clock| shown(clock)).map(|clock| Entry::of(clock.clone(), &tree)).collect();
    if options.json {
        return output::json(&entries);
    }
    if entries.is_empty() {
        return output::text("no clock here is a fabric's or a guarded device's; --all has the others");
    }
    let mut table = table::new(&["clock", "from", "rate", "runs", "turned on by", "users"]);
    for Entry { clock, parent, hz, enables, running, users, .. } in entries {
        let running = running.map_or("?", |running| if running { "yes" } else { "no" });
        table.add_row([clock, parent.unwrap_or_default(), rate(hz), running.to_owned(), enables.to_string(), users.join("\n")]);
    }
    output::text(table)?;
    if tree.is_empty() {
        return Ok(());
    }
    output::text(listed("guarded device", "the tree wants", tree.iter().map(Compared::of_guard).collect()))
}

/// The clocks that a design's cores have of the processor.
fn wanted(file: &PathBuf) -> Result<Vec<Wanted>, Failure> {
    let refused = |why: String| Failure::Usage(format!("{}: {why}", file.display()));
    let text = fs::read(file).map_err(|error| refused(error.to_string()))?;
    let design = Design::read(&text).map_err(|error| refused(error.to_string()))?;
    let mut all = Vec::new();
    for core in design.cores() {
        all.extend(core.clocks().filter_map(|clock| {
            let fabric = Fabric::new(clock.fabric?)?;
            let from_processor = design.core(clock.from).is_ok_and(|from| matches!(from.ip(), "processing_system7" | "zynq_ultra_ps_e"));
            Some(Wanted { who: format!("{} {}", core.name(), clock.pin), fabric, hz: clock.hz, generated: !from_processor })
        }));
    }
    Ok(all)
}

fn compared(checked: &[Checked], json: bool) -> Result<(), Failure> {
    let entries: Vec<_> = checked.iter().map(Compared::of).collect();
    if json {
        output::json(&entries)?;
    } else {
        output::text(listed("core's pin", "built for", entries))?;
    }
    match checked.iter().filter(|checked| checked.verdict.is_wrong()).count() {
        0 => Ok(()),
        wrong => Err(Failure::Usage(format!("{wrong} clocks are off or too fast for the design: touch none of its cores before"))),
    }
}

fn listed(who: &str, wanted: &str, entries: Vec<Compared>) -> comfy_table::Table {
    let mut table = table::new(&[who, wanted, "clock", "has", "verdict"]);
    for Compared { core, wanted_hz, clock, hz, verdict } in entries {
        table.add_row([core, rate(wanted_hz), clock.unwrap_or_default(), hz.map(rate).unwrap_or_default(), verdict]);
    }
    table
}

#[allow(clippy::cast_precision_loss, reason = "a rate is below 2^53 Hz")]
fn rate(hz: u64) -> String {
    if hz == 0 { "?".to_owned() } else { format!("{:.3} MHz", hz as f64 / 1e6) }
}
