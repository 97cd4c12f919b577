//! A .tar.gz in which nothing is by chance: members in order, with one time, owner and mode,
//! which depend neither on the user nor on the date.

use contigo_cross::failure::{Failure, Result};
use flate2::{Compression, GzBuilder};
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tar::{Builder, EntryType, Header};

/// The time of every member: the first second that no program takes for "no time".
pub(crate) const TIME: u64 = 1;

#[derive(Debug)]
pub(crate) enum Content {
    File {
        mode: u32,
        bytes: Vec<u8>,
    },
    /// A symbolic link to this.
    Link(String),
}

#[derive(Debug)]
pub(crate) struct Member {
    /// Below the archive's folder.
    pub(crate) path: String,
    pub(crate) content: Content,
}

impl Member {
    /// With the bytes of `file`: for everybody to read, and to run where its owner may.
    pub(crate) fn read(file: &Path, path: String) -> Result<Self> {
        let failed = |error| Failure::of_io("packing", file, &error);
        let meta = fs::symlink_metadata(file).map_err(failed)?;
        let content = if meta.is_symlink() {
            Content::Link(fs::read_link(file).map_err(failed)?.display().to_string())
        } else {
            let mode = if meta.permissions().mode() & 0o100 == 0 { 0o644 } else { 0o755 };
            Content::File { mode, bytes: fs::read(file).map_err(failed)? }
        };
        Ok(Self { path, content })
    }

    /// Every file and link below `folder`.
    pub(crate) fn all(folder: &Path) -> Result<Vec<Self>> {
        let mut members = Vec::new();
        let mut folders = vec![folder.to_owned()];
        while let Some(next) = folders.pop() {
            let failed = |error| Failure::of_io("packing", &next, &error);
            for entry in fs::read_dir(&next).map_err(failed)? {
                let entry = entry.map_err(failed)?;
                let path = entry.path();
                if entry.file_type().map_err(failed)?.is_dir() {
                    folders.push(path);
                } else {
                    members
                        .push(Self::read(&path, path.strip_prefix(folder)?.display().to_string())?);
                }
            }
        }
        Ok(members)
    }
}

/// The members, sorted by their paths, below a folder `name`.
pub(crate) fn tar_gz(name: &str, mut members: Vec<Member>) -> Result<Vec<u8>> {
    members.sort_by(|one, other| one.path.cmp(&other.path));
    let mut tar = Builder::new(GzBuilder::new().mtime(0).write(Vec::new(), Compression::best()));
    for member in members {
        let mut header = Header::new_ustar();
        header.set_mtime(TIME);
        header.set_uid(0);
        header.set_gid(0);
        header.set_username("root")?;
        header.set_groupname("root")?;
        let path = format!("{name}/{}", member.path);
        match member.content {
            Content::File { mode, bytes } => {
                header.set_entry_type(EntryType::Regular);
                header.set_size(u64::try_from(bytes.len())?);
                header.set_mode(mode);
                tar.append_data(&mut header, path, bytes.as_slice())?;
            }
            Content::Link(to) => {
                header.set_entry_type(EntryType::Symlink);
                header.set_size(0);
                header.set_mode(0o777);
                tar.append_link(&mut header, path, to)?;
            }
        }
    }
    Ok(tar.into_inner()?.finish()?)
}

/// Writes a file that everybody may read, down to the disk.
pub(crate) fn write_synced(file: &Path, bytes: &[u8]) -> Result<()> {
    let write = || {
        let mut open = File::create(file)?;
        open.write_all(bytes)?;
        open.set_permissions(fs::Permissions::from_mode(0o644))?;
        open.sync_all()
    };
    write().map_err(|error| Failure::of_io("writing a package", file, &error))
}

/// SHA-256, as `sha256sum` prints it.
pub(crate) fn sum(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
