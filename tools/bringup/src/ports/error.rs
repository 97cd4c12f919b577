//! Why a register was not read or set, and what to do.

use crate::fpga::{FpgaError, User};
use nix::{errno::Errno, sys::signal::Signal};
use std::{fmt, io};

/// Why a register was not reached.
#[derive(Debug)]
#[non_exhaustive]
pub enum AccessError {
    /// `/dev/mem` does not open.
    Open(io::Error),
    /// It does not map this address.
    Map {
        /// The physical address.
        addr: u64,
        /// Why.
        error: io::Error,
    },
    /// Nothing answers at this address.
    Bus {
        /// The physical address.
        addr: u64,
    },
    /// The process that makes the access did not start, or did not say its result.
    Child(Errno),
    /// It was not tried, because an access before it did not end.
    After {
        /// The physical address of that one.
        addr: u64,
    },
    /// A signal ended the process that made the access.
    Killed {
        /// The physical address.
        addr: u64,
        /// The signal.
        signal: Signal,
    },
    /// The access did not end in 5 s.
    NoAnswer {
        /// The physical address.
        addr: u64,
    },
}

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open(error) if error.kind() == io::ErrorKind::NotFound => {
                write!(f, "/dev/mem is not there: this kernel has no CONFIG_DEVMEM")
            }
            Self::Open(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => {
                write!(f, "/dev/mem: {error}")
            }
            Self::Open(error) => write!(
                f,
                "/dev/mem: {error}; run this as root, on a kernel that is not locked down"
            ),
            Self::Map { addr, error } if error.kind() == io::ErrorKind::PermissionDenied => {
                write!(
                    f,
                    "/dev/mem at {addr:#x}: {error}; a driver has it, and the kernel has CONFIG_IO_STRICT_DEVMEM"
                )
            }
            Self::Map { addr, error } => write!(f, "/dev/mem at {addr:#x}: {error}"),
            Self::Bus { addr } => write!(f, "bus error at {addr:#x}: nothing answers there"),
            Self::Child(errno) => write!(f, "the access needs a process of its own: {errno}"),
            Self::After { addr } => write!(f, "not tried, because {addr:#x} does not answer"),
            Self::Killed { addr, signal } => {
                write!(f, "the access to {addr:#x} was ended by {signal}")
            }
            Self::NoAnswer { addr } => write!(
                f,
                "no answer from {addr:#x} in 5 s: a processor waits there; restart the board"
            ),
        }
    }
}

impl std::error::Error for AccessError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Open(error) | Self::Map { error, .. } => Some(error),
            Self::Child(errno) => Some(errno),
            Self::Bus { .. } | Self::After { .. } | Self::Killed { .. } | Self::NoAnswer { .. } => {
                None
            }
        }
    }
}

/// Why a machine's ports were not looked at or prepared.
#[derive(Debug)]
#[non_exhaustive]
pub enum PortsError {
    /// The device tree names no SoC whose registers are known here.
    NoFamily,
    /// A register was not read, and nothing was written.
    Read(AccessError),
    /// It cannot be seen who uses the fabric.
    CannotSee(Box<FpgaError>),
    /// A program or a driver uses the fabric.
    InUse(Vec<User>),
    /// The SLCR of a Zynq-7000 is locked.
    Locked,
    /// A write failed.
    Write {
        /// The field.
        field: &'static str,
        /// Why.
        error: AccessError,
    },
    /// A write changed nothing.
    Kept {
        /// The field.
        field: &'static str,
        /// The value that was written.
        wrote: String,
        /// The value that it has.
        has: String,
    },
    /// A write does not end: a processor waits for it.
    Stuck {
        /// The field.
        field: &'static str,
        /// The register's physical address.
        addr: u64,
    },
    /// The ports behind the level shifters were not set, and the writes before stay.
    Behind {
        /// The fields that were set.
        set: Vec<&'static str>,
        /// The failure.
        error: Box<PortsError>,
    },
    /// A write failed, and so did the undoing of it or of one before it.
    NotUndone {
        /// The field that was not set back.
        field: &'static str,
        /// The value that it had.
        was: String,
        /// The failure that came first.
        error: Box<PortsError>,
    },
}

impl fmt::Display for PortsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoFamily => {
                write!(
                    f,
                    "the device tree names no SoC whose registers are known here: Zynq-7000, Zynq UltraScale+, Cyclone V"
                )
            }
            Self::Read(error) => write!(f, "{error}"),
            Self::CannotSee(error) => write!(f, "{error}"),
            Self::InUse(users) => {
                let users: Vec<_> = users.iter().map(ToString::to_string).collect();
                write!(
                    f,
                    "the fabric is in use, and a port must be at rest: {}; end or unbind it first",
                    users.join(", ")
                )
            }
            Self::Locked => {
                write!(
                    f,
                    "the SLCR is locked, so writes do nothing: Linux unlocks it, so something locked it since; restart the board"
                )
            }
            Self::Write { field, error } => {
                write!(f, "{field} was not set: {error}; all writes before it are undone")
            }
            Self::Kept { field, wrote, has } => write!(
                f,
                "{field} did not become {wrote}, and is {has}: the secure world keeps the register; all writes before it are undone"
            ),
            Self::Stuck { field, addr } => {
                write!(
                    f,
                    "{field} at {addr:#x} does not answer, and a processor waits there: restart the board; nothing was undone"
                )
            }
            Self::Behind { set, error } => {
                write!(f, "{error}; set before that, and left so: {}", set.join(", "))
            }
            Self::NotUndone { field, was, error } => {
                write!(f, "{error}; but {field} was not set back to {was}: restart the board")
            }
        }
    }
}

impl std::error::Error for PortsError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Read(error) | Self::Write { error, .. } => Some(error),
            Self::CannotSee(error) => Some(error),
            Self::Behind { error, .. } | Self::NotUndone { error, .. } => Some(error),
            _ => None,
        }
    }
}
