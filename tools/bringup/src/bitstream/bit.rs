//! Vivado's `.bit`: a header with names and a length, then the packets.
//!
//! # References
//! AMD has no page for the header. Its fields are those that U-Boot's `fpga_loadbitstream`
//! (`drivers/fpga/xilinx.c`) and PYNQ's `bitstream` read: lengths are big-endian.

use super::{Bitstream, BitstreamError, Format, packets};

/// The first 13 bytes of every `.bit`: nine bytes behind a length, then the length 1, which goes
/// with the letter a.
const BEGIN: [u8; 13] =
    [0x00, 0x09, 0x0f, 0xf0, 0x0f, 0xf0, 0x0f, 0xf0, 0x0f, 0xf0, 0x00, 0x00, 0x01];

/// The four fields of text. The fifth, e, has the length of the rest.
const FIELDS: [char; 4] = ['a', 'b', 'c', 'd'];

pub(super) fn is(file: &[u8]) -> bool {
    file.starts_with(&BEGIN)
}

pub(super) fn parse(file: &[u8]) -> Result<Bitstream, BitstreamError> {
    let mut at = BEGIN.len();
    let mut texts = [const { String::new() }; FIELDS.len()];
    for (letter, text) in FIELDS.into_iter().zip(&mut texts) {
        begin(file, at, letter)?;
        let length = usize::from(u16::from_be_bytes(bytes(file, at + 1, "its header")?));
        let from = at + 3;
        #[cfg(test)]
        super::visits::add(length);
        let said =
            file.get(from..from + length).ok_or_else(|| cut("its header", from + length, file))?;
        // The tool ends a text with a zero byte.
        *text = String::from_utf8_lossy(said).trim_end_matches('\0').to_owned();
        at = from + length;
    }
    begin(file, at, 'e')?;
    let says = u64::from(u32::from_be_bytes(bytes(file, at + 1, "its header")?));
    let start = at + 5;
    let has = (file.len() - start) as u64;
    if says > has {
        return Err(BitstreamError::Cut { what: "its configuration", needs: says, has });
    }
    if says < has {
        return Err(BitstreamError::Longer { says, has });
    }
    let found = packets::walk(file.get(start..).unwrap_or_default())?;
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

/// A field's letter must be at `offset`.
fn begin(file: &[u8], offset: usize, wanted: char) -> Result<(), BitstreamError> {
    match file.get(offset) {
        Some(&found) if char::from(found) == wanted => Ok(()),
        Some(&found) => Err(BitstreamError::Field { offset, wanted, found }),
        None => Err(cut("its header", offset + 1, file)),
    }
}

fn bytes<const N: usize>(
    file: &[u8],
    at: usize,
    what: &'static str,
) -> Result<[u8; N], BitstreamError> {
    #[cfg(test)]
    super::visits::add(N);
    file.get(at..)
        .and_then(|rest| rest.first_chunk())
        .copied()
        .ok_or_else(|| cut(what, at + N, file))
}

fn cut(what: &'static str, needs: usize, file: &[u8]) -> BitstreamError {
    BitstreamError::Cut { what, needs: needs as u64, has: file.len() as u64 }
}
