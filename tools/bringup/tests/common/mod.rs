//! Files made to the manuals' words, apart from the parser: no vendor's file is in this repository.
#![allow(dead_code, reason = "each test takes what it needs")]

/// The words of a 7-series configuration with `frames` words of frames (UG470, "Bitstream
/// Composition").
pub(crate) fn words(idcode: u32, frames: u32) -> Vec<u32> {
    let mut words = vec![0xffff_ffff; 8];
    words.extend([0x0000_00bb, 0x1122_0044, 0xffff_ffff, 0xffff_ffff, 0xaa99_5566, 0x2000_0000]);
    // TIMER, WBSTAR, then CMD: reset the CRC.
    words.extend([0x3002_2001, 0, 0x3002_0001, 0, 0x3000_8001, 7, 0x2000_0000]);
    words.extend([0x3001_8001, idcode, 0x3000_8001, 9]);
    // Of FDRI no word by a packet of type 1, then all by one of type 2.
    words.extend([0x3000_4000, 0x5000_0000 | frames]);
    // Frames look like anything, also like a sync word and a DESYNC.
    let frame = [0x3000_8001, 0x0000_000d, 0xaa99_5566, 0, 0x3001_8001, 0xdead_beef];
    words.extend(frame.iter().cycle().take(frames as usize));
    // CRC, CMD: start, CMD: desync, and no operation to the end.
    words.extend([0x3000_0001, 0x1234_5678, 0x3000_8001, 5, 0x3000_8001, 0x0000_000d]);
    words.extend([0x2000_0000; 16]);
    words
}

/// They, as a `.bin` in the order of a `.bit`.
pub(crate) fn bin(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// They, as Zynq's managers take them.
pub(crate) fn swapped(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// A `.bit` around them.
pub(crate) fn bit(design: &str, part: &str, payload: &[u8]) -> Vec<u8> {
    let mut file = vec![0, 9, 0x0f, 0xf0, 0x0f, 0xf0, 0x0f, 0xf0, 0x0f, 0xf0, 0, 0, 1];
    for (letter, text) in [(b'a', design), (b'b', part), (b'c', "2026/11/23"), (b'd', "13:00:00")] {
        file.push(letter);
        file.extend(u16::try_from(text.len() + 1).unwrap().to_be_bytes());
        file.extend(text.bytes());
        file.push(0);
    }
    file.push(b'e');
    file.extend(u32::try_from(payload.len()).unwrap().to_be_bytes());
    file.extend(payload);
    file
}

/// A good one for PYNQ-Z2.
pub(crate) fn zynq() -> Vec<u8> {
    bit("top;UserID=0XFFFFFFFF;Version=2024.1", "7z020clg400", &bin(&words(0x0372_7093, 101)))
}

/// The `axlf` of `xclbin.h`: metadata, and a section of `kind`.
pub(crate) fn xclbin(kind: u32, mode: u16, section: &[u8]) -> Vec<u8> {
    let mut file = b"xclbin2\0".to_vec();
    file.extend((-1_i32).to_le_bytes());
    file.resize(8 + 4 + 28 + 256, 0xff);
    file.extend(7_u64.to_le_bytes());
    let metadata = b"<?xml version=\"1.0\"?>   ";
    let first = 0x1c8 + 2 * 40;
    let total = first + metadata.len() + section.len();
    file.extend((total as u64).to_le_bytes());
    file.extend([0; 16 + 4]);
    file.extend(mode.to_le_bytes());
    file.resize(0x1c0, 0);
    file.extend(2_u64.to_le_bytes());
    for (kind, offset, bytes) in
        [(2_u32, first, metadata.len()), (kind, first + metadata.len(), section.len())]
    {
        file.extend(kind.to_le_bytes());
        file.extend(b"name\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
        file.extend((offset as u64).to_le_bytes());
        file.extend((bytes as u64).to_le_bytes());
    }
    file.extend(metadata);
    file.extend(section);
    file
}

/// As Quartus' files for Cyclone V begin and end.
pub(crate) fn rbf(body_bytes: usize) -> Vec<u8> {
    let mut file = vec![0xff; 128];
    file.extend([0x6a; 4]);
    file.extend([0x36, 0xf0, 0x11, 0x77].iter().cycle().take(body_bytes));
    file.extend([0xff; 515]);
    file
}
