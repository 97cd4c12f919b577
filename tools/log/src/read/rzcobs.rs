//! A frame out of the bytes between two zeroes: `defmt`'s encoding, backwards. Then its check byte.

use crate::check::{FIRST, check};

/// The frame that `encoded` holds, with its check byte and up to six zeroes behind it, which no
/// decoder asks for. `None` where it holds none.
///
/// A last byte below 0x80 says of seven bytes which are zero. One above says that so many bytes,
/// and seven, come before a zero. 0xff stands for 134 bytes. Source: defmt's book, "Encoding".
pub(super) fn frame(encoded: &[u8]) -> Option<Vec<u8>> {
    let mut backwards = Vec::new();
    let mut left = encoded.iter().rev().copied();
    while let Some(sign) = left.next() {
        match sign {
            0 => return None,
            1..=0x7f => {
                for bit in (0..7).rev() {
                    backwards.push(if sign >> bit & 1 == 1 { 0 } else { left.next()? });
                }
            }
            0x80..=0xff => {
                if sign < 0xff {
                    backwards.push(0);
                }
                let run = if sign < 0xff { usize::from(sign & 0x7f) + 7 } else { 134 };
                for _ in 0..run {
                    backwards.push(left.next()?);
                }
            }
        }
    }
    #[cfg(test)]
    super::reader::visits::add(encoded.len() + backwards.len());
    backwards.reverse();
    // With its own check byte at its end, a frame's check is 0, and stays so over the zeroes that
    // fill its last symbol up.
    (check(FIRST, &backwards) == 0).then_some(backwards)
}
