//! Why a file is no bitstream that can be loaded, with the numbers, and the cure.

use crate::file::FileError;
use std::{fmt, io};

/// Why a file is refused before any machine is asked. Offsets are from the file's beginning, or
/// from its section's in an `.xclbin`.
#[derive(Debug)]
#[non_exhaustive]
pub enum BitstreamError {
    /// The file cannot be read.
    Read(io::Error),
    /// It is no regular file, whose length is known before it is read.
    NotAFile,
    /// It is larger than the memory that is left.
    NoMemory {
        /// Its length.
        bytes: u64,
        /// The bytes that are left.
        available: u64,
    },
    /// It is longer than any bitstream.
    TooLong {
        /// Its length.
        bytes: u64,
        /// The most that is read.
        most: u64,
    },
    /// A header says more bytes than the file has.
    Cut {
        /// Which part of the file is cut.
        what: &'static str,
        /// How many bytes there must be.
        needs: u64,
        /// How many there are.
        has: u64,
    },
    /// A header says fewer bytes than the file has.
    Longer {
        /// The header's number.
        says: u64,
        /// The file's.
        has: u64,
    },
    /// A `.bit` has another field than the format's next one.
    Field {
        /// Where the field begins.
        offset: usize,
        /// The letter that must be there.
        wanted: char,
        /// The byte that is there.
        found: u8,
    },
    /// There is no sync word where every configuration has one.
    NoSync {
        /// How many bytes were looked at.
        searched: usize,
    },
    /// The sync word, or the end, is not at a word's boundary.
    Unaligned {
        /// Which of the two.
        what: &'static str,
        /// Its offset or length in bytes.
        bytes: usize,
    },
    /// A word is no packet.
    Packet {
        /// Its offset in bytes.
        offset: usize,
        /// The word.
        word: u32,
    },
    /// The packets end, and no command DESYNC has come.
    NoEnd {
        /// How many bytes there are.
        has: usize,
    },
    /// A file asks for two devices.
    TwoDevices {
        /// The first one's IDCODE.
        first: u32,
        /// The other one's.
        second: u32,
    },
    /// An `.xclbin` has no section with a bitstream.
    NoBitstream {
        /// How many sections it has.
        sections: usize,
    },
    /// An `.xclbin` for an emulator.
    Emulation {
        /// Its mode.
        mode: u16,
    },
}

impl fmt::Display for BitstreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => write!(f, "it cannot be read: {error}"),
            Self::NotAFile => f.write_str(
                "it is a folder, a pipe or a device: give a .bit, .bin, .xclbin or .rbf",
            ),
            Self::NoMemory { bytes, available } => {
                write!(
                    f,
                    "it has {bytes} bytes, and {available} of memory are left: end programs, or compress the bitstream"
                )
            }
            Self::TooLong { bytes, most } => write!(
                f,
                "it has {bytes} bytes, and no bitstream has more than {most}: is it another file?"
            ),
            Self::Cut { what, needs, has } => {
                write!(
                    f,
                    "it is cut: {what} needs {needs} bytes, and there are {has}; copy the file again, whole"
                )
            }
            Self::Longer { says, has } => {
                write!(
                    f,
                    "its header says {says} bytes, and there are {has}; take the file as the tool wrote it"
                )
            }
            Self::Field { offset, wanted, found } => write!(
                f,
                "its header is broken: byte {offset} begins field {wanted}, but is {found:#04x}; take the file as the tool wrote it"
            ),
            Self::NoSync { searched } => write!(
                f,
                "it is no bitstream: neither the sync word AA995566 nor its swapped form is in its first {searched} bytes; \
                 give a .bit, .bin, .xclbin or .rbf"
            ),
            Self::Unaligned { what, bytes } => {
                write!(
                    f,
                    "{what} is at {bytes} bytes, which is not a multiple of 4; take the file as the tool wrote it"
                )
            }
            Self::Packet { offset, word } => {
                write!(
                    f,
                    "byte {offset} begins no packet ({word:#010x}): the file is damaged; copy it again"
                )
            }
            Self::NoEnd { has } => {
                write!(
                    f,
                    "it is cut: its {has} bytes have no command DESYNC, which ends a bitstream; copy the file again, whole"
                )
            }
            Self::TwoDevices { first, second } => {
                write!(
                    f,
                    "it asks for device {first:#010x} and for {second:#010x}: the file is damaged; copy it again"
                )
            }
            Self::NoBitstream { sections } => {
                write!(
                    f,
                    "none of its {sections} sections is a bitstream: it only describes a design; give the .bit or .bin beside it"
                )
            }
            Self::Emulation { mode } => {
                write!(f, "it is for an emulator (mode {mode}): build it with v++ --target hw")
            }
        }
    }
}

/// The same, of a bitstream.
///
/// ```
/// use contigo_bringup::{bitstream::BitstreamError, file};
/// let error: BitstreamError = file::read("/".as_ref(), 1).unwrap_err().into();
/// assert!(matches!(error, BitstreamError::NotAFile));
/// ```
impl From<FileError> for BitstreamError {
    fn from(error: FileError) -> Self {
        match error {
            FileError::Read(error) => Self::Read(error),
            FileError::NotAFile => Self::NotAFile,
            FileError::TooLong { bytes, most } => Self::TooLong { bytes, most },
        }
    }
}

impl std::error::Error for BitstreamError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Read(error) => Some(error),
            _ => None,
        }
    }
}
