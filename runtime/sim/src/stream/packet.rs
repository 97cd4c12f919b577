//! The content of a packet: its number, its length, and words that follow from both. So a test
//! knows every byte without keeping a copy.

/// Writes bytes of packet `number`, which has `len_bytes`, starting at its byte `at`.
pub fn part(number: u32, len_bytes: usize, at: usize, to: &mut [u8]) {
    for (byte, place) in to.iter_mut().zip(at..) {
        *byte = byte_at(number, len_bytes, place);
    }
}

/// Returns whether these are all bytes of packet `number`.
#[must_use]
pub fn is(number: u32, seen: &[u8]) -> bool {
    begins(number, seen.len(), seen)
}

/// Returns whether this is the beginning of packet `number`, which has `len_bytes`.
#[must_use]
pub fn begins(number: u32, len_bytes: usize, seen: &[u8]) -> bool {
    seen.iter().zip(0..).all(|(byte, place)| *byte == byte_at(number, len_bytes, place))
}

/// Returns the packet's number, from its first word. `None`: there are fewer than four bytes.
#[must_use]
pub fn number(seen: &[u8]) -> Option<u32> {
    seen.first_chunk().map(|word| u32::from_le_bytes(*word))
}

fn byte_at(number: u32, len_bytes: usize, place: usize) -> u8 {
    #[allow(clippy::cast_possible_truncation, reason = "packets are shorter than 4 GiB")]
    let (index, len) = ((place / 4) as u32, len_bytes as u32);
    let word = match index {
        0 => number,
        1 => len,
        _ => (number ^ index.rotate_left(16)).wrapping_mul(0x9E37_79B1),
    };
    word.to_le_bytes().get(place % 4).copied().unwrap_or(0)
}
