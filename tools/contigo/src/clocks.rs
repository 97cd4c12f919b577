//! `contigo clocks`: compares the clocks of this machine's fabric with a design, and sets one.

use crate::failure::Failure;
use crate::{output, overlay};
use clap::Args;
use contigo::design::Design;
use contigo_bringup::clocks::{self, Checked, Clock, Control, Crystal, Fabric, Verdict, Wanted};
use serde::Serialize;
use std::path::{Path, PathBuf};

#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Compare with what a design was built for: Vivado's design.hwh. Status 1 where a clock is off
    /// or too fast
    #[arg(long, value_name = "FILE")]
    design: Option<PathBuf>,
    /// Set one: fclk0=100000000 or pl0=100000000, in Hz. Nothing may use the fabric
    #[arg(long, value_name = "CLOCK=HZ", value_parser = setting, conflicts_with = "design")]
    set: Option<(Fabric, u64)>,
    /// All of the kernel's clocks, not the crystal's, the fabric's and the contigo devices' only
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
    /// Absent if the kernel cannot see it.
    #[serde(skip_serializing_if = "Option::is_none")]
    running: Option<bool>,
    users: Vec<String>,
    /// The contigo devices that the tree gives this clock, and the board that has this crystal.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tree: Vec<Compared>,
}

impl Entry {
    fn of(clock: Clock, wanted: &[Checked]) -> Self {
        let tree = wanted
            .iter()
            .filter(|checked| checked.clock.as_ref() == Some(&clock))
            .map(Compared::of_contigo_device)
            .collect();
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

    /// The entry of a contigo device, whose clocks the kernel module turns on for its program.
    fn of_contigo_device(checked: &Checked) -> Self {
        let off =
            (checked.verdict == Verdict::Off).then(|| "off until a program opens it".to_owned());
        let compared = Self::of(checked);
        Self { verdict: off.unwrap_or(compared.verdict), ..compared }
    }

    /// The crystal, by the board and by the kernel.
    fn of_crystal(crystal: &Crystal) -> Self {
        Self {
            core: format!("the crystal of {}", crystal.board),
            wanted_hz: crystal.board_hz,
            clock: Some(crystal.clock.clone()),
            hz: Some(crystal.tree_hz),
            verdict: if crystal.is_right() { "right" } else { "wrong, and so is every rate" }
                .to_owned(),
        }
    }
}

#[derive(Debug, Serialize)]
struct Set {
    clock: String,
    hz: u64,
}

pub(crate) fn clocks(options: &Options) -> Result<(), Failure> {
    let machine = crate::machine(options.machine.as_ref());
    if let Some((fabric, hz)) = options.set {
        // With a wrong crystal, the kernel would set another rate than it reports.
        reckoned(Crystal::of(&machine))?;
        let hz = Control::find(&machine, fabric)?.set(&machine, hz)?;
        let set = Set { clock: fabric.to_string(), hz };
        return output::report(options.json, &set, |_| format!("{fabric}: {}", rate(hz)));
    }
    let clocks = match &options.design {
        // An error in the file is reported before errors of the machine.
        Some(file) => {
            let wanted = wanted(file)?;
            let judged =
                compared(&clocks::check(&clocks::clocks(&machine)?, &wanted), options.json);
            // A wrong crystal explains why the other clocks are wrong.
            return reckoned(Crystal::of(&machine)).and(judged);
        }
        None => clocks::clocks(&machine)?,
    };
    let dev_nodes = machine.list("sys/class/contigo");
    let crystal = Crystal::of(&machine);
    let is_crystal =
        |clock: &Clock| crystal.as_ref().is_some_and(|crystal| crystal.clock == clock.name);
    let shown = |clock: &Clock| {
        let ours = Fabric::named(&clock.name).is_some()
            || clock.consumers.iter().any(|user| dev_nodes.contains(user));
        options.all || ours || is_crystal(clock)
    };
    let tree = clocks::check(&clocks, &clocks::wanted(&machine));
    let mut entries: Vec<_> = clocks
        .iter()
        .filter(|clock| shown(clock))
        .map(|clock| Entry::of(clock.clone(), &tree))
        .collect();
    let mut wanted: Vec<_> = tree.iter().map(Compared::of_contigo_device).collect();
    if let Some(crystal) = &crystal {
        wanted.insert(0, Compared::of_crystal(crystal));
        let own = entries.iter_mut().filter(|entry| entry.clock == crystal.clock);
        own.for_each(|entry| entry.tree.push(Compared::of_crystal(crystal)));
    }
    if options.json {
        output::json(&entries)?;
        return reckoned(crystal);
    }
    if entries.is_empty() && crystal.is_none() {
        return output::text(
            "no clock here is a fabric's or a contigo device's; --all has the others",
        );
    }
    let mut table = output::table(&["clock", "from", "rate", "runs", "turned on by", "users"]);
    for Entry { clock, parent, hz, enables, running, users, .. } in entries {
        let running = running.map_or("?", |running| if running { "yes" } else { "no" });
        table.add_row([
            clock,
            parent.unwrap_or_default(),
            rate(hz),
            running.to_owned(),
            enables.to_string(),
            users.join("\n"),
        ]);
    }
    output::text(table)?;
    if !wanted.is_empty() {
        output::text(listed("who", "wants", wanted))?;
    }
    reckoned(crystal)
}

/// Refuses a device tree with another crystal than the board's.
fn reckoned(crystal: Option<Crystal>) -> Result<(), Failure> {
    let Some(Crystal { board, board_hz, place, tree_hz, .. }) =
        crystal.filter(|crystal| !crystal.is_right())
    else {
        return Ok(());
    };
    Err(Failure::Usage(format!(
        "the crystal of {board} has {board_hz} Hz, and {place} is {tree_hz}: every rate is wrong \
         by that factor; mend it in the tree"
    )))
}

/// The processor's clocks that a design's cores use.
fn wanted(file: &Path) -> Result<Vec<Wanted>, Failure> {
    let refused = |why: String| Failure::Usage(format!("{}: {why}", file.display()));
    let text = overlay::source(file)?;
    let design = Design::read(&text).map_err(|error| refused(error.to_string()))?;
    let mut all = Vec::new();
    for core in design.cores() {
        all.extend(core.clocks().filter_map(|clock| {
            let fabric = Fabric::new(clock.fabric?)?;
            let from_processor = design
                .core(clock.from)
                .is_ok_and(|from| matches!(from.ip(), "processing_system7" | "zynq_ultra_ps_e"));
            let words = if clock.hz == 0 && !clock.said.is_empty() {
                format!(" (`{}` is no rate)", clock.said)
            } else {
                String::new()
            };
            Some(Wanted {
                who: format!("{} {}{words}", core.name(), clock.pin),
                fabric,
                hz: clock.hz,
                generated: !from_processor,
            })
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
        wrong => Err(Failure::Usage(format!(
            "{wrong} clocks are off or too fast for the design: touch none of its cores before"
        ))),
    }
}

fn listed(who: &str, wanted: &str, entries: Vec<Compared>) -> comfy_table::Table {
    let mut table = output::table(&[who, wanted, "clock", "has", "verdict"]);
    for Compared { core, wanted_hz, clock, hz, verdict } in entries {
        table.add_row([
            core,
            rate(wanted_hz),
            clock.unwrap_or_default(),
            hz.map(rate).unwrap_or_default(),
            verdict,
        ]);
    }
    table
}

#[allow(clippy::cast_precision_loss, reason = "a rate is below 2^53 Hz")]
fn rate(hz: u64) -> String {
    if hz == 0 { "?".to_owned() } else { format!("{:.3} MHz", hz as f64 / 1e6) }
}
