//! The containers of a configuration: Vivado's `.bit`, Vitis' `.xclbin` and Quartus' `.rbf`.
//!
//! # References
//! - `.bit`: AMD has no page for its header. Its fields are those that U-Boot's
//!   `fpga_loadbitstream` (`drivers/fpga/xilinx.c`) and PYNQ's `bitstream` read: lengths are
//!   big-endian.
//! - `.xclbin`: XRT, `src/runtime_src/core/include/xclbin.h`, `struct axlf`, `axlf_header` and
//!   `axlf_section_header`. Numbers are little-endian.
//! - `.rbf`: its layout is not public. The Cyclone V handbook says that the device gets the file as
//!   it is, and Linux (`drivers/fpga/socfpga.c`) writes it unread. The three facts used here hold
//!   in 45 public files for 5CSEBA6. The file gives neither its device nor its length.

use super::packets::walk;
use super::{Bitstream, BitstreamError, ByteOrder, Format};
use std::ops::Range;

/// The first 13 bytes of every `.bit`: nine bytes behind a length, then the length 1 of the field
/// with the letter a.
const BEGIN: [u8; 13] =
    [0x00, 0x09, 0x0f, 0xf0, 0x0f, 0xf0, 0x0f, 0xf0, 0x0f, 0xf0, 0x00, 0x00, 0x01];

/// The part that is cut where a `.bit` ends inside its fields.
const HEADER: &str = "its header";
/// The four text fields. The fifth, e, has the length of the rest.
const FIELDS: [char; 4] = ['a', 'b', 'c', 'd'];

pub(super) fn is_bit(file: &[u8]) -> bool {
    file.starts_with(&BEGIN)
}

pub(super) fn bit(file: &[u8]) -> Result<Bitstream, BitstreamError> {
    let mut at = BEGIN.len();
    let mut texts = [const { String::new() }; FIELDS.len()];
    for (letter, text) in FIELDS.into_iter().zip(&mut texts) {
        begin(file, at, letter)?;
        let length = usize::from(u16::from_be_bytes(bytes(file, at + 1, HEADER)?));
        let from = at + 3;
        let said = file.get(from..from + length).ok_or_else(|| cut(HEADER, from + length, file))?;
        // The tool terminates a text with a zero byte.
        *text = String::from_utf8_lossy(said).trim_end_matches('\0').to_owned();
        at = from + length;
    }
    begin(file, at, 'e')?;
    let says = u64::from(u32::from_be_bytes(bytes(file, at + 1, HEADER)?));
    let start = at + 5;
    let has = (file.len() - start) as u64;
    if says > has {
        return Err(BitstreamError::Cut { what: "its configuration", needs: says, has });
    }
    if says < has {
        return Err(BitstreamError::Longer { says, has });
    }
    let found = walk(file.get(start..).unwrap_or_default())?;
    let [design, part, date, time] = texts;
    let partial = Some(design.split(';').any(|note| note.eq_ignore_ascii_case("PARTIAL=TRUE")));
    Ok(Bitstream {
        format: Format::Bit,
        design: Some(design),
        part: Some(part),
        date: Some(format!("{date} {time}")),
        idcode: found.idcode,
        order: found.order,
        payload: start..file.len(),
        sync_bytes: found.sync_bytes,
        frame_bytes: found.frame_bytes,
        partial,
        encrypted: found.encrypted,
    })
}

/// Checks that the letter of a field is at `offset`.
fn begin(file: &[u8], offset: usize, wanted: char) -> Result<(), BitstreamError> {
    match file.get(offset) {
        Some(&found) if char::from(found) == wanted => Ok(()),
        Some(&found) => Err(BitstreamError::Field { offset, wanted, found }),
        None => Err(cut(HEADER, offset + 1, file)),
    }
}

/// The part that is cut where an `.xclbin` ends inside its headers.
const SECTION_TABLE: &str = "its table of sections";
const MAGIC: &[u8] = b"xclbin2\0";
/// The offset of `axlf_header::m_length`: behind magic, signature length, 28 reserved bytes, the
/// key block of 256 and the unique id.
const LENGTH: usize = 0x130;
/// The offset of `m_mode`: behind the length, two times and the version.
const MODE: usize = LENGTH + 8 + 8 + 8 + 4;
/// The offset of `m_numSections`: the last word but the padding of the header's 152 bytes.
const SECTIONS: usize = LENGTH + 152 - 8;
/// The offset of the first section's header.
const TABLE: usize = LENGTH + 152;
/// The length of a section's header; below, the offsets of its numbers.
const HEADER_BYTES: usize = 40;
const OFFSET: usize = 24;
const SIZE: usize = 32;
/// `axlf_section_kind::BITSTREAM`.
const BITSTREAM: u32 = 0;
/// `XCLBIN_HW_EMU`, `XCLBIN_SW_EMU`, `XCLBIN_HW_EMU_PR`.
const EMULATION: Range<u16> = 4..7;

pub(super) fn is_xclbin(file: &[u8]) -> bool {
    file.starts_with(MAGIC)
}

/// The range of the bitstream's section.
pub(super) fn xclbin(file: &[u8]) -> Result<Range<usize>, BitstreamError> {
    let has = file.len() as u64;
    let says = u64::from_le_bytes(bytes(file, LENGTH, SECTION_TABLE)?);
    if says > has {
        return Err(BitstreamError::Cut { what: "the file", needs: says, has });
    }
    if says < has {
        return Err(BitstreamError::Longer { says, has });
    }
    let mode = u16::from_le_bytes(bytes(file, MODE, SECTION_TABLE)?);
    if EMULATION.contains(&mode) {
        return Err(BitstreamError::Emulation { mode });
    }
    let sections = u32::from_le_bytes(bytes(file, SECTIONS, SECTION_TABLE)?) as usize;
    // The file's length bounds the loop: a section without a header is an error.
    for section in 0..sections {
        let at = section
            .checked_mul(HEADER_BYTES)
            .and_then(|at| at.checked_add(TABLE))
            .unwrap_or(usize::MAX);
        if u32::from_le_bytes(bytes(file, at, SECTION_TABLE)?) != BITSTREAM {
            continue;
        }
        let offset = u64::from_le_bytes(bytes(file, at + OFFSET, SECTION_TABLE)?);
        let size = u64::from_le_bytes(bytes(file, at + SIZE, SECTION_TABLE)?);
        let needs = offset.saturating_add(size);
        let inside =
            usize::try_from(offset).ok().zip(usize::try_from(needs).ok()).filter(|_| needs <= has);
        let Some((from, to)) = inside else {
            return Err(BitstreamError::Cut { what: "the section BITSTREAM", needs, has });
        };
        return Ok(from..to);
    }
    Err(BitstreamError::NoBitstream { sections })
}

/// The number of bytes of ones before the first word that is not all ones.
const HEAD_BYTES: usize = 128;
/// That word.
const MARK: [u8; 4] = [0x6a; 4];
/// The ones at the end: every file has 515 bytes of them. The check asks for half of that, and no
/// configuration has such a run of ones.
const TAIL_BYTES: usize = 256;
const ONES: u8 = 0xff;

pub(super) fn is_rbf(file: &[u8]) -> bool {
    let ones = |bytes: &[u8]| bytes.iter().all(|&byte| byte == ONES);
    file.get(..HEAD_BYTES).is_some_and(ones)
        && file.get(HEAD_BYTES..HEAD_BYTES + MARK.len()) == Some(&MARK)
}

pub(super) fn rbf(file: &[u8]) -> Result<Bitstream, BitstreamError> {
    let tail = file.iter().rev().take_while(|&&byte| byte == ONES).count();
    if tail < TAIL_BYTES {
        let (needs, has) = (TAIL_BYTES as u64, tail as u64);
        return Err(BitstreamError::Cut { what: "its tail of ones", needs, has });
    }
    Ok(Bitstream {
        format: Format::Rbf,
        design: None,
        part: None,
        date: None,
        idcode: None,
        order: ByteOrder::BitFile,
        payload: 0..file.len(),
        sync_bytes: HEAD_BYTES,
        frame_bytes: file.len() as u64,
        partial: Some(false),
        encrypted: false,
    })
}

/// `N` bytes at `at`, in the part `what` of the file.
fn bytes<const N: usize>(
    file: &[u8],
    at: usize,
    what: &'static str,
) -> Result<[u8; N], BitstreamError> {
    let found = file.get(at..).and_then(|rest| rest.first_chunk()).copied();
    found.ok_or_else(|| cut(what, at.saturating_add(N), file))
}

fn cut(what: &'static str, needs: usize, file: &[u8]) -> BitstreamError {
    BitstreamError::Cut { what, needs: needs as u64, has: file.len() as u64 }
}
