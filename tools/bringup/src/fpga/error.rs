//! The reasons why a fabric did not get its bitstream, and the cures. Also the ways to a fabric and
//! its users, which an error names.

use super::State;
use crate::bitstream::{BitstreamError, Family};
use std::path::PathBuf;
use std::{fmt, io};

/// A way to a fabric.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the messages name the fields")]
pub enum Way {
    /// Canonical's daemon `fpgad` runs. Its client gives it the commands.
    Fpgad { client: String },
    /// AMD's daemon `dfx-mgrd` runs, and records what is in the fabric.
    DfxMgr,
    /// The manager's file `firmware`, in AMD's kernels. Intel's kernels have mainline's classes.
    Sysfs,
    /// An overlay through configfs, onto a region of the device tree: many vendors' kernels.
    Overlay { region: String },
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fpgad { .. } => f.write_str("fpgad"),
            Self::DfxMgr => f.write_str("dfx-mgrd"),
            Self::Sysfs => f.write_str("the FPGA manager"),
            Self::Overlay { region } => write!(f, "the overlay onto {region}"),
        }
    }
}

/// A user of the fabric.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the messages name the fields")]
pub enum User {
    /// A program has a node open or mapped.
    Program { id: u32, name: String, node: String },
    /// A driver of the kernel is bound to a core.
    Driver { name: String, device: String },
}

impl fmt::Display for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program { id, name, node } => write!(f, "{name} (process {id}) has {node}"),
            Self::Driver { name, device } => {
                write!(
                    f,
                    "the driver {name} has {device} (echo {device} > \
                     /sys/bus/platform/drivers/{name}/unbind)"
                )
            }
        }
    }
}

/// The reason why a fabric was not loaded. Only [`Self::Failed`], [`Self::Left`] and
/// [`Self::NotOperating`] come after the fabric was touched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each message describes its variant")]
pub enum FpgaError {
    #[error("{0}")]
    Bitstream(#[from] BitstreamError),
    #[error(
        "this machine has no FPGA manager (/sys/class/fpga_manager): the kernel needs CONFIG_FPGA \
         and the manager's driver, and the device tree its node"
    )]
    NoManager,
    #[error("there are {} FPGA managers: choose one with --manager: {}", .0.len(), .0.join(", "))]
    SeveralManagers(Vec<String>),
    #[error("there is no FPGA manager {name}; there is {}", .there.join(", "))]
    NoSuchManager { name: String, there: Vec<String> },
    #[error("no board is called {0}: contigo boards lists them")]
    NoSuchBoard(String),
    #[error("this board is {here}, and not {given}: leave --board out, or name this board")]
    OtherBoard { given: String, here: String },
    #[error("there are {} regions of the fabric: choose the bitstream's with --region: \
             {}", .0.len(), .0.join(", "))]
    SeveralRegions(Vec<String>),
    #[error("{}", absent(.name, .there))]
    NoSuchRegion { name: String, there: Vec<String> },
    #[error(
        "this kernel has an FPGA manager, but programs have no way to it, as in mainline Linux. \
         Take the vendor's kernel, or one with overlays in configfs and an fpga-region, or let the \
         boot loader load it"
    )]
    NoWay,
    #[error(
        "{daemon} runs and keeps the fabric's account. A file is taken since 2025.2, and given up \
         by its name since 2026.1. This one does neither: use its client with a package, or stop \
         it: systemctl stop dfx-mgr"
    )]
    Owned { daemon: &'static str },
    #[error("it is for {file}, and this is {here}: build the design for this device")]
    OtherDevice { file: String, here: String },
    #[error(
        "it has {bytes} bytes of frames, and {part} has {most}: build the design for this device"
    )]
    TooLarge { bytes: u64, most: u64, part: &'static str },
    #[error(
        "the kernel needs {needs} bytes to load it, and has {available} left: end programs, or \
         compress the bitstream"
    )]
    NoMemory { needs: u64, available: u64 },
    #[error("{}", whole(*.file_is_partial))]
    Partial { file_is_partial: bool },
    #[error("the kernel's manager for {0} takes whole bitstreams only: leave --partial out")]
    NoPartial(Family),
    #[error(
        "it is encrypted, and its key is the boot loader's to use: load it from there, or plain"
    )]
    Encrypted,
    #[error(
        "its sync word is at byte {offset}, and the manager reads the first {header} only: make \
         the .bin anew, without padding"
    )]
    LateSync { offset: usize, header: usize },
    #[error("the FPGA manager is at work ({0}): wait for the other load to end, and try again")]
    Busy(State),
    #[error("another contigo loads a bitstream: wait for its end, and try again")]
    Loading,
    #[error("the fabric is in use, and would vanish under its users:{} end them and try \
             again", listed(.0))]
    InUse(Vec<User>),
    #[error("it cannot be seen who uses the fabric: {path}: {error}; run this as root")]
    CannotSee {
        path: PathBuf,
        #[source]
        error: io::Error,
    },
    #[error(
        "the kernel looks for the file in that folder, and it cannot be put there: {path}: \
         {error}; run this as root, or name a folder with room in \
         /sys/module/firmware_class/parameters/path"
    )]
    Place {
        path: PathBuf,
        #[source]
        error: io::Error,
    },
    #[error("{path}: {error}; run this as root")]
    Told {
        path: PathBuf,
        #[source]
        error: io::Error,
    },
    #[error("{}", failed(.way, *.state, .words, .error.as_ref()))]
    Failed {
        way: Way,
        state: State,
        words: String,
        #[source]
        error: Option<io::Error>,
    },
    #[error("the bitstream was taken, but the FPGA manager says \"{state}\" after {waited_s} s; \
             {}", .state.cure())]
    NotOperating { state: State, waited_s: u64 },
    #[error("{failed}; and its overlay stays, so that no other load goes: {error}: rmdir {path}")]
    Left {
        path: PathBuf,
        error: io::Error,
        #[source]
        failed: Box<FpgaError>,
    },
    #[error("the overlay {0} is applied: contigo fpga unload takes it away")]
    Applied(PathBuf),
    #[error(
        "nothing here can be unloaded by {0}: an FPGA manager has no command that empties a \
         fabric; load another bitstream"
    )]
    NothingToUnload(Way),
}

pub(crate) fn listed(users: &[User]) -> String {
    users.iter().map(|user| format!(" {user};")).collect()
}

fn absent(name: &str, there: &[String]) -> String {
    if there.is_empty() {
        format!("no overlay is needed here, and so there is no region {name}: leave --region out")
    } else {
        format!("there is no region {name}; there is {}", there.join(", "))
    }
}

fn whole(file_is_partial: bool) -> &'static str {
    if file_is_partial {
        "it is for a part of the fabric: say --partial, with the design loaded that it belongs to"
    } else {
        "it is for the whole fabric: leave --partial out"
    }
}

fn failed(way: &Way, state: State, words: &str, error: Option<&io::Error>) -> String {
    let error = error.map_or_else(String::new, |error| format!(" ({error})"));
    let said = if words.is_empty() { String::new() } else { format!(", and says: {words}") };
    format!("{way} failed in state \"{state}\"{error}{said}; {}", state.cure())
}
