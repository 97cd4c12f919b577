//! Vitis' `.xclbin`: a container whose sections lie where its table says.
//!
//! # References
//! XRT, `src/runtime_src/core/include/xclbin.h`: `struct axlf`, `axlf_header` and
//! `axlf_section_header`. Numbers are little-endian.

use super::BitstreamError;
use std::ops::Range;

const MAGIC: &[u8] = b"xclbin2\0";
/// The offset of `axlf_header::m_length`: behind magic, signature length, 28 reserved bytes, the
/// key block of 256 and the unique id.
const LENGTH: usize = 0x130;
/// Of `m_mode`: behind the length, two times and the version.
const MODE: usize = LENGTH + 8 + 8 + 8 + 4;
/// Of `m_numSections`: the header has 152 bytes, and this is its last word but the padding.
const SECTIONS: usize = LENGTH + 152 - 8;
/// Of the first section's header.
const TABLE: usize = LENGTH + 152;
/// The bytes of a section's header, and the offsets of its numbers.
const HEADER_BYTES: usize = 40;
const OFFSET: usize = 24;
const SIZE: usize = 32;
/// `axlf_section_kind::BITSTREAM`.
const BITSTREAM: u32 = 0;
/// `XCLBIN_HW_EMU`, `XCLBIN_SW_EMU`, `XCLBIN_HW_EMU_PR`.
const EMULATION: Range<u16> = 4..7;

pub(super) fn is(file: &[u8]) -> bool {
    file.starts_with(MAGIC)
}

/// Where the bitstream's section is.
pub(super) fn bitstream(file: &[u8]) -> Result<Range<usize>, BitstreamError> {
    let has = file.len() as u64;
    let says = u64::from_le_bytes(bytes(file, LENGTH)?);
    if says > has {
        return Err(BitstreamError::Cut { what: "the file", needs: says, has });
    }
    if says < has {
        return Err(BitstreamError::Longer { says, has });
    }
    let mode = u16::from_le_bytes(bytes(file, MODE)?);
    if EMULATION.contains(&mode) {
        return Err(BitstreamError::Emulation { mode });
    }
    let sections = u32::from_le_bytes(bytes(file, SECTIONS)?) as usize;
    // The file's length bounds the loop: a section without its header is an error.
    for section in 0..sections {
        let at = section
            .checked_mul(HEADER_BYTES)
            .and_then(|at| at.checked_add(TABLE))
            .unwrap_or(usize::MAX);
        if u32::from_le_bytes(bytes(file, at)?) != BITSTREAM {
            continue;
        }
        let offset = u64::from_le_bytes(bytes(file, at + OFFSET)?);
        let size = u64::from_le_bytes(bytes(file, at + SIZE)?);
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

fn bytes<const N: usize>(file: &[u8], at: usize) -> Result<[u8; N], BitstreamError> {
    #[cfg(test)]
    super::visits::add(N);
    let cut = || BitstreamError::Cut {
        what: "its table of sections",
        needs: at.saturating_add(N) as u64,
        has: file.len() as u64,
    };
    file.get(at..).and_then(|rest| rest.first_chunk()).copied().ok_or_else(cut)
}
