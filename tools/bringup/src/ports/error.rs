//! The reasons why a register was not read or set, and the cures.

use crate::fpga::{FpgaError, User};
use nix::errno::Errno;
use nix::sys::signal::Signal;
use std::io;

/// The reason why a register was not reached.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each message describes its variant")]
pub enum AccessError {
    #[error("/dev/mem{}", unopened(.0))]
    Open(#[source] io::Error),
    #[error("/dev/mem at {addr:#x}: {error}{}", strict(.error))]
    Map {
        addr: u64,
        #[source]
        error: io::Error,
    },
    #[error("bus error at {addr:#x}: nothing answers there")]
    Bus { addr: u64 },
    #[error("the access needs a process of its own: {0}")]
    Child(#[from] Errno),
    #[error("not tried, because {addr:#x} does not answer")]
    After { addr: u64 },
    #[error("the access to {addr:#x} was ended by {signal}")]
    Killed { addr: u64, signal: Signal },
    #[error("no answer from {addr:#x} in 5 s: a processor waits there; restart the board")]
    NoAnswer { addr: u64 },
}

/// The end of a sentence that begins with `/dev/mem`.
fn unopened(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => " is not there: this kernel has no CONFIG_DEVMEM".to_owned(),
        io::ErrorKind::ReadOnlyFilesystem => format!(": {error}"),
        _ => format!(": {error}; run this as root, on a kernel that is not locked down"),
    }
}

fn strict(error: &io::Error) -> &'static str {
    if error.kind() == io::ErrorKind::PermissionDenied {
        "; a driver has it, and the kernel has CONFIG_IO_STRICT_DEVMEM"
    } else {
        ""
    }
}

/// The reason why a machine's ports were not read or prepared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each message describes its variant")]
pub enum PortsError {
    #[error(
        "the device tree names no SoC whose registers are known here: Zynq-7000, Zynq UltraScale+, \
         Cyclone V"
    )]
    NoFamily,
    #[error("{0}")]
    Read(#[from] AccessError),
    #[error("{0}")]
    CannotSee(#[from] Box<FpgaError>),
    #[error("the fabric is in use, and a port must be at rest: {}; end or unbind it \
             first", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))]
    InUse(Vec<User>),
    #[error(
        "the SLCR is locked, so writes do nothing: Linux unlocks it, so something locked it since; \
         restart the board"
    )]
    Locked,
    #[error("{field} was not set: {error}; all writes before it are undone")]
    Write {
        field: &'static str,
        #[source]
        error: AccessError,
    },
    #[error(
        "{field} did not become {wrote}, and is {has}: the secure world keeps the register; all \
         writes before it are undone"
    )]
    Kept { field: &'static str, wrote: String, has: String },
    #[error(
        "{field} at {addr:#x} does not answer, and a processor waits there: restart the board; \
         nothing was undone"
    )]
    Stuck { field: &'static str, addr: u64 },
    #[error("{error}; set before that, and left so: {}", .set.join(", "))]
    Behind {
        set: Vec<&'static str>,
        #[source]
        error: Box<PortsError>,
    },
    #[error("{error}; but {field} was not set back to {was}: restart the board")]
    NotUndone {
        field: &'static str,
        was: String,
        #[source]
        error: Box<PortsError>,
    },
}
