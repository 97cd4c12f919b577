//! A file, and what is in it.

use super::{Bitstream, BitstreamError, MAX_BYTES};
use crate::{file, machine::Machine};
use std::path::Path;

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
        let file = file::open(path, MAX_BYTES)?;
        let bytes = file.metadata().map_err(BitstreamError::Read)?.len();
        if let Some(available) = machine.available().filter(|available| *available < bytes) {
            return Err(BitstreamError::NoMemory { bytes, available });
        }
        let bytes = file::rest(file, MAX_BYTES)?;
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
        f.debug_struct("Image")
            .field("bitstream", &self.bitstream)
            .field("bytes", &self.bytes.len())
            .finish()
    }
}
