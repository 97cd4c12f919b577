//! A file, and what is in it.

use super::{Bitstream, BitstreamError, MAX_BYTES};
use std::{
    fs::File,
    io::{Read, Take},
    path::Path,
};

/// A bitstream's file in memory, once, and what is in it.
pub struct Image {
    /// The facts that the file says of itself.
    pub bitstream: Bitstream,
    bytes: Vec<u8>,
}

impl Image {
    /// Reads a file whole.
    ///
    /// # Errors
    /// [`BitstreamError::Read`] where the file cannot be read; else as [`Bitstream::parse`]. A file
    /// that is too long is refused before it is read.
    pub fn open(path: &Path) -> Result<Self, BitstreamError> {
        let file = File::open(path).map_err(BitstreamError::Read)?;
        let bytes = file.metadata().map_err(BitstreamError::Read)?.len();
        if bytes > MAX_BYTES {
            return Err(BitstreamError::TooLong { bytes, most: MAX_BYTES });
        }
        // It may grow while it is read, or be no plain file at all.
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
