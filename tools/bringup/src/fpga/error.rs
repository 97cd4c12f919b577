//! Why a fabric did not get its bitstream, and what to do; with the ways to a fabric and its users,
//! which an error names.

use super::State;
use crate::bitstream::{BitstreamError, Family};
use std::{fmt, io, path::PathBuf};

/// A way to a fabric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// Canonical's daemon `fpgad` runs; its client asks it.
    Fpgad {
        /// The client.
        client: String,
    },
    /// AMD's daemon `dfx-mgrd` runs and keeps the fabric's account.
    DfxMgr,
    /// The manager's file `firmware`: AMD's kernels. Intel's have the classes of mainline.
    Sysfs,
    /// An overlay through configfs, onto a region of the device tree: many vendors' kernels.
    Overlay {
        /// The region's path in the device tree.
        region: String,
    },
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
pub enum User {
    /// A program has a node open or mapped.
    Program {
        /// Its process.
        id: u32,
        /// Its name.
        name: String,
        /// The node.
        node: String,
    },
    /// A driver of the kernel has a core.
    Driver {
        /// The driver.
        name: String,
        /// The core's device, on the platform bus.
        device: String,
    },
}

impl fmt::Display for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program { id, name, node } => write!(f, "{name} (process {id}) has {node}"),
            Self::Driver { name, device } => {
                write!(
                    f,
                    "the driver {name} has {device} (echo {device} > /sys/bus/platform/drivers/{name}/unbind)"
                )
            }
        }
    }
}

/// Why a fabric was not loaded. Each says whether the fabric was touched: only [`Self::Failed`],
/// [`Self::Left`] and [`Self::NotOperating`] come after that.
#[derive(Debug)]
#[non_exhaustive]
pub enum FpgaError {
    /// The file is refused for itself.
    Bitstream(BitstreamError),
    /// The kernel has no FPGA manager.
    NoManager,
    /// There are several.
    SeveralManagers(Vec<String>),
    /// None has this name.
    NoSuchManager {
        /// The name.
        name: String,
        /// Those that are there.
        there: Vec<String>,
    },
    /// No board has this name.
    NoSuchBoard(String),
    /// The machine says that it is another one.
    OtherBoard {
        /// The device of the board that was named.
        given: String,
        /// The device that is here, and the source that names it.
        here: String,
    },
    /// The device tree has several regions, and the caller named none.
    SeveralRegions(Vec<String>),
    /// The way goes by no region of this name.
    NoSuchRegion {
        /// The name.
        name: String,
        /// Those that are there.
        there: Vec<String>,
    },
    /// The kernel has a manager, and programs no way to it.
    NoWay,
    /// A daemon has the fabric, and is too old to do this with a file.
    Owned {
        /// Its name.
        daemon: &'static str,
    },
    /// The bitstream is for another device.
    OtherDevice {
        /// The one it is for.
        file: String,
        /// The one that is here, and the source that names it.
        here: String,
    },
    /// It has more frames than the device.
    TooLarge {
        /// The bytes for frames in the file.
        bytes: u64,
        /// Those of the device.
        most: u64,
        /// The device.
        part: &'static str,
    },
    /// The kernel has not enough memory left for it.
    NoMemory {
        /// The bytes for the file, and for the kernel's copy.
        needs: u64,
        /// The bytes that are left.
        available: u64,
    },
    /// It is for a part of the fabric, and the caller did not say so; or the other way round.
    Partial {
        /// The file's own word.
        file_is_partial: bool,
    },
    /// This family's manager takes whole bitstreams only.
    NoPartial(Family),
    /// It is encrypted, and this way hands no key on.
    Encrypted,
    /// The manager reads the sync word in the first bytes only.
    LateSync {
        /// Where it is.
        offset: usize,
        /// How far the manager reads.
        header: usize,
    },
    /// The manager is at work for another load.
    Busy(State),
    /// Another program of Contigo's loads a bitstream.
    Loading,
    /// A program or a driver uses the fabric.
    InUse(Vec<User>),
    /// It cannot be seen who uses the fabric.
    CannotSee {
        /// The file that cannot be read.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The file could not be put where the kernel looks for it.
    Place {
        /// Where.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A file of the kernel could not be written, before the fabric was touched.
    Told {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The kernel or the daemon failed on the way.
    Failed {
        /// The way.
        way: Way,
        /// The manager's state after it.
        state: State,
        /// The manager's own words (`status`), or the daemon's.
        words: String,
        /// The error that the write gave, where it did.
        error: Option<io::Error>,
    },
    /// All was taken, and the manager does not say that the fabric runs.
    NotOperating {
        /// The manager's word.
        state: State,
        /// How long it was asked, in seconds.
        waited_s: u64,
    },
    /// A load failed, and its overlay could not be taken away.
    Left {
        /// The overlay's folder.
        path: PathBuf,
        /// Why it stays.
        error: io::Error,
        /// The failure that came first.
        failed: Box<FpgaError>,
    },
    /// An overlay of Contigo's is applied already.
    Applied(PathBuf),
    /// There is nothing that this way can unload.
    NothingToUnload(Way),
}

impl fmt::Display for FpgaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bitstream(error) => write!(f, "{error}"),
            Self::NoManager => f.write_str(
                "this machine has no FPGA manager (/sys/class/fpga_manager): the kernel needs CONFIG_FPGA and the manager's driver, \
                 and the device tree its node",
            ),
            Self::SeveralManagers(names) => {
                write!(f, "there are {} FPGA managers: choose one with --manager: {}", names.len(), names.join(", "))
            }
            Self::NoSuchManager { name, there } => write!(f, "there is no FPGA manager {name}; there is {}", there.join(", ")),
            Self::NoSuchBoard(name) => write!(f, "no board is called {name}: contigo boards lists them"),
            Self::OtherBoard { given, here } => write!(f, "this board is {here}, and not {given}: leave --board out, or name this board"),
            Self::SeveralRegions(there) => {
                write!(f, "there are {} regions of the fabric: choose the bitstream's with --region: {}", there.len(), there.join(", "))
            }
            Self::NoSuchRegion { name, there } if there.is_empty() => {
                write!(f, "no overlay is needed here, and so there is no region {name}: leave --region out")
            }
            Self::NoSuchRegion { name, there } => write!(f, "there is no region {name}; there is {}", there.join(", ")),
            Self::NoWay => f.write_str(
                "this kernel has an FPGA manager, but programs have no way to it, as in mainline Linux. \
                 Take the vendor's kernel, or one with overlays in configfs and an fpga-region, \
                 or let the boot loader load it",
            ),
            Self::Owned { daemon } => write!(
                f,
                "{daemon} runs and keeps the fabric's account. A file is taken since 2025.2, and given up by its name since \
                 2026.1. This one does neither: use its client with a package, or stop it: \
                 systemctl stop dfx-mgr"
            ),
            Self::OtherDevice { file, here } => write!(f, "it is for {file}, and this is {here}: build the design for this device"),
            Self::TooLarge { bytes, most, part } => {
                write!(f, "it has {bytes} bytes of frames, and {part} has {most}: build the design for this device")
            }
            Self::NoMemory { needs, available } => {
                write!(f, "the kernel needs {needs} bytes to load it, and has {available} left: end programs, or compress the bitstream")
            }
            Self::Partial { file_is_partial: true } => {
                f.write_str("it is for a part of the fabric: say --partial, with the design loaded that it belongs to")
            }
            Self::Partial { file_is_partial: false } => f.write_str("it is for the whole fabric: leave --partial out"),
            Self::NoPartial(family) => write!(f, "the kernel's manager for {family} takes whole bitstreams only: leave --partial out"),
            Self::Encrypted => f.write_str("it is encrypted, and its key is the boot loader's to use: load it from there, or plain"),
            Self::LateSync { offset, header } => write!(
                f,
                "its sync word is at byte {offset}, and the manager reads the first {header} only: make the .bin anew, without padding"
            ),
            Self::Busy(state) => write!(f, "the FPGA manager is at work ({state}): wait for the other load to end, and try again"),
            Self::Loading => f.write_str("another contigo loads a bitstream: wait for its end, and try again"),
            Self::InUse(users) => {
                f.write_str("the fabric is in use, and would vanish under its users:")?;
                users.iter().try_for_each(|user| write!(f, " {user};"))?;
                f.write_str(" end them and try again")
            }
            Self::CannotSee { path, error } => {
                write!(f, "it cannot be seen who uses the fabric: {}: {error}; run this as root", path.display())
            }
            Self::Place { path, error } => write!(
                f,
                "the kernel looks for the file in that folder, and it cannot be put there: {}: {error}; run this as root, or name a \
                 folder with room in /sys/module/firmware_class/parameters/path",
                path.display()
            ),
            Self::Told { path, error } => write!(f, "{}: {error}; run this as root", path.display()),
            Self::Failed { way, state, words, error } => {
                write!(f, "{way} failed in state \"{state}\"")?;
                if let Some(error) = error {
                    write!(f, " ({error})")?;
                }
                if !words.is_empty() {
                    write!(f, ", and says: {words}")?;
                }
                write!(f, "; {}", state.cure())
            }
            Self::NotOperating { state, waited_s } => {
                write!(f, "the bitstream was taken, but the FPGA manager says \"{state}\" after {waited_s} s; {}", state.cure())
            }
            Self::Left { path, error, failed } => {
                write!(f, "{failed}; and its overlay stays, so that no other load goes: {error}: rmdir {}", path.display())
            }
            Self::Applied(path) => write!(f, "the overlay {} is applied: contigo fpga unload takes it away", path.display()),
            Self::NothingToUnload(way) => write!(
                f,
                "nothing here can be unloaded by {way}: an FPGA manager has no command that empties a fabric; load another bitstream"
            ),
        }
    }
}

impl std::error::Error for FpgaError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Bitstream(error) => Some(error),
            Self::Left { failed, .. } => Some(failed),
            Self::CannotSee { error, .. }
            | Self::Place { error, .. }
            | Self::Told { error, .. } => Some(error),
            Self::Failed { error: Some(error), .. } => Some(error),
            _ => None,
        }
    }
}

/// The file is refused before it is loaded.
///
/// ```
/// use contigo_bringup::{bitstream::Bitstream, fpga::FpgaError};
/// let error: FpgaError = Bitstream::parse(b"no bitstream").unwrap_err().into();
/// assert!(matches!(error, FpgaError::Bitstream(_)));
/// ```
impl From<BitstreamError> for FpgaError {
    fn from(error: BitstreamError) -> Self {
        Self::Bitstream(error)
    }
}
