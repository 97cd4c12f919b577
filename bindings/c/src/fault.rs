//! Why a call was refused: an error of the runtime, or a mistake of a C program that Rust's types
//! would not have let through.

use contigo::design::kernel::MapError;
use contigo::design::{DesignError, Name, Near};
use contigo::names::{DeviceName, Inventory, MemoryName, NameError};
use contigo::types::Refused;
use contigo::{Error, JobError};
pub(crate) use contigo_objects::ArgumentError;
use contigo_objects::Refusal;
use core::fmt;

/// Why a call was refused.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// The runtime's refusal.
    Runtime(Error),
    /// The runtime's refusal of a job: which operand it is about, and the error that came before a
    /// device that would not stop.
    Job { error: Error, cause: Error, operand: Option<usize> },
    /// A text is no name.
    Name(NameError),
    /// Memory of this name was refused: the answer also lists the memory of this machine.
    Memory { name: MemoryName, error: Error },
    /// The same for a device.
    Device { name: DeviceName, error: Error },
    /// A file is no map of a kernel.
    Map(MapError),
    /// A file is no block design, or a core of it is not as it was asked for.
    Design(DesignError),
    /// A kernel has no operand, or no scalar, of this name.
    NoSuchIn { what: &'static str, name: Name, near: Near },
    /// A driver does not know a setting of this name.
    Setting { name: Name, error: Error },
    /// Code was not loaded: the words of `who` follow the text (`last_error::ForeignWords`).
    Load { error: Error, who: &'static str },
    /// A pointer, a number or a structure that cannot be.
    Argument(ArgumentError),
    /// An object refuses it: it is another's, or gone.
    Object(Refusal),
    /// Another mistake of the program.
    Misuse(Misuse),
}

/// A mistake of the program, with its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Misuse {
    /// One buffer is two operands of one job.
    SameBuffer { first: usize, second: usize },
    /// A copy from a buffer into itself.
    Overlap,
    /// The device was stopped before this job ended.
    Cancelled,
    /// The port is no GPU's.
    NoGpu { is: &'static str },
    /// No port of a known board is called that.
    NoPort,
    /// The engine has no device that the kernel module stops.
    NoDevNode,
    /// The device has no interrupt that is a file.
    NoInterrupt,
    /// A register of this kind is not written, or not modified.
    Register { offset_bytes: u32, why: &'static str },
    /// Something that cannot be. It was caught.
    Panicked,
}

impl Fault {
    /// A pointer that must not be null is.
    pub(crate) const fn null(what: &'static str) -> Self {
        Self::Argument(ArgumentError::Null { what })
    }

    /// A number that the header does not list.
    pub(crate) fn value(what: &'static str, value: impl Into<u64>) -> Self {
        Self::Argument(ArgumentError::Value { what, value: value.into() })
    }

    /// A number that is not from `min` to `max`.
    pub(crate) const fn range(name: &'static str, value: u64, min: u64, max: u64) -> Self {
        Self::Runtime(Error::Argument { name, value, min, max, multiple_of: 1 })
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Runtime(error)
    }
}

impl From<DesignError> for Fault {
    fn from(error: DesignError) -> Self {
        Self::Design(error)
    }
}

impl From<NameError> for Fault {
    fn from(error: NameError) -> Self {
        Self::Name(error)
    }
}

impl<T> From<Refused<T>> for Fault {
    fn from(refused: Refused<T>) -> Self {
        Self::Runtime(refused.error)
    }
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Runtime(error) => Self::Runtime(error),
            Refusal::Argument(error) => Self::Argument(error),
            other => Self::Object(other),
        }
    }
}

impl From<ArgumentError> for Fault {
    fn from(error: ArgumentError) -> Self {
        Self::Argument(error)
    }
}

impl From<Misuse> for Fault {
    fn from(misuse: Misuse) -> Self {
        Self::Misuse(misuse)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Runtime(error) | Self::Load { error, .. } => error.fmt(f),
            Self::Name(error) => error.fmt(f),
            Self::Memory { ref name, error } => {
                write!(f, "{name}: {}", Inventory::here().memory_error(name, error))
            }
            Self::Device { ref name, error } => {
                write!(f, "{name}: {}", Inventory::here().device_error(name, error))
            }
            Self::Map(ref error) => error.fmt(f),
            Self::Design(ref error) => error.fmt(f),
            Self::NoSuchIn { what, ref name, ref near } => {
                write!(f, "`{name}`: this kernel has no {what} of this name")?;
                if near.names().next().is_none() {
                    Ok(())
                } else {
                    write!(f, "; those that are most like it: {near}")
                }
            }
            Self::Setting { ref name, error } => write!(f, "`{name}`: {error}"),
            Self::Argument(error) => error.fmt(f),
            Self::Object(refusal) => refused(refusal, f),
            Self::Misuse(misuse) => misuse.fmt(f),
            Self::Job { error, cause, operand } => {
                JobError { error, cause, operand, buffers: None::<()> }.fmt(f)
            }
        }
    }
}

/// With the functions that are the cure.
fn refused(refusal: Refusal, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match refusal {
        Refusal::OnDevice | Refusal::InJob => f.write_str(
            "the buffer is a device's: wait for its job, or stop its engine; after \
             contigo_buf_give contigo_buf_take_back takes it back",
        ),
        Refusal::OnCpu => f.write_str(
            "the buffer is the CPU's and has no bus address: hand it over with contigo_buf_give",
        ),
        Refusal::HasJobs { .. } => {
            write!(f, "{refusal}: wait for them, or stop it by contigo_queue_stop")
        }
        other => write!(f, "{other}"),
    }
}

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::SameBuffer { first, second } => {
                write!(f, "operands {first} and {second} are the same buffer")
            }
            Self::Overlap => write!(f, "the source lies in the buffer itself"),
            Self::Cancelled => write!(f, "the device was stopped before this job ended"),
            Self::NoGpu { is } => write!(f, "code is loaded for a GPU, and the port is {is}"),
            Self::NoPort => {
                write!(f, "no port is called that; there are cuda:0, vulkan, opencl")?;
                // Boards with one system on chip have the same ports.
                let all = contigo_boards::ports;
                let mut first = all().enumerate().filter(|(at, port)| {
                    all().position(|other| other.name == port.name) == Some(*at)
                });
                first.try_for_each(|(_, port)| write!(f, ", {}", port.name))
            }
            Self::NoDevNode => write!(
                f,
                "the engine has no device that was opened as contigo:…, so the kernel module does \
                 not stop it"
            ),
            Self::NoInterrupt => {
                write!(f, "the device has no interrupt to sleep for: look again and again")
            }
            Self::Register { offset_bytes, why } => {
                write!(f, "the register at {offset_bytes:#x} {why}")
            }
            Self::Panicked => write!(f, "a defect of this library was caught; please report it"),
        }
    }
}
