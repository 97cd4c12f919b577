//! Why a line was not reset, and what to do.

use super::{Place, Width};
use linux_embedded_hal::{CdevPinError, gpio_cdev};
use std::{fmt, io};

/// Why a line was not reset. Only after [`Self::Held`] a core may be held in reset.
#[derive(Debug)]
#[non_exhaustive]
pub enum ResetError {
    /// This names no line.
    NotALine(String),
    /// This is no polarity.
    Polarity(String),
    /// A pulse is never this long.
    Width {
        /// Microseconds.
        us: u32,
    },
    /// No line here is called so.
    NoSuchLine {
        /// The name.
        place: Place,
        /// How many lines, or guards, there are.
        among: usize,
    },
    /// Several are.
    Ambiguous {
        /// The name.
        place: Place,
        /// Those.
        there: Vec<String>,
    },
    /// Another program or a driver has it.
    InUse {
        /// The line.
        line: String,
        /// Their name; empty where they have none.
        consumer: String,
    },
    /// A GPIO chip does not answer.
    Chip {
        /// Its file.
        chip: String,
        /// Why.
        error: gpio_cdev::Error,
    },
    /// A chip does not make the line an output.
    NotAnOutput {
        /// The line.
        line: String,
        /// Why.
        error: gpio_cdev::Error,
    },
    /// A guarded device has no reset.
    NoResets {
        /// The device.
        device: String,
    },
    /// The kernel did not reset a guarded device.
    Guard {
        /// The device.
        device: String,
        /// Why.
        error: io::Error,
    },
    /// The line could not be asserted, and is released.
    NotAsserted {
        /// The line.
        line: Place,
        /// Why.
        error: CdevPinError,
    },
    /// The line could not be released.
    Held {
        /// The line.
        line: Place,
        /// Why.
        error: CdevPinError,
    },
}

impl fmt::Display for ResetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotALine(text) => {
                write!(
                    f,
                    "{text:?} is no line: write its name, CHIP:OFFSET (gpiochip0:78) or guard:NAME; contigo reset lists them"
                )
            }
            Self::Polarity(text) => write!(f, "{text:?} is no level: write low or high"),
            Self::Width { us } => write!(f, "a pulse of {us} us: write 1 to {}", Width::MAX_US),
            Self::NoSuchLine { place: place @ Place::Guard(_), among } => {
                write!(
                    f,
                    "no device is called {place}, of {among} that the kernel module guards: contigo reset lists them"
                )
            }
            Self::NoSuchLine { place, among: 0 } => {
                write!(
                    f,
                    "no line is called {place}: this kernel has no GPIO chip in /dev (CONFIG_GPIO_CDEV, and the chip's driver)"
                )
            }
            Self::NoSuchLine { place, among } => write!(
                f,
                "no line is called {place}, of {among} GPIO lines: contigo reset lists them"
            ),
            Self::Ambiguous { place, there } => {
                write!(f, "several are called {place}: write one of {}", there.join(", "))
            }
            Self::InUse { line, consumer } => {
                let who = if consumer.is_empty() { "a user that gave no name" } else { consumer };
                write!(f, "{line} is in use by {who}: end or unbind it first")
            }
            Self::Chip { chip, error } => write!(
                f,
                "/dev/{chip}: {error}; run this as root, or as a member of the file's group"
            ),
            Self::NotAnOutput { line, error } => {
                write!(
                    f,
                    "{line} does not become an output: {error}; its chip or its pin is an input only"
                )
            }
            Self::NoResets { device } => {
                write!(
                    f,
                    "guard:{device} has no reset: its node in the device tree needs resets = <…>, or its line is a GPIO's"
                )
            }
            Self::Guard { device, error } => {
                write!(f, "guard:{device} was not reset: {error}; run this as root, and see dmesg")
            }
            Self::NotAsserted { line, error } => {
                write!(f, "{line} could not be asserted, and nothing was reset: {error}")
            }
            Self::Held { line, error } => {
                write!(
                    f,
                    "{line} could not be released, and its core may be held in reset: {error}; try again, or restart the board"
                )
            }
        }
    }
}

impl std::error::Error for ResetError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Chip { error, .. } | Self::NotAnOutput { error, .. } => Some(error),
            Self::Guard { error, .. } => Some(error),
            Self::NotAsserted { error, .. } | Self::Held { error, .. } => Some(error),
            _ => None,
        }
    }
}
