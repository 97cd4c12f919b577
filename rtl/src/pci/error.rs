//! Why a function is served no longer.

use crate::NoCore;
use std::{fmt, io, path::PathBuf};

/// A socket's path is shorter than `sun_path` (unix(7)).
pub(super) const PATH_MAX_BYTES: usize = 107;

/// The reason why a server ends.
#[derive(Debug)]
pub enum PciError {
    /// The socket's path is longer than a socket's name may be.
    PathTooLong {
        /// The path.
        path: PathBuf,
        /// Its length, in bytes.
        len: usize,
    },
    /// The core that it is made of is not here.
    NoCore(NoCore),
    /// There is no model of that name.
    NoModel {
        /// The name.
        name: String,
    },
    /// There is no mistake of that name.
    NoFault {
        /// The name.
        name: String,
    },
    /// There is a file of that name already.
    PathExists {
        /// The path.
        path: PathBuf,
    },
    /// The socket, or the message on it, is not as it should be.
    Connection {
        /// The words of `vfio_user`.
        said: String,
    },
    /// The guest's memory cannot be mapped here.
    Mapping {
        /// The kernel's answer.
        error: io::Error,
    },
    /// The function uses memory that QEMU did not share.
    NotShared {
        /// The address of that memory's beginning.
        addr: u64,
        /// Its length, in bytes.
        len: u64,
    },
    /// More pieces of memory are mapped for the function than the table holds.
    TooManyMaps {
        /// Its size.
        most: usize,
    },
    /// The model panicked, or its server did. Nothing it holds can be relied on.
    Panicked,
    /// A register window that is no BAR's size.
    Window {
        /// Its size, in bytes.
        bytes: usize,
    },
}

impl fmt::Display for PciError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PathTooLong { path, len } => {
                write!(
                    f,
                    "{} has {len} bytes: a socket's path has {} at most",
                    path.display(),
                    PATH_MAX_BYTES
                )
            }
            Self::NoCore(why) => write!(f, "there is no such model here: {why}"),
            Self::NoModel { name } => write!(f, "there is no model {name}"),
            Self::NoFault { name } => write!(
                f,
                "there is no mistake {name}: bus-master, reset, unmap and bytes are known"
            ),
            Self::PathExists { path } => {
                write!(f, "{} exists: delete it if no other server listens there", path.display())
            }
            Self::Connection { said } => write!(f, "the connection broke: {said}"),
            Self::Mapping { error } => write!(f, "the guest's memory cannot be mapped: {error}"),
            Self::NotShared { addr, len } => write!(
                f,
                "the function uses memory at {addr:#x}, {len:#x} bytes, which came without its file: \
                 give QEMU -object memory-backend-memfd,id=m,share=on and memory-backend=m"
            ),
            Self::TooManyMaps { most } => write!(
                f,
                "more than {most} maps: map larger pieces, or give the function less memory"
            ),
            Self::Panicked => f.write_str("the model panicked: the words above say where"),
            Self::Window { bytes } => {
                write!(f, "a register window of {bytes} bytes: a BAR of 32 bits has 1 to 2^30")
            }
        }
    }
}

impl std::error::Error for PciError {}

impl From<NoCore> for PciError {
    fn from(why: NoCore) -> Self {
        Self::NoCore(why)
    }
}
