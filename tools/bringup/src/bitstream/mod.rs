//! Files that configure a fabric: `.bit`, `.bin`, `.xclbin` and `.rbf`.
//!
//! [`Bitstream::parse`] reads the whole file once, and keeps none of it: it returns the range of
//! the configuration, its byte order, and its device. [`Bitstream::write`] gives that range to a
//! manager in the manager's byte order, piece by piece. [`Image`] is a file with its parsed facts.
//!
//! | format | container | how a whole one is known |
//! |---|---|---|
//! | `.bit` | fields a to e, then AMD's packets | the length in field e, the packets to DESYNC |
//! | `.bin` | none: AMD's packets, in either byte order | the packets to DESYNC |
//! | `.xclbin` | `axlf`, with sections | its length, the section's bounds, then as the two above |
//! | `.rbf` | none: Cyclone V's | its tail of ones |

mod error;
mod files;
mod packets;
mod part;

pub use error::BitstreamError;
pub use part::{Family, PARTS, Part};

use crate::file::{self, FileError};
use crate::machine::Machine;
use std::fmt;
use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;

/// The longest bitstream: the largest UltraScale+ SoC takes about 45 MB, and a container adds
/// little to it.
pub const MAX_BYTES: u64 = 128 << 20;

/// The bytes that are swapped at a time: a page, which every writer takes at once.
const CHUNK_BYTES: usize = 4096;

/// The kind of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Vivado's, with a header of names and a length.
    Bit,
    /// The same without a header, as `write_cfgmem` and `bootgen` make it.
    Bin,
    /// Vitis', with one of the two above in a section.
    Xclbin,
    /// Quartus' raw binary file.
    Rbf,
}

/// The order of the four bytes of a configuration word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteOrder {
    /// As in a `.bit`: the sync word is AA 99 55 66.
    BitFile,
    /// Swapped, as the managers of Zynq take it: 66 55 99 AA.
    Swapped,
}

/// The facts in a file, without the file's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bitstream {
    /// The kind of file.
    pub format: Format,
    /// The design's name and the tool's notes: field a of a `.bit`.
    pub design: Option<String>,
    /// The device and its package, as the tool writes it: `7z020clg400`. Field b.
    pub part: Option<String>,
    /// The date of the build, as the tool writes it: fields c and d.
    pub date: Option<String>,
    /// The device that it asks for, from its write to the register IDCODE. `None`: an `.rbf`, whose
    /// header is not public, or an encrypted file.
    pub idcode: Option<u32>,
    /// The byte order of its words in the file.
    pub order: ByteOrder,
    /// The range of the configuration in the file.
    pub payload: Range<usize>,
    /// The offset of the sync word from the payload's beginning, in bytes.
    pub sync_bytes: usize,
    /// The bytes for the fabric's frames: at most those of the device.
    pub frame_bytes: u64,
    /// Whether it is for a part of the fabric only. `None`: the file does not tell.
    pub partial: Option<bool>,
    /// Whether the packets behind its first ones are encrypted.
    pub encrypted: bool,
}

impl Bitstream {
    /// Parses a file. Every length in it is checked against the bytes in the file.
    ///
    /// # Errors
    /// [`BitstreamError`]: the file has none of the four formats, is cut, or breaks its format's
    /// rules.
    pub fn parse(file: &[u8]) -> Result<Self, BitstreamError> {
        if file.len() as u64 > MAX_BYTES {
            return Err(FileError::TooLong { bytes: file.len() as u64, most: MAX_BYTES }.into());
        }
        if files::is_xclbin(file) {
            let section = files::xclbin(file)?;
            let inner = file.get(section.clone()).unwrap_or_default();
            let mut found =
                if files::is_bit(inner) { files::bit(inner) } else { Self::bare(inner) }?;
            found.format = Format::Xclbin;
            found.payload = section.start + found.payload.start..section.start + found.payload.end;
            return Ok(found);
        }
        if files::is_bit(file) {
            return files::bit(file);
        }
        if files::is_rbf(file) {
            return files::rbf(file);
        }
        Self::bare(file)
    }

    /// Parses AMD's packets without a header.
    fn bare(file: &[u8]) -> Result<Self, BitstreamError> {
        let found = packets::walk(file)?;
        Ok(Self {
            format: Format::Bin,
            design: None,
            part: None,
            date: None,
            idcode: found.idcode,
            order: found.order,
            payload: 0..file.len(),
            sync_bytes: found.sync_bytes,
            frame_bytes: found.frame_bytes,
            partial: None,
            encrypted: found.encrypted,
        })
    }

    /// Its device, if it is known here: by the header's name, or else by IDCODE.
    #[must_use]
    pub fn device(&self) -> Option<&'static Part> {
        let named = self.part.as_deref().and_then(Part::named);
        named.or_else(|| self.idcode.and_then(Part::of_idcode))
    }

    /// The family of its device, also of one without a row here. `None`: the file does not tell.
    #[must_use]
    pub fn family(&self) -> Option<Family> {
        if self.format == Format::Rbf {
            return Some(Family::CycloneV);
        }
        self.device()
            .map(|part| part.family)
            .or_else(|| self.part.as_deref().and_then(Family::of_name))
    }

    /// Writes the configuration with its words in `order`. `file` is the file that was parsed. This
    /// holds one page of it at a time.
    ///
    /// # Errors
    /// Those of `to`. `ErrorKind::InvalidInput`: `file` is shorter than the parsed one.
    pub fn write(&self, file: &[u8], order: ByteOrder, mut to: impl Write) -> io::Result<()> {
        let payload = file.get(self.payload.clone()).ok_or(io::ErrorKind::InvalidInput)?;
        if order == self.order || self.format == Format::Rbf {
            return to.write_all(payload);
        }
        let mut turned = Vec::with_capacity(CHUNK_BYTES);
        for chunk in payload.chunks(CHUNK_BYTES) {
            turned.clear();
            turned.extend(chunk.chunks(4).flat_map(|word| word.iter().rev()));
            to.write_all(&turned)?;
        }
        Ok(())
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bit => ".bit",
            Self::Bin => ".bin",
            Self::Xclbin => ".xclbin",
            Self::Rbf => ".rbf",
        })
    }
}

impl fmt::Display for ByteOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BitFile => "as in a .bit",
            Self::Swapped => "swapped, as Zynq's managers take it",
        })
    }
}

/// A bitstream's file in memory, with its parsed facts.
pub struct Image {
    /// The facts in the file.
    pub bitstream: Bitstream,
    bytes: Vec<u8>,
}

impl Image {
    /// Reads a whole file into memory.
    ///
    /// # Errors
    /// [`BitstreamError::File`] if the file cannot be read; otherwise as [`Bitstream::parse`]. A
    /// file that is too long, or larger than the free memory, is refused before it is read. A pipe
    /// is refused before it is opened, because opening it would wait.
    pub fn open(machine: &Machine, path: &Path) -> Result<Self, BitstreamError> {
        let file = file::open(path, MAX_BYTES)?;
        let bytes = file.metadata().map_err(FileError::Read)?.len();
        if let Some(available) = machine.available().filter(|available| *available < bytes) {
            return Err(BitstreamError::NoMemory { bytes, available });
        }
        let bytes = file::rest(file, MAX_BYTES)?;
        Self::new(bytes)
    }

    /// Parses a file that is already in memory.
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

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Image")
            .field("bitstream", &self.bitstream)
            .field("bytes", &self.bytes.len())
            .finish()
    }
}
