//! The file: a header of one page, then the ring. Each frame of the ring ends with a check byte.
//! All numbers are little-endian.

/// The first bytes of the file. The last one is the version of the layout.
pub(crate) const MAGIC: [u8; 8] = *b"ctg-log\x01";
/// The header's size: one page of every kernel here, so that the ring begins at a page.
pub(crate) const HEADER_BYTES: usize = 4096;
/// The most bytes of one frame in the ring. A longer event is dropped. Each thread has a buffer of
/// this size.
pub(crate) const FRAME_BYTES: usize = 512;
/// The most bytes of the program's path in the header. Linux's `PATH_MAX` is longer; a longer path
/// is cut.
pub(crate) const PATH_BYTES: usize = 1024;
/// The space for a GNU build ID: 20 bytes, by SHA-1. No linker makes a longer ID by default.
pub(crate) const BUILD_ID_BYTES: usize = 20;

/// The offset of each field in the header.
pub(crate) mod at {
    /// `u32`: the ring's size.
    pub(crate) const RING_BYTES: usize = 8;
    /// `u32`: the process ID.
    pub(crate) const PID: usize = 12;
    /// `u64`: nanoseconds of `CLOCK_MONOTONIC` at the start.
    pub(crate) const START_MONOTONIC_NS: usize = 16;
    /// `u64`: nanoseconds of `CLOCK_REALTIME` at the start.
    pub(crate) const START_REAL_NS: usize = 24;
    /// Text of 36 bytes: the kernel's boot ID.
    pub(crate) const BOOT_ID: usize = 32;
    /// `u64`: the number of bytes in whole frames, counted from the start.
    pub(crate) const WRITTEN: usize = 128;
    /// `u64`: the number of bytes that a writer has begun. Ring bytes below `RESERVED - RING_BYTES`
    /// may be overwritten.
    pub(crate) const RESERVED: usize = 136;
    /// `u64`: the number of dropped events.
    pub(crate) const DROPPED: usize = 144;
    /// `u32`: the build ID's length.
    pub(crate) const BUILD_ID_LEN: usize = 192;
    /// The build ID.
    pub(crate) const BUILD_ID: usize = 196;
    /// `u32`: the path's length.
    pub(crate) const PATH_LEN: usize = 252;
    /// The path of the program's file.
    pub(crate) const PATH: usize = 256;
}

/// The length of the kernel's boot ID, as text.
pub(crate) const BOOT_ID_BYTES: usize = 36;

const _: () =
    assert!(at::PATH + PATH_BYTES <= HEADER_BYTES && at::BUILD_ID + BUILD_ID_BYTES <= at::PATH_LEN);

/// A frame's check before its first byte. It is not 0, because a frame of zeroes must not pass. The
/// check is one byte at a frame's end, so that a part of a frame is not taken for another frame:
/// CRC-8 with the polynomial 0x07 (ITU-T I.432.1).
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

/// Continues the check `check` over `bytes`.
#[allow(clippy::indexing_slicing, reason = "a byte is below 256")]
pub(crate) fn check(check: u8, bytes: &[u8]) -> u8 {
    bytes.iter().fold(check, |check, byte| TABLE[usize::from(check ^ byte)])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Starting at 0, it is the SMBus's CRC-8, whose check value is 0xf4.
    #[test]
    fn it_is_the_crc_of_the_catalogue() {
        assert_eq!(check(0, b"123456789"), 0xf4);
        assert_eq!(check(check(FIRST, b"1234"), b"56789"), check(FIRST, b"123456789"));
    }
}
