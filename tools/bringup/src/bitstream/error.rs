//! The reasons why a file is no loadable bitstream, with the numbers and the cure.

use crate::file::FileError;

/// The reason why a file is refused before any machine is asked. Offsets count from the beginning
/// of the file, or of the section in an `.xclbin`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each message describes its variant")]
pub enum BitstreamError {
    #[error("{}", of_file(.0))]
    File(#[from] FileError),
    #[error(
        "it has {bytes} bytes, and {available} of memory are left: end programs, or compress the \
         bitstream"
    )]
    NoMemory { bytes: u64, available: u64 },
    #[error(
        "it is cut: {what} needs {needs} bytes, and there are {has}; copy the file again, whole"
    )]
    Cut { what: &'static str, needs: u64, has: u64 },
    #[error(
        "its header says {says} bytes, and there are {has}; take the file as the tool wrote it"
    )]
    Longer { says: u64, has: u64 },
    #[error(
        "its header is broken: byte {offset} begins field {wanted}, but is {found:#04x}; take the \
         file as the tool wrote it"
    )]
    Field { offset: usize, wanted: char, found: u8 },
    #[error(
        "it is no bitstream: neither the sync word AA995566 nor its swapped form is in its first \
         {searched} bytes; give a .bit, .bin, .xclbin or .rbf"
    )]
    NoSync { searched: usize },
    #[error(
        "{what} is at {bytes} bytes, which is not a multiple of 4; take the file as the tool wrote \
         it"
    )]
    Unaligned { what: &'static str, bytes: usize },
    #[error("byte {offset} begins no packet ({word:#010x}): the file is damaged; copy it again")]
    Packet { offset: usize, word: u32 },
    #[error(
        "it is cut: its {has} bytes have no command DESYNC, which ends a bitstream; copy the file \
         again, whole"
    )]
    NoEnd { has: usize },
    #[error(
        "it asks for device {first:#010x} and for {second:#010x}: the file is damaged; copy it \
         again"
    )]
    TwoDevices { first: u32, second: u32 },
    #[error(
        "none of its {sections} sections is a bitstream: it only describes a design; give the .bit \
         or .bin beside it"
    )]
    NoBitstream { sections: usize },
    #[error("it is for an emulator (mode {mode}): build it with v++ --target hw")]
    Emulation { mode: u16 },
}

/// The message of a file's error, for a bitstream.
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
