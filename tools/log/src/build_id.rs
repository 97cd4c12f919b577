//! The build of a program: the GNU build ID, which the linker puts into a note of its file.

use crate::layout::BUILD_ID_BYTES;
use core::fmt;

/// The linker's number of a build. Two programs with the same number have the same code.
///
/// Source: man 5 elf; `--build-id` in man 1 ld.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuildId {
    bytes: [u8; BUILD_ID_BYTES],
    len: usize,
}

/// `PT_NOTE` and `NT_GNU_BUILD_ID`, man 5 elf.
const PT_NOTE: u64 = 4;
const NT_GNU_BUILD_ID: u64 = 3;
/// A program has a dozen headers and a few notes. A file with more is no program.
const MOST_HEADERS: u64 = 64;
const MOST_NOTES: usize = 16;

impl BuildId {
    /// The build ID in the header of a ring.
    #[cfg(feature = "decode")]
    pub(crate) fn stored(bytes: &[u8]) -> Option<Self> {
        let mut own = Self { bytes: [0; BUILD_ID_BYTES], len: bytes.len() };
        own.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        (!bytes.is_empty()).then_some(own)
    }

    /// The build ID of the ELF file `image`. `None`: it has none.
    #[must_use]
    pub fn of(image: &[u8]) -> Option<Self> {
        let ident = image.get(..16)?;
        if ident.get(..4) != Some(b"\x7fELF") || ident.get(5) != Some(&1) {
            return None;
        }
        let wide = ident.get(4) == Some(&2);
        // The table of program headers: its offset, the width of a row, the number of rows.
        let (table, row, rows) = if wide {
            (number(image, 32, 8)?, number(image, 54, 2)?, number(image, 56, 2)?)
        } else {
            (number(image, 28, 4)?, number(image, 42, 2)?, number(image, 44, 2)?)
        };
        for index in 0..rows.min(MOST_HEADERS) {
            let header = usize::try_from(table.checked_add(index.checked_mul(row)?)?).ok()?;
            if number(image, header, 4)? != PT_NOTE {
                continue;
            }
            let (offset, size) = if wide {
                (
                    number(image, header.checked_add(8)?, 8)?,
                    number(image, header.checked_add(32)?, 8)?,
                )
            } else {
                (
                    number(image, header.checked_add(4)?, 4)?,
                    number(image, header.checked_add(16)?, 4)?,
                )
            };
            let (first, len) = (usize::try_from(offset).ok()?, usize::try_from(size).ok()?);
            if let Some(found) = image.get(first..first.checked_add(len)?).and_then(Self::in_notes)
            {
                return Some(found);
            }
        }
        None
    }

    /// The build ID in a program's notes.
    pub(crate) fn in_notes(mut notes: &[u8]) -> Option<Self> {
        for _ in 0..MOST_NOTES {
            let (name, len, kind) =
                (number(notes, 0, 4)?, number(notes, 4, 4)?, number(notes, 8, 4)?);
            let (name, len) = (usize::try_from(name).ok()?, usize::try_from(len).ok()?);
            let first = 12_usize.checked_add(name.checked_next_multiple_of(4)?)?;
            let end = first.checked_add(len)?;
            if kind == NT_GNU_BUILD_ID && notes.get(12..16) == Some(b"GNU\0") {
                let mut own = Self { bytes: [0; BUILD_ID_BYTES], len: len.min(BUILD_ID_BYTES) };
                own.bytes
                    .get_mut(..own.len)?
                    .copy_from_slice(notes.get(first..end)?.get(..own.len)?);
                return (len > 0).then_some(own);
            }
            notes = notes.get(end.checked_next_multiple_of(4)?..)?;
        }
        None
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

/// A little-endian number of `width` bytes.
pub(crate) fn number(bytes: &[u8], at: usize, width: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(width)?)?;
    Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

impl fmt::Display for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
