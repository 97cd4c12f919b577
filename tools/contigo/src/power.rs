//! `contigo power`: the rails that this board measures.

use crate::failure::Failure;
use crate::output;
use clap::Args;
use contigo_bringup::machine::Machine;
use contigo_bringup::plain;
use contigo_bringup::power::{self, Monitor, Rail};
use serde::Serialize;
use std::path::PathBuf;

/// The longest name of a rail or a chip, in letters. The kernel's own names are shorter.
const NAME_MAX: usize = 64;

#[derive(Args, Debug)]
pub(crate) struct Options {
    /// A monitor that the kernel has no driver for: ina260@BUS:ADDR, or with the board's resistor
    /// ina226@BUS:ADDR,shunt_uohm=N or ina233@…; ADDR as 0x40. More than one may be given
    #[arg(long, value_name = "MONITOR")]
    monitor: Vec<Monitor>,
    /// Look at a copy of a machine instead of this one
    #[arg(long, value_name = "FOLDER")]
    machine: Option<PathBuf>,
    /// Print a JSON array instead of a table
    #[arg(long)]
    json: bool,
}

/// One rail, and its power now.
#[derive(Debug, Serialize)]
struct Entry {
    rail: String,
    chip: String,
    /// The monitor's own interval between two values.
    #[serde(skip_serializing_if = "Option::is_none")]
    update_ms: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    watts: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl Entry {
    #[allow(clippy::cast_precision_loss, reason = "a rail of a board has less than a gigawatt")]
    fn of(rail: &Rail) -> Self {
        let (watts, error) = match rail.open().and_then(|mut gauge| gauge.microwatts()) {
            Ok(microwatts) => (Some(microwatts as f64 / 1e6), None),
            Err(error) => (None, Some(error.to_string())),
        };
        Self {
            rail: plain(&rail.name, NAME_MAX),
            chip: plain(&rail.chip, NAME_MAX),
            update_ms: rail.update_ms,
            watts,
            error,
        }
    }
}

/// The rails that the kernel measures, and the rails of these monitors.
pub(crate) fn rails(machine: &Machine, monitors: &[Monitor]) -> Vec<Rail> {
    power::rails(machine)
        .into_iter()
        .chain(monitors.iter().map(|monitor| Rail::of(machine, monitor)))
        .collect()
}

pub(crate) fn power(options: &Options) -> Result<(), Failure> {
    let entries: Vec<_> = rails(&crate::machine(options.machine.as_ref()), &options.monitor)
        .iter()
        .map(Entry::of)
        .collect();
    if options.json {
        return output::json(&entries);
    }
    if entries.is_empty() {
        return output::text(
            "no rail is measured here: no driver of the kernel has a power monitor \
             (/sys/class/hwmon)",
        );
    }
    let mut table = output::table(&["rail", "chip", "power", "new value every"]);
    for Entry { rail, chip, update_ms, watts, error } in &entries {
        let power = watts
            .map_or_else(|| error.clone().unwrap_or_default(), |watts| format!("{watts:.3} W"));
        let update = update_ms.map_or_else(|| "–".to_owned(), |ms| format!("{ms} ms"));
        table.add_row([rail, chip, &power, &update]);
    }
    output::text(table)
}
