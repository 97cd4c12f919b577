//! The file of the program that logged. A log from elsewhere may name anything.

use contigo_bringup::file::{self, FileError};
use contigo_log::BuildId;
use nix::unistd::{Uid, geteuid};
use std::{fs::File, io, os::unix::fs::FileExt as _, path::Path};

/// A program with a debugger's tables has some 100 MiB at most.
const MOST_BYTES: u64 = 256 << 20;

/// Linkers put the note of the build ID into the first page that is loaded.
const HEAD_BYTES: u64 = 64 << 10;

/// Opens a program's file. `named_by` is the owner of the log that names it, and `None` where this
/// tool's user names it. No file is opened that another user's log names.
pub(super) fn open(path: &Path, named_by: Option<u32>) -> Result<File, String> {
    if let Some(owner) = named_by.map(Uid::from_raw).filter(|owner| *owner != geteuid()) {
        return Err(format!(
            "the log is user {owner}'s, and no file is opened that another user's log names"
        ));
    }
    file::open(path, MOST_BYTES).map_err(|error| match error {
        FileError::TooLong { bytes, most } => {
            format!("it has {bytes} bytes, and no program has more than {most}: strip --strip-debug keeps the events, without their places")
        }
        error => error.to_string(),
    })
}

/// The program's build ID, by its file's first bytes: all of it is read for the right one alone.
pub(super) fn build_id(file: &File) -> io::Result<Option<BuildId>> {
    let mut head =
        vec![0; usize::try_from(file.metadata()?.len().min(HEAD_BYTES)).map_err(io::Error::other)?];
    file.read_exact_at(&mut head, 0)?;
    Ok(BuildId::of(&head))
}
