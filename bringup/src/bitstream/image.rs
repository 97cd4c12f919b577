//! A file, and what is in it.

use super::{Bitstream, BitstreamError, MAX_BYTES};
use crate::machine::Machine;
use nix::libc::{O_NOCTTY, O_NONBLOCK};
use std::{
    fs::{self, File, OpenOptions},
    io::{Read, Take},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

/// A bitstream's file in memory, once, and what is in it.
pub struct Image {
    /// The facts that the file says of itself.
    pub bitstream: Bitstream,
    bytes: Vec<u8>,
}

impl Image {
    /// Reads a file whole, into the memory of this machine.
    ///
    /// # Errors
    /// [`BitstreamError::Read`] where the file cannot be read; else as [`Bitstream::parse`]. A file
    /// that is too long, or larger than the memory that is left, is refused before it is read. A
    /// pipe ([`BitstreamError::NotAFile`]) is refused before it is opened: that would wait.
    pub fn open(machine: &Machine, path: &Path) -> Result<Self, BitstreamError> {
        // A look first: opening alone can do something, to a watchdog or to the writer of a pipe.
        let is_file = |about: fs::Metadata| if about.is_file() { Ok(about) } else { Err(BitstreamError::NotAFile) };
        is_file(fs::metadata(path).map_err(BitstreamError::Read)?)?;
        let file = OpenOptions::new().read(true).custom_flags(O_NONBLOCK | O_NOCTTY).open(path).map_err(BitstreamError::Read)?;
        // Somebody may have put another one there meanwhile.
        let about = is_file(file.metadata().map_err(BitstreamError::Read)?)?;
        let bytes = about.len();
        if bytes > MAX_BYTES {
            return Err(BitstreamError::TooLong { bytes, most: MAX_BYTES });
        }
        if let Some(available) = machine.available().filter(|available| *available < bytes) {
            return Err(BitstreamError::NoMemory { bytes, available });
        }
        // It may grow while it is read.
        let mut limited: Take<File> = file.take(MAX_BYTES + 1);
        let mut bytes = Vec::new();
        limited.read_to_end(&mut bytes).map_err(BitstreamError::Read)?;
        Self::new(bytes)
    }

    /// The same of bytes that are in memory already.
    ///
    /// # Errors
    /// As [`Bitstream::parse`].
    pub fn new(bytes: Vec<u8>) -> Result<Self, BitstreamError> {
        Ok(Self { bitstream: Bitstream::parse(&bytes)?, bytes })
    }

    /// The whole file.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl std::fmt::Debug for Image {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Image").field("bitstream", &self.bitstream).field("bytes", &self.bytes.len()).finish()
    }
}
