//! A rail whose files are open.

use super::rail::Reading;
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

/// A rail whose files are open. Each reading makes the kernel ask the chip across its bus.
#[derive(Debug)]
pub struct Gauge(Files);

#[derive(Debug)]
enum Files {
    Power(Source),
    Product { millivolts: Source, milliamperes: Source },
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
                write!(f, "cannot read {}: {error}; the channel is off, or its bus does not answer", path.display())
            }
            Self::NoNumber { path, text } => write!(f, "{} is {text:?}, and no number", path.display()),
        }
    }
}

impl std::error::Error for PowerError {}

impl Gauge {
    pub(super) fn open(from: &Reading) -> Result<Self, PowerError> {
        Ok(Self(match from {
            Reading::Power(path) => Files::Power(Source::open(path)?),
            Reading::Product { millivolts, milliamperes } => {
                Files::Product { millivolts: Source::open(millivolts)?, milliamperes: Source::open(milliamperes)? }
            }
        }))
    }

    /// The power now, in microwatts. Negative where the current flows back into the supply.
    ///
    /// # Errors
    /// [`PowerError::Read`], [`PowerError::NoNumber`].
    pub fn microwatts(&self) -> Result<i64, PowerError> {
        match &self.0 {
            Files::Power(power) => power.number(),
            Files::Product { millivolts, milliamperes } => Ok(millivolts.number()?.saturating_mul(milliamperes.number()?)),
        }
    }
}

impl Source {
    fn open(path: &Path) -> Result<Self, PowerError> {
        let file = File::open(path).map_err(|error| PowerError::Open { path: path.to_owned(), error })?;
        Ok(Self { path: path.to_owned(), file })
    }

    fn number(&self) -> Result<i64, PowerError> {
        let mut bytes = [0; NUMBER_MAX_BYTES];
        // The kernel measures anew for each read from the file's beginning.
        let len = self.file.read_at(&mut bytes, 0).map_err(|error| PowerError::Read { path: self.path.clone(), error })?;
        let text = bytes.get(..len).unwrap_or_default();
        str::from_utf8(text)
            .ok()
            .and_then(|text| text.trim().parse().ok())
            .ok_or_else(|| PowerError::NoNumber { path: self.path.clone(), text: String::from_utf8_lossy(text).into_owned() })
    }
}
