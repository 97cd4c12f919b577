//! Quartus' `.rbf` for Cyclone V.
//!
//! Its layout is not public: the Cyclone V handbook says that the file goes to the device as it is,
//! and Linux (`drivers/fpga/socfpga.c`) writes it unread. These three facts were seen in 45 public
//! files for 5CSEBA6, and nothing else is taken from the file: neither its device nor its length.

use super::{Bitstream, BitstreamError, ByteOrder, Format};

/// The ones before the first word that is not all ones.
const HEAD_BYTES: usize = 128;
/// That word.
const MARK: [u8; 4] = [0x6a; 4];
/// The ones at the end: there are 515 of them in every file. Half of that is asked for, and the
/// configuration has no such run of ones.
const TAIL_BYTES: usize = 256;
const ONES: u8 = 0xff;

pub(super) fn is(file: &[u8]) -> bool {
    let ones = |bytes: &[u8]| bytes.iter().all(|&byte| byte == ONES);
    file.get(..HEAD_BYTES).is_some_and(ones)
        && file.get(HEAD_BYTES..HEAD_BYTES + MARK.len()) == Some(&MARK)
}

pub(super) fn parse(file: &[u8]) -> Result<Bitstream, BitstreamError> {
    let tail = file.iter().rev().take_while(|&&byte| byte == ONES).count();
    #[cfg(test)]
    super::visits::add(tail);
    if tail < TAIL_BYTES {
        return Err(BitstreamError::Cut {
            what: "its tail of ones",
            needs: TAIL_BYTES as u64,
            has: tail as u64,
        });
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
