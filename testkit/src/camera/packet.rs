//! The content of a packet: its number, its length, and words that follow from the number.

/// A packet's bytes.
#[must_use]
pub fn bytes(number: u32, len_bytes: usize) -> Vec<u8> {
    let mut bytes = vec![0; len_bytes];
    part(number, len_bytes, 0, &mut bytes);
    bytes
}

/// Are these packet `number`'s bytes, all of them?
#[must_use]
pub fn is(number: u32, seen: &[u8]) -> bool {
    seen.chunks(4).zip(0..).all(|(bytes, index)| word(number, index, seen.len()).to_le_bytes().starts_with(bytes))
}

/// Which packet is it, by its first word?
#[must_use]
pub fn number(seen: &[u8]) -> Option<u32> {
    seen.first_chunk().map(|word| u32::from_le_bytes(*word))
}

/// A packet's bytes from word `first` on.
pub(super) fn part(number: u32, len_bytes: usize, first: u32, to: &mut [u8]) {
    for (bytes, index) in to.chunks_mut(4).zip(first..) {
        bytes.iter_mut().zip(word(number, index, len_bytes).to_le_bytes()).for_each(|(to, byte)| *to = byte);
    }
}

fn word(number: u32, index: u32, len_bytes: usize) -> u32 {
    match index {
        0 => number,
        1 => u32::try_from(len_bytes).unwrap_or(u32::MAX),
        _ => (number ^ index.rotate_left(16)).wrapping_mul(0x9E37_79B1),
    }
}
