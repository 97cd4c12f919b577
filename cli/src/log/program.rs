//! The file of the program that logged. A log from elsewhere may name anything.

use nix::{
    libc::O_NONBLOCK,
    unistd::{Uid, geteuid},
};
use std::{
    fs::{File, OpenOptions},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

/// A program with a debugger's tables has some 100 MiB at most.
const MOST_BYTES: u64 = 1 << 30;

/// Opens a program's file. `named_by` is the owner of the log that names it, and `None` where this
/// tool's user names it. Root opens no file that another user's log names: opening alone can do
/// something, to a device.
pub(super) fn open(path: &Path, named_by: Option<u32>) -> Result<File, String> {
    let own = geteuid();
    if let Some(owner) = named_by.map(Uid::from_raw).filter(|owner| own.is_root() && !owner.is_root()) {
        return Err(format!("the log is user {owner}'s, and root opens no file that it names"));
    }
    let file = OpenOptions::new().read(true).custom_flags(O_NONBLOCK).open(path).map_err(|error| error.to_string())?;
    let about = file.metadata().map_err(|error| error.to_string())?;
    if !about.is_file() {
        return Err("it is no file".into());
    }
    if about.len() > MOST_BYTES {
        return Err(format!("it has {} bytes, and no program has more than {MOST_BYTES}", about.len()));
    }
    Ok(file)
}
