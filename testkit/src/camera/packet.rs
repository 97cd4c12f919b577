//! What a packet holds: its number, its length, and words that follow from the number.

/// A packet's bytes.
pub fn bytes(number: u32, len_bytes: usize) -> Vec<u8> {
    let words = (0_u32..).map(|index| word(number, index, len_bytes));
    words.flat_map(u32::to_le_bytes).take(len_bytes).collect()
}

/// Are these packet `number`'s bytes, all of them?
#[must_use]
pub fn is(number: u32, seen: &[u8]) -> bool {
    seen == bytes(number, seen.len())
}

/// Which packet is it, by its first word?
#[must_use]
pub fn number(seen: &[u8]) -> Option<u32> {
    seen.first_chunk().map(|word| u32::from_le_bytes(*word))
}

fn word(number: u32, index: u32, len_bytes: usize) -> u32 {
    match index {
        0 => number,
        1 => u32::try_from(len_bytes).unwrap_or(u32::MAX),
        _ => (number ^ index.rotate_left(16)).wrapping_mul(0x9E37_79B1),
    }
}
