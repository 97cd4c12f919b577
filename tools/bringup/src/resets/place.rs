//! Where a reset line is, in a user's words and among a machine's lines.

use super::ResetError;
use std::{fmt, str::FromStr};

/// Where a reset line is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A device that the kernel module guards, by any of its names: `guard:copy@40000000`.
    Guard(String),
    /// The line of a GPIO chip, which is named as its file or by its label: `zynqmp_gpio:78`.
    Offset {
        /// `gpiochip0`, or `zynqmp_gpio`.
        chip: String,
        /// The line's number on it.
        offset: u32,
    },
    /// A line by the name that the device tree gives it.
    Name(String),
}

impl FromStr for Place {
    type Err = ResetError;

    fn from_str(text: &str) -> Result<Self, ResetError> {
        if let Some(name) = text.strip_prefix("guard:") {
            return Ok(Self::Guard(name.to_owned()));
        }
        match text.strip_prefix("/dev/").unwrap_or(text).rsplit_once(':') {
            // A line's name may have a colon too, and then no number stands behind the last one.
            Some((chip, offset))
                if !chip.is_empty()
                    && offset.bytes().all(|byte| byte.is_ascii_digit())
                    && !offset.is_empty() =>
            {
                let offset = offset.parse().map_err(|_| ResetError::NotALine(text.to_owned()))?;
                Ok(Self::Offset { chip: chip.to_owned(), offset })
            }
            _ if text.is_empty() => Err(ResetError::NotALine(text.to_owned())),
            _ => Ok(Self::Name(text.to_owned())),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Guard(name) => write!(f, "guard:{name}"),
            Self::Offset { chip, offset } => write!(f, "{chip}:{offset}"),
            Self::Name(name) => f.write_str(name),
        }
    }
}

/// A line of a GPIO chip, as the kernel describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpioLine {
    /// The chip's file in `/dev`: `gpiochip0`.
    pub chip: String,
    /// The chip's label: `zynqmp_gpio`.
    pub label: String,
    /// The line's number on its chip.
    pub offset: u32,
    /// Its name in the device tree.
    pub name: Option<String>,
    /// Who has it: a program's word for itself, or a driver's. Empty: its user gave no name.
    pub consumer: Option<String>,
    /// The device tree says that it is active low.
    pub active_low: bool,
}

impl fmt::Display for GpioLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.chip, self.offset)
    }
}

impl GpioLine {
    /// The one line of `lines` that `place` means, if it is free.
    ///
    /// # Errors
    /// [`ResetError::NoSuchLine`], [`ResetError::Ambiguous`], [`ResetError::InUse`].
    pub fn choose<'a>(lines: &'a [Self], place: &Place) -> Result<&'a Self, ResetError> {
        let meant = |line: &&Self| match place {
            Place::Offset { chip, offset } => {
                line.offset == *offset && (line.chip == *chip || line.label == *chip)
            }
            Place::Name(name) => line.name.as_ref() == Some(name),
            Place::Guard(_) => false,
        };
        let found: Vec<_> = lines.iter().filter(meant).collect();
        match found.as_slice() {
            [] => Err(ResetError::NoSuchLine { place: place.clone(), among: lines.len() }),
            [line] => line.free().map(|()| *line),
            several => Err(ResetError::Ambiguous {
                place: place.clone(),
                there: several.iter().map(ToString::to_string).collect(),
            }),
        }
    }

    fn free(&self) -> Result<(), ResetError> {
        match &self.consumer {
            None => Ok(()),
            Some(consumer) => {
                Err(ResetError::InUse { line: self.to_string(), consumer: consumer.clone() })
            }
        }
    }
}
