//! The reasons why a register was not read or set, and the cures.

use crate::fpga::{FpgaError, User};
use nix::{errno::Errno, sys::signal::Signal};
use std::io;

/// The reason why a register was not reached.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages name the fields")]
pub enum AccessError {
    /// `/dev/mem` cannot be opened.
    #[error("/dev/mem{}", unopened(.0))]
    Open(#[source] io::Error),
    /// `/dev/mem` does not map this address.
    #[error("/dev/mem at {addr:#x}: {error}{}", strict(.error))]
    Map { addr: u64, error: io::Error },
    /// Nothing answers at this address.
    #[error("bus error at {addr:#x}: nothing answers there")]
    Bus { addr: u64 },
    /// The process for the access did not start, or did not report a result.
    #[error("the access needs a process of its own: {0}")]
    Child(#[from] Errno),
    /// The access was not tried, because an earlier access did not end.
    #[error("not tried, because {addr:#x} does not answer")]
    After { addr: u64 },
    /// A signal ended the process that made the access.
    #[error("the access to {addr:#x} was ended by {signal}")]
    Killed { addr: u64, signal: Signal },
    /// The access did not end in 5 s.
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
#[allow(missing_docs, reason = "the messages name the fields")]
pub enum PortsError {
    /// The device tree names no SoC whose registers are known here.
    #[error(
        "the device tree names no SoC whose registers are known here: Zynq-7000, Zynq UltraScale+, \
         Cyclone V"
    )]
    NoFamily,
    /// A register was not read, and nothing was written.
    #[error("{0}")]
    Read(#[from] AccessError),
    /// The users of the fabric cannot be seen.
    #[error("{0}")]
    CannotSee(#[from] Box<FpgaError>),
    /// A program or a driver uses the fabric.
    #[error("the fabric is in use, and a port must be at rest: {}; end or unbind it \
             first", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))]
    InUse(Vec<User>),
    /// The SLCR of a Zynq-7000 is locked.
    #[error(
        "the SLCR is locked, so writes do nothing: Linux unlocks it, so something locked it since; \
         restart the board"
    )]
    Locked,
    /// A write failed.
    #[error("{field} was not set: {error}; all writes before it are undone")]
    Write { field: &'static str, error: AccessError },
    /// A write changed nothing.
    #[error(
        "{field} did not become {wrote}, and is {has}: the secure world keeps the register; all \
         writes before it are undone"
    )]
    Kept { field: &'static str, wrote: String, has: String },
    /// A write does not end: a processor waits for it.
    #[error(
        "{field} at {addr:#x} does not answer, and a processor waits there: restart the board; \
         nothing was undone"
    )]
    Stuck { field: &'static str, addr: u64 },
    /// The ports behind the level shifters were not set, and the earlier writes stay.
    #[error("{error}; set before that, and left so: {}", .set.join(", "))]
    Behind { set: Vec<&'static str>, error: Box<PortsError> },
    /// A write failed, and it or an earlier write could not be undone.
    #[error("{error}; but {field} was not set back to {was}: restart the board")]
    NotUndone { field: &'static str, was: String, error: Box<PortsError> },
}
