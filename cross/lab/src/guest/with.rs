//! The trees that `--with` brings into guests: for a board a tree with its own libraries, and a
//! program `run` in it.

use super::initramfs::Initramfs;
use crate::board::Board;
use anyhow::{Context, bail};
use contigo_cross::failure::Result;
use std::{
    fs::{self, Metadata},
    io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

/// The root of the tree in the guest.
pub(super) const PLACE: &str = "with";
const RUN: &str = "run";

/// The folder of this board in `with`; `None` where there is none.
pub(crate) fn with(with: &Path, board: &Board) -> Result<Option<PathBuf>> {
    let folder = with.join(&board.name);
    if !folder.is_dir() {
        return Ok(None);
    }
    let run = folder.join(RUN);
    if !fs::metadata(&run).is_ok_and(|about| about.is_file() && is_program(&about)) {
        bail!("{} is no program, and the guest would run it", run.display());
    }
    Ok(Some(folder))
}

/// Packs what is in the folder `from` under `name`: folders, files, and links as they are.
pub(super) fn pack(image: &mut Initramfs, name: &str, from: &Path) -> Result<()> {
    image.folder(name)?;
    let cannot_read = |path: &Path| format!("cannot read {}", path.display());
    let listed = fs::read_dir(from).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let mut entries = listed.with_context(|| cannot_read(from))?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        let about = entry.metadata().with_context(|| cannot_read(&path))?;
        let Ok(last) = entry.file_name().into_string() else {
            bail!("{} is no name in UTF-8", path.display())
        };
        let name = format!("{name}/{last}");
        if about.is_dir() {
            pack(image, &name, &path)?;
        } else if about.is_symlink() {
            image.link(&name, &fs::read_link(&path).with_context(|| cannot_read(&path))?)?;
        } else if about.is_file() && is_program(&about) {
            image.program(&name, &fs::read(&path).with_context(|| cannot_read(&path))?)?;
        } else if about.is_file() {
            image.copy(&name, &path)?;
        } else {
            bail!("{} is neither a file nor a folder nor a link", path.display());
        }
    }
    Ok(())
}

fn is_program(about: &Metadata) -> bool {
    about.permissions().mode() & 0o111 != 0
}
