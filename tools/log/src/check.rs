//! One byte at the end of each frame, so that a half of one is not taken for another: CRC-8 with
//! the polynomial 0x07 (ITU-T I.432.1), from 0xff on.

/// The check's value before the first byte. Not 0: a frame of zeroes must not be right.
pub(crate) const FIRST: u8 = 0xff;

const TABLE: [u8; 256] = {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        #[allow(clippy::cast_possible_truncation, reason = "below 256")]
        let mut value = index as u8;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 0x80 == 0 { value << 1 } else { value << 1 ^ 0x07 };
            bit += 1;
        }
        #[allow(clippy::indexing_slicing, reason = "below 256, at compile time")]
        {
            table[index] = value;
        }
        index += 1;
    }
    table
};

/// The check over `bytes`, after those that made `check`.
#[allow(clippy::indexing_slicing, reason = "a byte is below 256")]
pub(crate) fn check(check: u8, bytes: &[u8]) -> u8 {
    bytes.iter().fold(check, |check, byte| TABLE[usize::from(check ^ byte)])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From 0 on it is the SMBus's CRC-8, whose check value is 0xf4.
    #[test]
    fn it_is_the_crc_of_the_catalogue() {
        assert_eq!(check(0, b"123456789"), 0xf4);
        assert_eq!(check(check(FIRST, b"1234"), b"56789"), check(FIRST, b"123456789"));
    }
}
