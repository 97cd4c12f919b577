//! A file that is there whole, or not at all.

use std::{
    fs::Permissions,
    io::{self, Write},
    os::unix::fs::PermissionsExt,
    path::Path,
};
use tempfile::{Builder, NamedTempFile};

/// A file of a run that was killed meanwhile begins so, and can be deleted.
const PREFIX: &str = ".contigo-result-";

/// Can a file be made beside `path`?
pub(crate) fn ensure_writable(path: &Path) -> Result<(), String> {
    if path.is_dir() {
        return Err(format!("--report {}: this is a folder; name a file", path.display()));
    }
    beside(path).map(drop).map_err(|error| said(path, &error))
}

/// Writes `bytes` beside `path`, to the disk, and only then under its name.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), String> {
    let written = || {
        let mut file = beside(path)?;
        file.write_all(bytes)?;
        file.write_all(b"\n")?;
        file.as_file().set_permissions(Permissions::from_mode(0o644))?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| error.error).map(drop)
    };
    written().map_err(|error| said(path, &error))
}

fn beside(path: &Path) -> io::Result<NamedTempFile> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or_else(|| Path::new("."));
    Builder::new().prefix(PREFIX).tempfile_in(folder)
}

fn said(path: &Path, error: &io::Error) -> String {
    format!(
        "--report {}: {error}; nothing was written: name a file on a disk with room",
        path.display()
    )
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics has failed, which is its purpose")]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_file_is_replaced_whole_and_nothing_is_left_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result.json");
        fs::write(&path, "old").unwrap();
        ensure_writable(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        write_whole(&path, b"new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new\n");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_place_where_no_file_can_be_is_refused_before_the_run() {
        let folder = tempfile::tempdir().unwrap();
        assert!(ensure_writable(folder.path()).unwrap_err().contains("this is a folder"));
        let nowhere = folder.path().join("none/result.json");
        assert!(ensure_writable(&nowhere).unwrap_err().contains("nothing was written"));
    }
}
