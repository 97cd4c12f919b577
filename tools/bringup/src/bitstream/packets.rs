//! AMD's configuration packets, from the sync word to DESYNC: for 7 series and UltraScale+.
//!
//! # References
//! UG470, "Configuration Packets" and "Configuration Registers"; UG570, the same chapters; their
//! "Bus Width Auto Detection" for the bytes before the sync word.

use super::{BitstreamError, ByteOrder};

/// The sync word, as the manuals write it.
const SYNC: u32 = 0xaa99_5566;
/// The sync word follows a few words: 12 with 7 series, 20 with UltraScale+ ("Bitstream
/// Composition" in both guides). More than a page of them makes no sense.
const SEARCH_BYTES: usize = 4096;
/// A dummy word, which the device skips.
const DUMMY: u32 = 0xffff_ffff;

/// Registers that a configuration writes ("Configuration Registers").
mod register {
    pub(super) const FDRI: u32 = 0x02;
    pub(super) const CMD: u32 = 0x04;
    pub(super) const CBC: u32 = 0x0b;
    pub(super) const IDCODE: u32 = 0x0c;
}

/// The command that ends a configuration ("Command Register").
const DESYNC: u32 = 0x0d;
/// The operation of a packet that writes.
const WRITE: u32 = 2;

pub(super) struct Found {
    pub(super) order: ByteOrder,
    pub(super) sync_bytes: usize,
    pub(super) idcode: Option<u32>,
    pub(super) frame_bytes: u64,
    pub(super) encrypted: bool,
}

/// Walks from packet to packet. Each step is at least a word, so the length bounds the loop.
pub(super) fn walk(payload: &[u8]) -> Result<Found, BitstreamError> {
    let (sync_bytes, order) = sync(payload)?;
    for (what, bytes) in [("the sync word", sync_bytes), ("the end", payload.len())] {
        if bytes % 4 != 0 {
            return Err(BitstreamError::Unaligned { what, bytes });
        }
    }
    let mut found = Found { order, sync_bytes, idcode: None, frame_bytes: 0, encrypted: false };
    let (mut offset, mut register) = (sync_bytes + 4, 0);
    while let Some(word) = word(payload, offset, order) {
        let (operation, count) = match word >> 29 {
            1 => {
                register = word >> 13 & 0x3fff;
                (word >> 27 & 3, word & 0x7ff)
            }
            2 => (word >> 27 & 3, word & 0x07ff_ffff),
            _ if word == DUMMY => (0, 0),
            _ => return Err(BitstreamError::Packet { offset, word }),
        };
        let from = offset + 4;
        let data_bytes = count as usize * 4;
        let has = payload.len() - from;
        if data_bytes > has {
            let (needs, has) = (data_bytes as u64, has as u64);
            return Err(BitstreamError::Cut { what: "a packet", needs, has });
        }
        if operation == WRITE && count > 0 {
            let first = self::word(payload, from, order).unwrap_or_default();
            match register {
                register::FDRI => found.frame_bytes += data_bytes as u64,
                register::IDCODE => match found.idcode {
                    Some(known) if known != first => {
                        return Err(BitstreamError::TwoDevices { first: known, second: first });
                    }
                    _ => found.idcode = Some(first),
                },
                register::CMD if first == DESYNC => return Ok(found),
                // The rest is cipher text: its words are no packets.
                register::CBC => return Ok(Found { encrypted: true, ..found }),
                _ => {}
            }
        }
        offset = from + data_bytes;
    }
    Err(BitstreamError::NoEnd { has: payload.len() })
}

fn sync(payload: &[u8]) -> Result<(usize, ByteOrder), BitstreamError> {
    let searched = payload.len().min(SEARCH_BYTES);
    let orders =
        [(SYNC.to_be_bytes(), ByteOrder::BitFile), (SYNC.to_le_bytes(), ByteOrder::Swapped)];
    let head = payload.get(..searched).unwrap_or_default();
    let found = head.windows(4).enumerate().find_map(|(at, four)| {
        let (_, order) = orders.iter().find(|(bytes, _)| four == bytes)?;
        Some((at, *order))
    });
    found.ok_or(BitstreamError::NoSync { searched })
}

fn word(payload: &[u8], offset: usize, order: ByteOrder) -> Option<u32> {
    let bytes = *payload.get(offset..)?.first_chunk()?;
    Some(match order {
        ByteOrder::BitFile => u32::from_be_bytes(bytes),
        ByteOrder::Swapped => u32::from_le_bytes(bytes),
    })
}
