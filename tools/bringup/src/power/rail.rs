//! The rails that the kernel measures, and their power.

use super::{Chip, ChipError, Monitor};
use crate::machine::{Files, Machine};
use linux_embedded_hal::I2cdev;
use linux_embedded_hal::i2cdev::linux::LinuxI2CError;
use nix::errno::Errno;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::{io, str};

const CLASS: &str = "sys/class/hwmon";

/// The most channels of one monitor; a regulator on PMBus has the most, some ten pages.
const CHANNELS_MAX: usize = 32;

/// A rail whose power can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rail {
    /// A name for people: the monitor's own label, or its chip and folder, and the channel's label
    /// where it has one. `ina260-u14`, `ina3221@hwmon1 VDD_IN`.
    pub name: String,
    /// The kernel's name of the chip: `ina260`.
    pub chip: String,
    /// The interval of the chip's values in milliseconds, if its driver reports it.
    pub update_ms: Option<u32>,
    from: Reading,
    files: Files,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Reading {
    Power(String),
    /// Millivolts and milliamperes of one channel.
    Product {
        millivolts: String,
        milliamperes: String,
    },
    Chip {
        bus: String,
        monitor: Monitor,
    },
}

impl Rail {
    /// The rail of a monitor on an I2C bus, for which the kernel has no driver.
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

    /// Opens the rail's files, so that readings need no further lookup.
    ///
    /// # Errors
    /// [`PowerError::Open`]: the monitor is gone. For a monitor on a bus: [`PowerError::Bus`],
    /// [`PowerError::Chip`], [`PowerError::InUse`].
    pub fn open(&self) -> Result<Gauge, PowerError> {
        Gauge::open(&self.files, &self.from)
    }
}

/// The rails of a machine, by monitor and channel; none if no monitor has a driver.
///
/// A channel counts if it has `powerN_input`. INA3221 has no such file: its power is the product of
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
            // Only for this chip are both numbers documented as those of one channel. It has three:
            // in4 is the voltage at the first one's shunt, and curr4 the sum of all currents.
            let [millivolts, milliamperes] =
                ["in", "curr"].map(|kind| file(format!("{kind}{channel}_input")));
            let from = Reading::Product { millivolts: millivolts?, milliamperes: milliamperes? };
            (chip == "ina3221" && channel <= 3).then(|| rail(label("in", channel), from))
        })
        .collect()
}

/// The longest number that the kernel writes into such a file, with a margin.
const NUMBER_MAX_BYTES: usize = 32;

/// An open rail. For each reading the kernel or this program queries the chip over its bus.
#[derive(Debug)]
pub struct Gauge(Way);

#[derive(Debug)]
enum Way {
    Power(Source),
    Product { millivolts: Source, milliamperes: Source },
    Chip { path: PathBuf, chip: Box<Chip<I2cdev>> },
}

#[derive(Debug)]
struct Source {
    path: PathBuf,
    file: File,
}

/// The reason why a rail has no reading.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "each message describes its variant")]
pub enum PowerError {
    #[error("cannot open {path}: {error}{}", gone(.error))]
    Open {
        path: PathBuf,
        #[source]
        error: io::Error,
    },
    #[error("cannot read {path}: {error}; the channel is off, or its bus does not answer")]
    Read {
        path: PathBuf,
        #[source]
        error: io::Error,
    },
    #[error("{}", bus(.path, .error))]
    Bus {
        path: PathBuf,
        #[source]
        error: io::Error,
    },
    #[error("{path}: {why}; contigo power has the chips with a driver of the kernel")]
    Chip { path: PathBuf, why: String },
    #[error(
        "{path}: a driver of the kernel has this chip: contigo power lists it without --monitor"
    )]
    InUse { path: PathBuf },
    #[error("{path} is {text:?}, and no number")]
    NoNumber { path: PathBuf, text: String },
}

fn gone(error: &io::Error) -> &'static str {
    if error.kind() == io::ErrorKind::NotFound { "; the monitor's driver has gone" } else { "" }
}

fn bus(path: &Path, error: &io::Error) -> String {
    let path = path.display();
    match error.kind() {
        io::ErrorKind::NotFound => format!(
            "{path} is not there: modprobe i2c-dev (CONFIG_I2C_CHARDEV), or another bus: ls \
             /dev/i2c-*"
        ),
        io::ErrorKind::Unsupported => format!("{path}: {error}"),
        _ => format!("cannot open {path}: {error}; run this as root, or in the file's group"),
    }
}

impl Gauge {
    fn open(files: &Files, from: &Reading) -> Result<Self, PowerError> {
        Ok(Self(match from {
            Reading::Power(path) => Way::Power(Source::open(files, path)?),
            Reading::Product { millivolts, milliamperes } => Way::Product {
                millivolts: Source::open(files, millivolts)?,
                milliamperes: Source::open(files, milliamperes)?,
            },
            Reading::Chip { bus, monitor } => {
                let path = files.path(bus);
                let told = |error| PowerError::Bus { path: path.clone(), error };
                let node = files.device(bus).map_err(told)?;
                #[allow(
                    clippy::disallowed_methods,
                    reason = "a bus of this machine, which its files allow"
                )]
                let opened = I2cdev::new(node).map_err(|error| told(error.into()))?;
                let chip = Chip::open(opened, monitor).map_err(|error| of_chip(&path, &error))?;
                Way::Chip { path, chip: Box::new(chip) }
            }
        }))
    }

    /// The current power, in microwatts. Negative if the current flows back into the supply.
    ///
    /// # Errors
    /// [`PowerError::Read`], [`PowerError::NoNumber`], [`PowerError::Chip`].
    pub fn microwatts(&mut self) -> Result<i64, PowerError> {
        match &mut self.0 {
            Way::Power(power) => power.number(),
            Way::Chip { path, chip } => chip.microwatts().map_err(|error| of_chip(path, &error)),
            Way::Product { millivolts, milliamperes } => {
                Ok(millivolts.number()?.saturating_mul(milliamperes.number()?))
            }
        }
    }
}

fn of_chip(path: &Path, error: &ChipError<linux_embedded_hal::I2CError>) -> PowerError {
    match error {
        ChipError::Bus(error) => of_bus(path, error),
        other => PowerError::Chip { path: path.to_owned(), why: other.to_string() },
    }
}

fn of_bus(path: &Path, error: &linux_embedded_hal::I2CError) -> PowerError {
    let errno = match error.inner() {
        LinuxI2CError::Errno(errno) => Some(*errno),
        LinuxI2CError::Io(error) => error.raw_os_error(),
    };
    let (path, why) = (
        path.to_owned(),
        errno.map_or_else(
            || error.to_string(),
            |errno| io::Error::from_raw_os_error(errno).to_string(),
        ),
    );
    if errno == Some(Errno::EBUSY as i32) {
        PowerError::InUse { path }
    } else {
        PowerError::Chip { path, why }
    }
}

impl Source {
    fn open(files: &Files, path: &str) -> Result<Self, PowerError> {
        let file =
            files.open(path).map_err(|error| PowerError::Open { path: files.path(path), error })?;
        Ok(Self { path: files.path(path), file })
    }

    fn number(&self) -> Result<i64, PowerError> {
        let mut bytes = [0; NUMBER_MAX_BYTES];
        // The kernel measures again for each read from the file's beginning.
        let len = self
            .file
            .read_at(&mut bytes, 0)
            .map_err(|error| PowerError::Read { path: self.path.clone(), error })?;
        let text = bytes.get(..len).unwrap_or_default();
        str::from_utf8(text).ok().and_then(|text| text.trim().parse().ok()).ok_or_else(|| {
            PowerError::NoNumber {
                path: self.path.clone(),
                text: String::from_utf8_lossy(text).into_owned(),
            }
        })
    }
}
