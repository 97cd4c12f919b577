//! A board's kernel: built from Debian's source, or Debian's own binary. Made once, kept in the
//! cache, whole or not at all.

mod build;
mod config;
mod helper;
mod source;
mod stock;

use crate::board::{Board, Origin};
use contigo_cross::cache_dir::CacheDir;
use contigo_cross::failure::Result;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

pub(crate) use build::TOOLS;
pub(crate) use helper::{CHECKERS, modules};
pub(crate) use source::Source;

#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    pub(crate) image: PathBuf,
    /// The answer of `uname -r`, for which a module must be built.
    pub(crate) release: String,
    /// Its folder: the build tree, or the unpacked package.
    pub(crate) folder: PathBuf,
    /// Where its modules are, and the list of those that are built in.
    pub(crate) modules: PathBuf,
    /// Its source, where it was built here.
    pub(crate) source: Option<PathBuf>,
}

#[derive(Debug, Deserialize, Serialize)]
struct Note {
    release: String,
    package: String,
    /// Lines that its build printed.
    lines: u64,
    seconds: u64,
}

/// The file that [`Note`] is in.
const NOTE: &str = "contigo-kernel.json";

impl Kernel {
    /// The board's kernel, from the cache, or made now. With `refresh` Debian is asked for a newer
    /// one first.
    pub(crate) fn of(cache: &CacheDir, board: &Board, refresh: bool) -> Result<Self> {
        match board.origin()? {
            Origin::Source(version) => build::kernel(cache, board, version, refresh),
            Origin::Stock(version) => stock::kernel(cache, board.cpu(), version, refresh),
        }
    }

    /// The board's kernel if it is in the cache; never makes one, never asks the network.
    pub(crate) fn cached(cache: &CacheDir, board: &Board) -> Option<Self> {
        match board.origin().ok()? {
            Origin::Source(version) => build::cached(cache, board, version).ok()?,
            Origin::Stock(version) => stock::cached(cache, board.cpu(), version).ok()?,
        }
    }
}
