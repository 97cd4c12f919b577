//! Reads a file that the caller names: a regular file, whole, and of a bounded length.

#![allow(
    clippy::disallowed_methods,
    reason = "the file is none of a machine's: the caller names it"
)]

use crate::machine::{READ, reopen};
use nix::libc::O_PATH;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// The reason why a file is not read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each message describes its variant")]
pub enum FileError {
    #[error("{0}")]
    Read(#[from] io::Error),
    #[error("it is no file, but a folder, a pipe or a device: give a regular file")]
    NotAFile,
    #[error("it has {bytes} bytes, and no file of its kind has more than {most}")]
    TooLong { bytes: u64, most: u64 },
}

/// Opens a regular file of at most `most` bytes.
///
/// A pipe or a device is refused before it is opened, even one that replaces the file at that
/// moment: opening a pipe would wait, and opening alone can have an effect on a watchdog.
///
/// # Errors
/// [`FileError`].
pub fn open(path: &Path, most: u64) -> Result<File, FileError> {
    let found = OpenOptions::new().read(true).custom_flags(O_PATH).open(path)?;
    right(&found.metadata()?, most)?;
    Ok(reopen(&found, READ)?.into())
}

/// Reads a file that [`open`] opened. It may grow meanwhile, or be in `/proc` with a length of 0.
///
/// # Errors
/// [`FileError`].
pub fn rest(file: File, most: u64) -> Result<Vec<u8>, FileError> {
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    let read = bytes.len() as u64;
    if read > most { Err(FileError::TooLong { bytes: read, most }) } else { Ok(bytes) }
}

/// Opens and reads a regular file of at most `most` bytes.
///
/// # Errors
/// [`FileError`].
pub fn read(path: &Path, most: u64) -> Result<Vec<u8>, FileError> {
    rest(open(path, most)?, most)
}

fn right(about: &Metadata, most: u64) -> Result<(), FileError> {
    let bytes = about.len();
    match about.is_file() {
        false => Err(FileError::NotAFile),
        true if bytes > most => Err(FileError::TooLong { bytes, most }),
        true => Ok(()),
    }
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that panics has failed, which is its purpose"
)]
mod tests {
    use super::*;
    use nix::sys::stat::Mode;
    use nix::unistd::mkfifo;
    use std::fs;

    #[test]
    fn only_short_regular_file_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let (pipe, file) = (folder.path().join("pipe"), folder.path().join("file"));
        mkfifo(&pipe, Mode::S_IRWXU).unwrap();
        for path in [pipe.as_path(), folder.path(), Path::new("/dev/zero"), Path::new("/dev/tty")] {
            match read(path, 1 << 20) {
                Err(FileError::NotAFile) => {}
                // A container may have no terminal.
                Err(FileError::Read(_)) if path == Path::new("/dev/tty") => {}
                other => panic!("{}: {other:?}", path.display()),
            }
        }
        fs::write(&file, [7; 100]).unwrap();
        assert_eq!(read(&file, 100).unwrap(), [7; 100]);
        assert!(matches!(read(&file, 99), Err(FileError::TooLong { bytes: 100, most: 99 })));
        assert!(
            matches!(
                read(Path::new("/proc/version"), 9),
                Err(FileError::TooLong { bytes: 10, most: 9 })
            ),
            "it says 0 bytes"
        );
        let none = read(&folder.path().join("none"), 9).unwrap_err().to_string();
        assert!(none.contains("No such file"), "{none}");
    }

    /// A sparse file takes no room on disk, and must take none in memory either.
    #[test]
    fn a_long_file_is_refused_before_it_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("long");
        File::create(&path).unwrap().set_len(1 << 40).unwrap();
        assert!(matches!(
            read(&path, 32 << 20),
            Err(FileError::TooLong { bytes: 0x100_0000_0000, .. })
        ));
    }
}
