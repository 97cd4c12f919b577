//! Why a clock was not read or set, and what to do.

use super::Fabric;
use crate::fpga::{FpgaError, users::User};
use std::{fmt, io, path::PathBuf};

/// Why a clock was not read or set. Each but [`Self::NotSetBack`] leaves it as it was.
#[derive(Debug)]
#[non_exhaustive]
pub enum ClockError {
    /// The kernel's account cannot be read.
    Hidden {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It has a form that no kernel of ours has.
    NotASummary,
    /// This kernel has no way to set the clock.
    NoControl(Fabric),
    /// It cannot be seen who uses the fabric.
    CannotSee(Box<FpgaError>),
    /// A program or a driver uses the fabric.
    InUse(Vec<User>),
    /// The control's file has no number.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Its text.
        text: String,
    },
    /// The kernel refuses the rate.
    Refused {
        /// The file.
        path: PathBuf,
        /// The rate.
        hz: u64,
        /// Why.
        error: io::Error,
    },
    /// The hardware has no rate that near.
    Rate {
        /// The clock.
        fabric: Fabric,
        /// The rate that was wanted, in Hz.
        wanted: u64,
        /// The nearest that it gave, in Hz.
        nearest: u64,
    },
    /// The hardware has no rate that near, and the clock did not get its old one back.
    NotSetBack {
        /// The clock.
        fabric: Fabric,
        /// The rate that it had, in Hz.
        was_hz: u64,
        /// The rate that it has now, in Hz, where that can be read.
        has_hz: Option<u64>,
        /// The kernel's own error, where it gave one.
        error: Option<Box<ClockError>>,
    },
}

impl fmt::Display for ClockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hidden { path, error } if error.kind() == io::ErrorKind::NotFound => write!(
                f,
                "{} is not there: mount -t debugfs debug /sys/kernel/debug (the kernel needs CONFIG_DEBUG_FS and CONFIG_COMMON_CLK)",
                path.display()
            ),
            Self::Hidden { path, error } => write!(f, "{}: {error}; run this as root", path.display()),
            Self::NotASummary => f.write_str("the kernel's clk_summary has a form that is not known here: report it with its first lines"),
            Self::NoControl(fabric) => write!(
                f,
                "this kernel has no way to set {fabric}: it needs AMD's driver and a node xlnx,fclk, or fclkcfg. \
                 Without it the boot code sets it, or assigned-clock-rates in a core's node"
            ),
            Self::CannotSee(error) => write!(f, "{error}"),
            Self::InUse(users) => {
                f.write_str("the fabric is in use, and its cores would miss a cycle:")?;
                users.iter().try_for_each(|user| write!(f, " {user};"))?;
                f.write_str(" end them and try again")
            }
            Self::Unreadable { path, text } => write!(f, "{} is {text:?}, and no rate", path.display()),
            Self::Refused { path, hz, error } => write!(f, "{} does not take {hz} Hz: {error}; run this as root", path.display()),
            Self::Rate { fabric, wanted, nearest } => {
                write!(
                    f,
                    "{fabric} has no {wanted} Hz; the nearest is {nearest} Hz, and it is as before: ask for a rate that its PLL divides to"
                )
            }
            Self::NotSetBack { fabric, was_hz, has_hz, error } => {
                let has = has_hz.map_or_else(|| "a rate that cannot be read".to_owned(), |hz| format!("{hz} Hz"));
                write!(
                    f,
                    "{fabric} had {was_hz} Hz, has {has} now, and was not set back: start no job, and set it again, or restart the board"
                )?;
                error.iter().try_for_each(|error| write!(f, " ({error})"))
            }
        }
    }
}

impl std::error::Error for ClockError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Hidden { error, .. } | Self::Refused { error, .. } => Some(error),
            Self::CannotSee(error) => Some(error),
            Self::NotSetBack { error: Some(error), .. } => Some(error),
            _ => None,
        }
    }
}
