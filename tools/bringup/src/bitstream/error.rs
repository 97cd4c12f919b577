//! Why a file is no bitstream that can be loaded, with the numbers, and the cure.

use crate::file::FileError;

/// Why a file is refused before any machine is asked. Offsets are from the file's beginning, or
/// from its section's in an `.xclbin`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BitstreamError {
    /// The file cannot be read, or is none.
    #[error("{}", of_file(.0))]
    File(#[from] FileError),
    /// It is larger than the memory that is left.
    #[error(
        "it has {bytes} bytes, and {available} of memory are left: end programs, or compress the \
         bitstream"
    )]
    NoMemory {
        /// Its length.
        bytes: u64,
        /// The bytes that are left.
        available: u64,
    },
    /// A header says more bytes than the file has.
    #[error(
        "it is cut: {what} needs {needs} bytes, and there are {has}; copy the file again, whole"
    )]
    Cut {
        /// Which part of the file is cut.
        what: &'static str,
        /// How many bytes there must be.
        needs: u64,
        /// How many there are.
        has: u64,
    },
    /// A header says fewer bytes than the file has.
    #[error(
        "its header says {says} bytes, and there are {has}; take the file as the tool wrote it"
    )]
    Longer {
        /// The header's number.
        says: u64,
        /// The file's.
        has: u64,
    },
    /// A `.bit` has another field than the format's next one.
    #[error(
        "its header is broken: byte {offset} begins field {wanted}, but is {found:#04x}; take the \
         file as the tool wrote it"
    )]
    Field {
        /// Where the field begins.
        offset: usize,
        /// The letter that must be there.
        wanted: char,
        /// The byte that is there.
        found: u8,
    },
    /// There is no sync word where every configuration has one.
    #[error(
        "it is no bitstream: neither the sync word AA995566 nor its swapped form is in its first \
         {searched} bytes; give a .bit, .bin, .xclbin or .rbf"
    )]
    NoSync {
        /// How many bytes were looked at.
        searched: usize,
    },
    /// The sync word, or the end, is not at a word's boundary.
    #[error(
        "{what} is at {bytes} bytes, which is not a multiple of 4; take the file as the tool wrote \
         it"
    )]
    Unaligned {
        /// Which of the two.
        what: &'static str,
        /// Its offset or length in bytes.
        bytes: usize,
    },
    /// A word is no packet.
    #[error("byte {offset} begins no packet ({word:#010x}): the file is damaged; copy it again")]
    Packet {
        /// Its offset in bytes.
        offset: usize,
        /// The word.
        word: u32,
    },
    /// The packets end, and no command DESYNC has come.
    #[error(
        "it is cut: its {has} bytes have no command DESYNC, which ends a bitstream; copy the file \
         again, whole"
    )]
    NoEnd {
        /// How many bytes there are.
        has: usize,
    },
    /// A file asks for two devices.
    #[error(
        "it asks for device {first:#010x} and for {second:#010x}: the file is damaged; copy it \
         again"
    )]
    TwoDevices {
        /// The first one's IDCODE.
        first: u32,
        /// The other one's.
        second: u32,
    },
    /// An `.xclbin` has no section with a bitstream.
    #[error(
        "none of its {sections} sections is a bitstream: it only describes a design; give the .bit \
         or .bin beside it"
    )]
    NoBitstream {
        /// How many sections it has.
        sections: usize,
    },
    /// An `.xclbin` for an emulator.
    #[error("it is for an emulator (mode {mode}): build it with v++ --target hw")]
    Emulation {
        /// Its mode.
        mode: u16,
    },
}

/// The same, of a bitstream.
fn of_file(error: &FileError) -> String {
    match error {
        FileError::Read(error) => format!("it cannot be read: {error}"),
        FileError::NotAFile => {
            "it is a folder, a pipe or a device: give a .bit, .bin, .xclbin or .rbf".to_owned()
        }
        FileError::TooLong { bytes, most } => {
            format!(
                "it has {bytes} bytes, and no bitstream has more than {most}: is it another file?"
            )
        }
    }
}
