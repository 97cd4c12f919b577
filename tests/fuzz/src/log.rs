use contigo_log::{BuildId, Decoder, Reader};
use std::cell::RefCell;
use std::io::Write as _;
use std::os::fd::AsRawFd as _;

/// The frames that are decoded by a foreign ELF file.
const FRAMES: [&[u8]; 4] =
    [&[], &[0, 0], &[1, 0, 0xff, 0xff, 0xff, 0xff], &[2, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]];

pub fn run(bytes: &[u8]) {
    let file = memory(bytes);
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    if bytes.starts_with(b"\x7fELF") {
        return elf(bytes);
    }
    let mut reader = Reader::open(path).expect("it is a file");
    match reader.pieces() {
        Ok(pieces) => drop(pieces),
        Err(error) => drop(error.to_string()),
    }
    // What was read once is not told again.
    assert!(reader.pieces().map_or(true, |again| again.is_empty()));
}

/// A ring whose program is this file, so that the file is decoded by.
fn elf(bytes: &[u8]) {
    let Some(id) = BuildId::of(bytes) else { return };
    thread_local!(static RING: RefCell<Vec<u8>> = RefCell::new(ring()));
    let ring = RING.with_borrow_mut(|ring| {
        ring[192..196].copy_from_slice(&(id.bytes().len() as u32).to_le_bytes());
        ring[196..196 + id.bytes().len()].copy_from_slice(id.bytes());
        memory(ring)
    });
    let header = Reader::open(format!("/proc/self/fd/{}", ring.as_raw_fd()))
        .and_then(|reader| reader.header())
        .expect("a good ring");
    if let Ok(decoder) = Decoder::new(bytes, &header) {
        for frame in FRAMES {
            let _ = decoder.entry(frame);
        }
    }
}

/// An empty ring of the smallest size.
fn ring() -> Vec<u8> {
    let mut ring = vec![0; 4096 + 4096];
    ring[..8].copy_from_slice(b"ctg-log\x01");
    ring[8..12].copy_from_slice(&4096_u32.to_le_bytes());
    ring
}

fn memory(bytes: &[u8]) -> std::fs::File {
    let file = nix::sys::memfd::memfd_create(c"log", nix::sys::memfd::MFdFlags::MFD_CLOEXEC)
        .expect("memfd_create");
    let mut file = std::fs::File::from(file);
    file.write_all(bytes).expect("memory");
    file
}
