//! The rails that the kernel measures.

use super::{Gauge, Monitor, PowerError};
use crate::machine::{Files, Machine};

const CLASS: &str = "sys/class/hwmon";

/// Channels of one monitor; a regulator on PMBus has the most, some ten pages.
const CHANNELS_MAX: usize = 32;

/// A rail whose power can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rail {
    /// A name for people: the monitor's own label, or its chip and folder, and the channel's label
    /// where it has one. `ina260-u14`, `ina3221@hwmon1 VDD_IN`.
    pub name: String,
    /// The kernel's name of the chip: `ina260`.
    pub chip: String,
    /// How often the chip has a new value, in milliseconds, where its driver reports it.
    pub update_ms: Option<u32>,
    from: Reading,
    files: Files,
}

/// The files that tell a rail's power.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// Microwatts.
    Power(String),
    /// Millivolts and milliamperes of one channel.
    Product { millivolts: String, milliamperes: String },
    /// A monitor on a bus.
    Chip { bus: String, monitor: Monitor },
}

impl Rail {
    /// A monitor on an I2C bus, which no driver of the kernel has.
    #[must_use]
    pub fn of(machine: &Machine, monitor: &Monitor) -> Self {
        let from =
            Reading::Chip { bus: format!("dev/i2c-{}", monitor.bus), monitor: monitor.clone() };
        Self {
            name: monitor.to_string(),
            chip: monitor.model.to_string(),
            update_ms: None,
            from,
            files: machine.files().clone(),
        }
    }

    /// Opens the rail's files, for readings with no further look-up.
    ///
    /// # Errors
    /// [`PowerError::Open`]: the monitor has gone. Of a monitor on a bus: [`PowerError::Bus`],
    /// [`PowerError::Chip`], [`PowerError::InUse`].
    pub fn open(&self) -> Result<Gauge, PowerError> {
        Gauge::open(&self.files, &self.from)
    }
}

/// The rails of a machine, by monitor and channel. None where no driver has a monitor.
///
/// A channel counts where it has `powerN_input`. INA3221 has none: there it is the product of
/// `inN_input` and `currN_input` (Linux, `Documentation/hwmon/ina3221.rst`).
#[must_use]
pub fn rails(machine: &Machine) -> Vec<Rail> {
    machine.list(CLASS).iter().flat_map(|folder| of_monitor(machine, folder)).collect()
}

fn of_monitor(machine: &Machine, folder: &str) -> Vec<Rail> {
    let at = |file: &str| format!("{CLASS}/{folder}/{file}");
    let Some(chip) = machine.text(at("name")) else { return Vec::new() };
    let monitor = machine.text(at("label")).unwrap_or_else(|| format!("{chip}@{folder}"));
    let update_ms = machine.text(at("update_interval")).and_then(|text| text.parse().ok());
    let rail = |label: Option<String>, from| {
        let name = label.map_or_else(|| monitor.clone(), |label| format!("{monitor} {label}"));
        Rail { name, chip: chip.clone(), update_ms, from, files: machine.files().clone() }
    };
    let file = |file: String| Some(at(&file)).filter(|path| machine.has(path));
    let label = |kind: &str, channel| machine.text(at(&format!("{kind}{channel}_label")));
    (1..=CHANNELS_MAX)
        .filter_map(|channel| {
            if let Some(power) = file(format!("power{channel}_input")) {
                return Some(rail(label("power", channel), Reading::Power(power)));
            }
            // Only of this chip it is said that both numbers are of one channel. It has three:
            // in4 is the voltage at the first one's shunt, and curr4 the sum of all currents.
            let [millivolts, milliamperes] =
                ["in", "curr"].map(|kind| file(format!("{kind}{channel}_input")));
            let from = Reading::Product { millivolts: millivolts?, milliamperes: milliamperes? };
            (chip == "ina3221" && channel <= 3).then(|| rail(label("in", channel), from))
        })
        .collect()
}
