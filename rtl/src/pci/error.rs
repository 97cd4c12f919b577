//! Why a function is served no longer.

use crate::NoCore;
use std::io;
use std::path::PathBuf;

/// A socket's path is shorter than `sun_path` (unix(7)).
pub(super) const PATH_MAX_BYTES: usize = 107;

/// The reason why a server ends.
#[allow(missing_docs, reason = "each text names its fields")]
#[derive(Debug, thiserror::Error)]
pub enum PciError {
    #[error("{} has {len} bytes: a socket's path has {PATH_MAX_BYTES} at most", .path.display())]
    PathTooLong { path: PathBuf, len: usize },
    #[error("there is no such model here: {0}")]
    NoCore(#[from] NoCore),
    #[error("there is no model {name}")]
    NoModel { name: String },
    #[error("there is no mistake {name}: bus-master, reset, unmap and bytes are known")]
    NoFault { name: String },
    #[error("{} exists: delete it if no other server listens there", .path.display())]
    PathExists { path: PathBuf },
    /// The socket, or the message on it, is not as it should be: the words of `vfio_user`.
    #[error("the connection broke: {said}")]
    Connection { said: String },
    #[error("the guest's memory cannot be mapped: {error}")]
    Mapping { error: io::Error },
    /// QEMU did not share it.
    #[error(
        "the function uses memory at {addr:#x}, {len:#x} bytes, which came without its file: give \
         QEMU -object memory-backend-memfd,id=m,share=on and memory-backend=m"
    )]
    NotShared { addr: u64, len: u64 },
    /// As many as the table holds.
    #[error("more than {most} maps: map larger pieces, or give the function less memory")]
    TooManyMaps { most: usize },
    /// Or its server did. Nothing it holds can be relied on.
    #[error("the model panicked: the words above say where")]
    Panicked,
    #[error("a register window of {bytes} bytes: a BAR of 32 bits has 1 to 2^30")]
    Window { bytes: usize },
}
