//! The file of the program that logged. A log from elsewhere may name anything.

use contigo_log::BuildId;
use nix::{
    libc::{O_NOCTTY, O_NONBLOCK},
    unistd::{Uid, geteuid},
};
use std::{
    fs::{self, File, Metadata, OpenOptions},
    io,
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::Path,
};

/// A program with a debugger's tables has some 100 MiB at most.
const MOST_BYTES: u64 = 256 << 20;

/// Linkers put the note of the build ID into the first page that is loaded.
const HEAD_BYTES: u64 = 64 << 10;

/// Opens a program's file. `named_by` is the owner of the log that names it, and `None` where this
/// tool's user names it. No file is opened that another user's log names.
pub(super) fn open(path: &Path, named_by: Option<u32>) -> Result<File, String> {
    if let Some(owner) = named_by.map(Uid::from_raw).filter(|owner| *owner != geteuid()) {
        return Err(format!("the log is user {owner}'s, and no file is opened that another user's log names"));
    }
    let words = |error: io::Error| error.to_string();
    // A look first: opening alone can do something, to a watchdog or to the writer of a pipe.
    right(&fs::metadata(path).map_err(words)?)?;
    let file = OpenOptions::new().read(true).custom_flags(O_NONBLOCK | O_NOCTTY).open(path).map_err(words)?;
    // Somebody may have put another one there meanwhile.
    right(&file.metadata().map_err(words)?)?;
    Ok(file)
}

fn right(about: &Metadata) -> Result<(), String> {
    if !about.is_file() {
        return Err("it is no file".into());
    }
    if about.len() > MOST_BYTES {
        return Err(format!(
            "it has {} bytes, and no program has more than {MOST_BYTES}: strip --strip-debug keeps the events, without their places",
            about.len()
        ));
    }
    Ok(())
}

/// The program's build ID, by its file's first bytes: all of it is read for the right one alone.
pub(super) fn build_id(file: &File) -> io::Result<Option<BuildId>> {
    let mut head = vec![0; usize::try_from(file.metadata()?.len().min(HEAD_BYTES)).map_err(io::Error::other)?];
    file.read_exact_at(&mut head, 0)?;
    Ok(BuildId::of(&head))
}
