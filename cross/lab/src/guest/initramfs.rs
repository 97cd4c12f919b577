//! A `newc` archive, which is what the kernel unpacks into its first file system, and the trees
//! that `--with` brings into it. Not compressed: QEMU puts it into memory at once, and an emulated
//! processor would take seconds to unpack it.

use crate::board::Board;
use anyhow::{Context, bail};
use contigo_cross::failure::{Failure, Result};
use cpio::newc;
use std::collections::BTreeSet;
use std::fs::{self, File, Metadata};
use std::io::{self, BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const FOLDER: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;
const FILE: u32 = 0o100_644;
const LINK: u32 = 0o120_777;

/// An archive that is being written. It needs no device nodes: the kernel's built-in archive has
/// /dev/console, and devtmpfs the rest.
#[derive(Debug)]
pub(super) struct Initramfs {
    path: PathBuf,
    file: BufWriter<File>,
    folders: BTreeSet<String>,
    inode: u32,
}

impl Initramfs {
    pub(super) fn create(path: &Path) -> Result<Self> {
        let file = File::create(path)
            .map_err(|error| Failure::of_io("writing the initramfs", path, &error))?;
        let (path, file) = (path.into(), BufWriter::new(file));
        Ok(Self { path, file, folders: BTreeSet::new(), inode: 0 })
    }

    /// A folder, with those above it.
    pub(super) fn folder(&mut self, name: &str) -> Result<()> {
        if let Some((above, _)) = name.rsplit_once('/') {
            self.folder(above)?;
        }
        if self.folders.insert(name.to_owned()) { self.entry(name, FOLDER, &[]) } else { Ok(()) }
    }

    pub(super) fn program(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        self.entry(name, PROGRAM, bytes)
    }

    pub(super) fn file(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        self.entry(name, FILE, bytes)
    }

    pub(super) fn copy(&mut self, name: &str, from: &Path) -> Result<()> {
        let bytes = fs::read(from).with_context(|| format!("cannot read {}", from.display()))?;
        self.entry(name, FILE, &bytes)
    }

    /// A symbolic link to `target`, which need not be there.
    pub(super) fn link(&mut self, name: &str, target: &Path) -> Result<()> {
        self.entry(name, LINK, target.as_os_str().as_bytes())
    }

    pub(super) fn finish(mut self) -> Result<()> {
        let done = newc::trailer(&mut self.file).and_then(|file| file.flush());
        done.map_err(|error| Failure::of_io("writing the initramfs", &self.path, &error))
    }

    fn entry(&mut self, name: &str, mode: u32, bytes: &[u8]) -> Result<()> {
        self.inode += 1;
        let length =
            u32::try_from(bytes.len()).with_context(|| format!("{name} is larger than 4 GiB"))?;
        let header = newc::Builder::new(name).ino(self.inode).mode(mode).nlink(1);
        let write = || {
            let mut entry = header.write(&mut self.file, length);
            entry.write_all(bytes)?;
            entry.finish().map(drop)
        };
        write().map_err(|error| Failure::of_io("writing the initramfs", &self.path, &error))
    }
}

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
pub(super) fn pack_tree(image: &mut Initramfs, name: &str, from: &Path) -> Result<()> {
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
            pack_tree(image, &name, &path)?;
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;

    #[test]
    fn packed_entries_keep_names_and_modes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("initramfs");
        let mut image = Initramfs::create(&path).unwrap();
        image.folder("lib/modules").unwrap();
        image.folder("lib").unwrap();
        image.program("init", b"#!/bin/sh\n").unwrap();
        image.finish().unwrap();
        let bytes = fs::read(&path).unwrap();
        let mut rest = bytes.as_slice();
        let mut seen = Vec::new();
        loop {
            let reader = newc::Reader::new(rest).unwrap();
            let entry = reader.entry();
            if entry.is_trailer() {
                break;
            }
            seen.push((entry.name().to_owned(), entry.mode(), entry.file_size(), entry.uid()));
            rest = reader.finish().unwrap();
        }
        let expected = [("lib", FOLDER, 0), ("lib/modules", FOLDER, 0), ("init", PROGRAM, 10)];
        assert_eq!(seen, expected.map(|(name, mode, size)| (name.to_owned(), mode, size, 0)));
    }
}
