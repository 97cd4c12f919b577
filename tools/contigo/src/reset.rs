//! `contigo reset`: the reset lines of this machine, and a pulse on one.

use crate::failure::Failure;
use crate::output;
use clap::Args;
use contigo_bringup::machine::Machine;
use contigo_bringup::resets::{
    self, Active, ContigoDevice, GpioLine, Place, PulseError, ResetError, Width,
};
use serde::Serialize;

#[derive(Args, Debug)]
pub(crate) struct Options {
    /// NAME of a GPIO line, CHIP:OFFSET (gpiochip0:78, zynqmp_gpio:78) or contigo:NAME. Without it
    /// the lines are listed
    line: Option<Place>,
    /// The level that holds the core in reset, low or high; a GPIO's has no default
    #[arg(long, value_name = "LEVEL", requires = "line")]
    active: Option<Active>,
    /// The pulse's length in microseconds, a second at most; 10 where it is not said
    #[arg(long, value_name = "N", requires = "line")]
    pulse_us: Option<u32>,
    /// Look whether it would work, and change nothing
    #[arg(long, requires = "line")]
    dry_run: bool,
    /// Reset a contigo device also where a program has it, which gets ENODEV
    #[arg(long, requires = "line")]
    take: bool,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

/// The default width: an AXI core needs 16 cycles of its slowest clock, which is 10 us from 1.6 MHz
/// on.
const PULSE_US: u32 = 10;

/// A line that can be reset.
#[derive(Debug, Serialize)]
struct Entry {
    line: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    chip: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// The user of the line; absent if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    used_by: Option<String>,
}

/// The report of a reset.
#[derive(Debug, Serialize)]
struct Done {
    line: String,
    dry_run: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pulse_us: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    active: Option<String>,
}

impl Entry {
    fn of_gpio(line: GpioLine) -> Self {
        Self {
            line: line.to_string(),
            chip: Some(line.label),
            name: line.name,
            used_by: line.consumer,
        }
    }

    fn of_contigo_device(contigo_device: ContigoDevice) -> Self {
        let used_by = Some(contigo_device.users.join(", ")).filter(|users| !users.is_empty());
        Self { line: format!("contigo:{}", contigo_device.device), chip: None, name: None, used_by }
    }
}

/// Lists the lines, or resets one.
pub(crate) fn reset(options: &Options) -> Result<(), Failure> {
    let machine = Machine::this();
    let Some(place) = &options.line else { return list(&machine, options.json) };
    let width = options.pulse_us.unwrap_or(PULSE_US);
    let done = match place {
        Place::Contigo(name) => by_module(&machine, name, options)?,
        Place::Offset { .. } | Place::Name(_) => {
            by_gpio(&machine, place, Width::from_us(width)?, options)?
        }
    };
    if options.json {
        return output::json(&done);
    }
    let Done { line, dry_run, pulse_us, active } = done;
    let how = match (pulse_us, active) {
        (Some(us), Some(active)) => format!("{active} for {us} us"),
        _ => "by the kernel, held until a program opens it".to_owned(),
    };
    output::text(format_args!(
        "{line}: {} ({how})",
        if dry_run { "would be reset" } else { "reset" }
    ))
}

fn by_module(machine: &Machine, name: &str, options: &Options) -> Result<Done, Failure> {
    if options.pulse_us.is_some() || options.active.is_some() {
        return Err(Failure::Usage(
            "--pulse-us and --active are a GPIO's: the kernel knows a \
            contigo device's lines, and holds them"
                .to_owned(),
        ));
    }
    let contigo_device = ContigoDevice::find(machine, name)?;
    if options.dry_run {
        contigo_device.free(options.take)?;
    } else {
        contigo_device.reset(machine, options.take)?;
    }
    Ok(Done {
        line: format!("contigo:{}", contigo_device.device),
        dry_run: options.dry_run,
        pulse_us: None,
        active: None,
    })
}

fn by_gpio(
    machine: &Machine,
    place: &Place,
    width: Width,
    options: &Options,
) -> Result<Done, Failure> {
    let active = options.active.ok_or_else(|| {
        Failure::Usage(format!(
            "{place}: say the level that holds the core in reset, --active low \
            (aresetn) or --active high"
        ))
    })?;
    if options.take {
        return Err(Failure::Usage(
            "--take is for a contigo device: the kernel takes no GPIO from its user".to_owned(),
        ));
    }
    let done = Done {
        line: place.to_string(),
        dry_run: options.dry_run,
        pulse_us: Some(width.us()),
        active: Some(active.to_string()),
    };
    if options.dry_run {
        GpioLine::choose(&resets::lines(machine)?, place)?;
        return Ok(done);
    }
    let mut line = resets::open(machine, place, active)?;
    line.pulse(width, &mut resets::Delay).map_err(|error| match error {
        PulseError::NotAsserted(error) => ResetError::NotAsserted { line: place.clone(), error },
        PulseError::Held(error) => ResetError::Held { line: place.clone(), error },
    })?;
    Ok(done)
}

fn list(machine: &Machine, json: bool) -> Result<(), Failure> {
    let dev_nodes = ContigoDevice::all(machine).into_iter().map(Entry::of_contigo_device);
    let entries: Vec<_> =
        dev_nodes.chain(resets::lines(machine)?.into_iter().map(Entry::of_gpio)).collect();
    if json {
        return output::json(&entries);
    }
    if entries.is_empty() {
        return output::text(
            "no reset line is here: no GPIO chip in /dev, and no device of the kernel module \
             contigo",
        );
    }
    let mut table = output::table(&["line", "chip", "name", "used by"]);
    for Entry { line, chip, name, used_by } in entries {
        table.add_row([
            line,
            chip.unwrap_or_default(),
            name.unwrap_or_default(),
            used_by.unwrap_or_else(|| "–".to_owned()),
        ]);
    }
    output::text(table)
}
