//! A .tar.gz in which nothing is by chance: members in order, with one time, owner and mode,
//! whoever makes it and when.

use contigo_cross::failure::{Failure, Result};
use flate2::{Compression, GzBuilder};
use sha2::{Digest, Sha256};
use std::{fs, io::Write, path::Path};
use tar::{Builder, EntryType, Header};
use tempfile::NamedTempFile;

/// The time of every member: the first second that no program takes for "no time".
const TIME: u64 = 1;

/// One file of an archive.
#[derive(Debug)]
pub(crate) struct Member {
    /// Below the archive's folder.
    pub(crate) path: String,
    pub(crate) mode: u32,
    pub(crate) bytes: Vec<u8>,
}

impl Member {
    /// With the bytes of `file`.
    pub(crate) fn read(file: &Path, path: String, mode: u32) -> Result<Self> {
        let bytes = fs::read(file).map_err(|error| Failure::of_io("packing", file, &error))?;
        Ok(Self { path, mode, bytes })
    }
}

/// The members, sorted by their paths, below a folder `name`.
pub(crate) fn tar_gz(name: &str, mut members: Vec<Member>) -> Result<Vec<u8>> {
    members.sort_by(|one, other| one.path.cmp(&other.path));
    let mut tar = Builder::new(GzBuilder::new().mtime(0).write(Vec::new(), Compression::best()));
    for member in members {
        let mut header = Header::new_ustar();
        header.set_entry_type(EntryType::Regular);
        header.set_size(u64::try_from(member.bytes.len())?);
        header.set_mode(member.mode);
        header.set_mtime(TIME);
        header.set_uid(0);
        header.set_gid(0);
        header.set_username("root")?;
        header.set_groupname("root")?;
        tar.append_data(&mut header, format!("{name}/{}", member.path), member.bytes.as_slice())?;
    }
    Ok(tar.into_inner()?.finish()?)
}

/// Writes a file that is there whole or not at all.
pub(crate) fn write_whole(file: &Path, bytes: &[u8]) -> Result<()> {
    let failed = |error| Failure::of_io("writing a package", file, &error);
    let mut beside = NamedTempFile::new_in(file.parent().unwrap_or(Path::new("."))).map_err(failed)?;
    beside.write_all(bytes).and_then(|()| beside.as_file().sync_all()).map_err(failed)?;
    fs::set_permissions(beside.path(), std::os::unix::fs::PermissionsExt::from_mode(0o644)).map_err(failed)?;
    beside.persist(file).map_err(|error| failed(error.error))?;
    Ok(())
}

/// SHA-256, as `sha256sum` prints it.
pub(crate) fn sum(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
