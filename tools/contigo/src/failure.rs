//! The errors that stop a command, in one line that says what to do.

use contigo::names::{DeviceName, Inventory, MemoryName};
use contigo::types::Refused;
use contigo::{Error, JobError};
use contigo_bringup::clocks::ClockError;
use contigo_bringup::doctor::DoctorError;
use contigo_bringup::fpga::FpgaError;
use contigo_bringup::ports::{AccessError, PortsError};
use contigo_bringup::resets::ResetError;
use contigo_gemm8::demo::DemoError;
use nix::errno::Errno;
use std::path::PathBuf;
use std::{fmt, io};

/// Why a command ends with exit status 1.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A file that is built into this program is wrong.
    Data(DemoError),
    /// The runtime refused, or a device failed.
    Runtime(Error),
    /// The runtime refused, or a device failed: for memory that the user named.
    Memory {
        name: MemoryName,
        error: Error,
    },
    /// The runtime refused, or a device failed: for a device.
    Device {
        name: DeviceName,
        error: Error,
    },
    NoSuchEngine {
        engine: String,
    },
    /// An engine and its memory do not work together.
    Engine {
        engine: String,
        error: Error,
    },
    /// There is a real engine, but no memory that it can use.
    NoMemory,
    /// The driver does not load the kernels.
    #[cfg(any(all(feature = "cuda", target_pointer_width = "64"), feature = "gpu"))]
    Image {
        error: Error,
        log: String,
    },
    /// Options that exclude each other, or an invalid name.
    Usage(String),
    SelfTest(String),
    /// The device and the reference disagree.
    Mismatches {
        scores: usize,
        of: usize,
    },
    Write {
        path: PathBuf,
        error: io::Error,
        option: &'static str,
    },
    Bitstream {
        file: PathBuf,
        error: FpgaError,
    },
    /// The board or its kernel refused: a fabric, a clock, a reset, or a register of a port.
    Board(Box<dyn std::error::Error>),
    /// The doctor's folder is not that of a machine.
    Doctor(DoctorError),
    Output(io::Error),
    /// A value cannot be encoded, which cannot happen in a correct program.
    Encode(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Data(error) => write!(f, "{error}"),
            Self::Runtime(error) => write!(f, "{error}{}", Meaning(error)),
            Self::Memory { name, error } => {
                write!(
                    f,
                    "--memory {name}: {}{}",
                    Inventory::here().memory_error(name, *error),
                    Meaning(error)
                )
            }
            Self::Device { name, error } => {
                write!(
                    f,
                    "--device {name}: {}{}",
                    Inventory::here().device_error(name, *error),
                    Meaning(error)
                )
            }
            Self::NoSuchEngine { engine } => {
                write!(
                    f,
                    "--driver {engine}: no device here is known to be one; {}",
                    Inventory::here().device_answer()
                )
            }
            Self::Engine { engine, error: error @ Error::CannotSync { .. } } => {
                write!(
                    f,
                    "--driver {engine}: {error} (in an emulator, which has no caches, --lab-port)"
                )
            }
            Self::Engine { engine, error } => {
                write!(f, "--driver {engine}: {error}{}", Meaning(error))
            }
            #[cfg(any(all(feature = "cuda", target_pointer_width = "64"), feature = "gpu"))]
            Self::Image { error, log } => write!(f, "{error}; the driver says: {log}"),
            Self::NoMemory => write!(
                f,
                "there is no memory here whose address a device could use: contigo info says what \
                 is missing"
            ),
            Self::Usage(what) | Self::SelfTest(what) => f.write_str(what),
            Self::Mismatches { scores, of } => write!(
                f,
                "{scores} of {of} scores differ from the CPU's reference: the device is wrong"
            ),
            Self::Write { path, error, option } => {
                write!(
                    f,
                    "cannot write {}: {error}; choose another place with {option} PATH",
                    path.display()
                )
            }
            Self::Bitstream { file, error } => write!(f, "{}: {error}", file.display()),
            Self::Board(error) => write!(f, "{error}"),
            Self::Doctor(error) => write!(f, "{error}"),
            Self::Output(error) => write!(f, "cannot write to standard output: {error}"),
            Self::Encode(what) => write!(f, "cannot write the result: {what}"),
        }
    }
}

impl Failure {
    /// The exit status. For the doctor, 1 means that it found a fault.
    pub(crate) fn status(&self) -> u8 {
        if matches!(self, Self::Doctor(_)) { 2 } else { 1 }
    }
}

struct Meaning<'a>(&'a Error);

impl fmt::Display for Meaning<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self.0 {
            Error::Os { errno, .. }
            | Error::Denied { errno, .. }
            | Error::AttributeUnreadable { errno, .. } => {
                write!(f, " ({})", Errno::from_raw(errno).desc())
            }
            _ => Ok(()),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Runtime(error)
    }
}

impl From<FpgaError> for Failure {
    fn from(error: FpgaError) -> Self {
        Self::Board(error.into())
    }
}

impl From<ClockError> for Failure {
    fn from(error: ClockError) -> Self {
        Self::Board(error.into())
    }
}

impl From<PortsError> for Failure {
    fn from(error: PortsError) -> Self {
        Self::Board(error.into())
    }
}

impl From<AccessError> for Failure {
    fn from(error: AccessError) -> Self {
        Self::Board(error.into())
    }
}

impl From<ResetError> for Failure {
    fn from(error: ResetError) -> Self {
        Self::Board(error.into())
    }
}

impl From<DoctorError> for Failure {
    fn from(error: DoctorError) -> Self {
        Self::Doctor(error)
    }
}

impl From<DemoError> for Failure {
    fn from(error: DemoError) -> Self {
        match error {
            DemoError::Runtime(error) => Self::Runtime(error),
            data @ DemoError::Data { .. } => Self::Data(data),
        }
    }
}

impl<T> From<Refused<T>> for Failure {
    fn from(refused: Refused<T>) -> Self {
        Self::Runtime(refused.error)
    }
}

impl<B> From<JobError<B>> for Failure {
    fn from(failed: JobError<B>) -> Self {
        Self::Runtime(failed.error)
    }
}
