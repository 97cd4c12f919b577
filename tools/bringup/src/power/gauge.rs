//! A rail whose files are open.

use super::{Chip, ChipError, rail::Reading};
use crate::machine::Files;
use linux_embedded_hal::{I2cdev, i2cdev::linux::LinuxI2CError};
use nix::errno::Errno;
use std::{
    fmt,
    fs::File,
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    str,
};

/// The longest number that the kernel writes into such a file, with room.
const NUMBER_MAX_BYTES: usize = 32;

/// A rail that is open. With each reading the kernel or this program asks the chip across its bus.
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
#[derive(Debug)]
pub enum PowerError {
    /// A file of the monitor cannot be opened.
    Open {
        /// The file.
        path: PathBuf,
        /// The kernel's error.
        error: io::Error,
    },
    /// The chip or its bus does not answer.
    Read {
        /// The file.
        path: PathBuf,
        /// The kernel's error.
        error: io::Error,
    },
    /// The bus of a monitor cannot be opened.
    Bus {
        /// The bus.
        path: PathBuf,
        /// The kernel's error.
        error: io::Error,
    },
    /// The monitor on a bus does not answer, or is another chip.
    Chip {
        /// The bus.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// A driver of the kernel has the monitor.
    InUse {
        /// The bus.
        path: PathBuf,
    },
    /// No monitor is written like this.
    NotAMonitor(String),
    /// The file has no number.
    NoNumber {
        /// The file.
        path: PathBuf,
        /// Its text.
        text: String,
    },
}

impl fmt::Display for PowerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open { path, error } if error.kind() == io::ErrorKind::NotFound => {
                write!(f, "cannot open {}: {error}; the monitor's driver has gone", path.display())
            }
            Self::Open { path, error } => write!(f, "cannot open {}: {error}", path.display()),
            Self::Read { path, error } => {
                write!(
                    f,
                    "cannot read {}: {error}; the channel is off, or its bus does not answer",
                    path.display()
                )
            }
            Self::Bus { path, error } if error.kind() == io::ErrorKind::NotFound => {
                write!(
                    f,
                    "{} is not there: modprobe i2c-dev (CONFIG_I2C_CHARDEV), or another bus: ls /dev/i2c-*",
                    path.display()
                )
            }
            Self::Bus { path, error } if error.kind() == io::ErrorKind::Unsupported => {
                write!(f, "{}: {error}", path.display())
            }
            Self::Bus { path, error } => write!(
                f,
                "cannot open {}: {error}; run this as root, or in the file's group",
                path.display()
            ),
            Self::Chip { path, why } => write!(
                f,
                "{}: {why}; contigo power has the chips with a driver of the kernel",
                path.display()
            ),
            Self::InUse { path } => {
                write!(
                    f,
                    "{}: a driver of the kernel has this chip: contigo power lists it without --monitor",
                    path.display()
                )
            }
            Self::NotAMonitor(text) => {
                write!(
                    f,
                    "{text:?} is no monitor: write ina260@BUS:ADDR (ina260@1:0x40), or ina226@1:0x40,shunt_uohm=2000 (ina233 the same)"
                )
            }
            Self::NoNumber { path, text } => {
                write!(f, "{} is {text:?}, and no number", path.display())
            }
        }
    }
}

impl std::error::Error for PowerError {}

impl Gauge {
    pub(super) fn open(files: &Files, from: &Reading) -> Result<Self, PowerError> {
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

    /// The power now, in microwatts. Negative where the current flows back into the supply.
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

/// The error of a bus of Linux's.
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
        // The kernel measures anew for each read from the file's beginning.
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
