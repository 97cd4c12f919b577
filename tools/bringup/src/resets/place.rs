//! The parameters of a reset: the line, and the pulse's length. Also the reasons of a failure.

use linux_embedded_hal::{CdevPinError, gpio_cdev};
use std::str::FromStr;
use std::{fmt, io};

/// The place of a reset line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A device that the kernel module has, by any of its names: `contigo:copy@40000000`.
    Contigo(String),
    /// A line of a GPIO chip. The chip is named by its file or by its label: `zynqmp_gpio:78`.
    Offset {
        /// `gpiochip0`, or `zynqmp_gpio`.
        chip: String,
        /// The line's number on its chip.
        offset: u32,
    },
    /// A line, by its name in the device tree.
    Name(String),
}

impl FromStr for Place {
    type Err = ResetError;

    fn from_str(text: &str) -> Result<Self, ResetError> {
        if let Some(name) = text.strip_prefix("contigo:") {
            return Ok(Self::Contigo(name.to_owned()));
        }
        match text.strip_prefix("/dev/").unwrap_or(text).rsplit_once(':') {
            // A line's name may have a colon too; then the last colon has no number behind it.
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
            Self::Contigo(name) => write!(f, "contigo:{name}"),
            Self::Offset { chip, offset } => write!(f, "{chip}:{offset}"),
            Self::Name(name) => f.write_str(name),
        }
    }
}

/// The length of a reset pulse: from a microsecond to a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Width(u32);

impl Width {
    /// The longest pulse, in microseconds. The slowest chip on a carrier, an Ethernet PHY, needs 10
    /// to 100 ms; more than a second is a typing error.
    pub const MAX_US: u32 = 1_000_000;

    /// A width in microseconds. The pulse is never shorter, but the scheduler may make it longer.
    ///
    /// # Errors
    /// [`ResetError::Width`]: 0, or more than [`MAX_US`](Self::MAX_US).
    pub const fn from_us(us: u32) -> Result<Self, ResetError> {
        if us == 0 || us > Self::MAX_US { Err(ResetError::Width { us }) } else { Ok(Self(us)) }
    }

    /// The width in microseconds.
    #[must_use]
    pub const fn us(self) -> u32 {
        self.0
    }
}

/// The reason why a line was not reset. Only with [`Self::Held`] a core may be held in reset.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each message describes its variant")]
pub enum ResetError {
    #[error(
        "{0:?} is no line: write its name, CHIP:OFFSET (gpiochip0:78) or contigo:NAME; contigo \
         reset lists them"
    )]
    NotALine(String),
    #[error("{0:?} is no level: write low or high")]
    Polarity(String),
    #[error("a pulse of {us} us: write 1 to {}", Width::MAX_US)]
    Width { us: u32 },
    #[error("{}", absent(.place, *.among))]
    NoSuchLine { place: Place, among: usize },
    #[error("several are called {place}: write one of {}", .there.join(", "))]
    Ambiguous { place: Place, there: Vec<String> },
    #[error("{line} is in use by {}: end or unbind it first", who(.consumer))]
    InUse { line: String, consumer: String },
    #[error("/dev/{chip}: {error}; run this as root, or as a member of the file's group")]
    Chip {
        chip: String,
        #[source]
        error: gpio_cdev::Error,
    },
    #[error("{line} does not become an output: {error}; its chip or its pin is an input only")]
    NotAnOutput {
        line: String,
        #[source]
        error: gpio_cdev::Error,
    },
    #[error(
        "contigo:{device} has no reset: its node in the device tree needs resets = <…>, or its \
         line is a GPIO's"
    )]
    NoResets { device: String },
    #[error("contigo:{device} was not reset: {error}; run this as root, and see dmesg")]
    DevNode {
        device: String,
        #[source]
        error: io::Error,
    },
    #[error("{line} could not be asserted, and nothing was reset: {error}")]
    NotAsserted {
        line: Place,
        #[source]
        error: CdevPinError,
    },
    #[error(
        "{line} could not be released, and its core may be held in reset: {error}; try again, or \
         restart the board"
    )]
    Held {
        line: Place,
        #[source]
        error: CdevPinError,
    },
}

fn absent(place: &Place, among: usize) -> String {
    match (place, among) {
        (Place::Contigo(_), _) => format!(
            "no device is called {place}, of {among} that the kernel module has: contigo reset \
             lists them"
        ),
        (_, 0) => format!(
            "no line is called {place}: this kernel has no GPIO chip in /dev (CONFIG_GPIO_CDEV, \
             and the chip's driver)"
        ),
        _ => format!("no line is called {place}, of {among} GPIO lines: contigo reset lists them"),
    }
}

fn who(consumer: &str) -> &str {
    if consumer.is_empty() { "a user that gave no name" } else { consumer }
}
