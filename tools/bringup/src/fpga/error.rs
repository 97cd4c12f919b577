//! The reasons why a fabric did not get its bitstream, and the cures. Also the ways to a fabric and
//! its users, which an error names.

use super::State;
use crate::bitstream::{BitstreamError, Family};
use std::{fmt, io, path::PathBuf};

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
#[allow(missing_docs, reason = "the messages name the fields")]
pub enum FpgaError {
    /// The file itself is refused.
    #[error("{0}")]
    Bitstream(#[from] BitstreamError),
    /// The kernel has no FPGA manager.
    #[error(
        "this machine has no FPGA manager (/sys/class/fpga_manager): the kernel needs CONFIG_FPGA \
         and the manager's driver, and the device tree its node"
    )]
    NoManager,
    /// There are several managers.
    #[error("there are {} FPGA managers: choose one with --manager: {}", .0.len(), .0.join(", "))]
    SeveralManagers(Vec<String>),
    /// No manager has this name.
    #[error("there is no FPGA manager {name}; there is {}", .there.join(", "))]
    NoSuchManager { name: String, there: Vec<String> },
    /// No board has this name.
    #[error("no board is called {0}: contigo boards lists them")]
    NoSuchBoard(String),
    /// The machine identifies itself as another board.
    #[error("this board is {here}, and not {given}: leave --board out, or name this board")]
    OtherBoard { given: String, here: String },
    /// The device tree has several regions, and the caller named none.
    #[error("there are {} regions of the fabric: choose the bitstream's with --region: \
             {}", .0.len(), .0.join(", "))]
    SeveralRegions(Vec<String>),
    /// This way has no region of that name.
    #[error("{}", absent(.name, .there))]
    NoSuchRegion { name: String, there: Vec<String> },
    /// The kernel has a manager, but programs have no way to it.
    #[error(
        "this kernel has an FPGA manager, but programs have no way to it, as in mainline Linux. \
         Take the vendor's kernel, or one with overlays in configfs and an fpga-region, or let the \
         boot loader load it"
    )]
    NoWay,
    /// A daemon manages the fabric, and is too old to do this with a file.
    #[error(
        "{daemon} runs and keeps the fabric's account. A file is taken since 2025.2, and given up \
         by its name since 2026.1. This one does neither: use its client with a package, or stop \
         it: systemctl stop dfx-mgr"
    )]
    Owned { daemon: &'static str },
    /// The bitstream is for another device.
    #[error("it is for {file}, and this is {here}: build the design for this device")]
    OtherDevice { file: String, here: String },
    /// The bitstream has more frames than the device.
    #[error(
        "it has {bytes} bytes of frames, and {part} has {most}: build the design for this device"
    )]
    TooLarge { bytes: u64, most: u64, part: &'static str },
    /// The kernel does not have enough free memory for the bitstream.
    #[error(
        "the kernel needs {needs} bytes to load it, and has {available} left: end programs, or \
         compress the bitstream"
    )]
    NoMemory { needs: u64, available: u64 },
    /// The file is partial, but the caller did not say that, or the other way round.
    #[error("{}", whole(*.file_is_partial))]
    Partial { file_is_partial: bool },
    /// This family's manager takes whole bitstreams only.
    #[error("the kernel's manager for {0} takes whole bitstreams only: leave --partial out")]
    NoPartial(Family),
    /// The bitstream is encrypted, and this way passes no key on.
    #[error(
        "it is encrypted, and its key is the boot loader's to use: load it from there, or plain"
    )]
    Encrypted,
    /// The manager searches for the sync word in the first bytes only.
    #[error(
        "its sync word is at byte {offset}, and the manager reads the first {header} only: make \
         the .bin anew, without padding"
    )]
    LateSync { offset: usize, header: usize },
    /// The manager is busy with another load.
    #[error("the FPGA manager is at work ({0}): wait for the other load to end, and try again")]
    Busy(State),
    /// Another Contigo program is loading a bitstream.
    #[error("another contigo loads a bitstream: wait for its end, and try again")]
    Loading,
    /// A program or a driver uses the fabric.
    #[error("the fabric is in use, and would vanish under its users:{} end them and try \
             again", listed(.0))]
    InUse(Vec<User>),
    /// The users of the fabric cannot be seen.
    #[error("it cannot be seen who uses the fabric: {path}: {error}; run this as root")]
    CannotSee { path: PathBuf, error: io::Error },
    /// The file could not be put where the kernel looks for it.
    #[error(
        "the kernel looks for the file in that folder, and it cannot be put there: {path}: \
         {error}; run this as root, or name a folder with room in \
         /sys/module/firmware_class/parameters/path"
    )]
    Place { path: PathBuf, error: io::Error },
    /// A file of the kernel could not be written, before the fabric was touched.
    #[error("{path}: {error}; run this as root")]
    Told { path: PathBuf, error: io::Error },
    /// The kernel or the daemon failed during the load.
    #[error("{}", failed(.way, *.state, .words, .error.as_ref()))]
    Failed { way: Way, state: State, words: String, error: Option<io::Error> },
    /// The bitstream was taken, but the manager does not report that the fabric runs.
    #[error("the bitstream was taken, but the FPGA manager says \"{state}\" after {waited_s} s; \
             {}", .state.cure())]
    NotOperating { state: State, waited_s: u64 },
    /// A load failed, and its overlay could not be removed.
    #[error("{failed}; and its overlay stays, so that no other load goes: {error}: rmdir {path}")]
    Left { path: PathBuf, error: io::Error, failed: Box<FpgaError> },
    /// An overlay of Contigo's is applied already.
    #[error("the overlay {0} is applied: contigo fpga unload takes it away")]
    Applied(PathBuf),
    /// This way has nothing to unload.
    #[error(
        "nothing here can be unloaded by {0}: an FPGA manager has no command that empties a \
         fabric; load another bitstream"
    )]
    NothingToUnload(Way),
}

/// The users of a fabric, each in a sentence.
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
