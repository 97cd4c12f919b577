use contigo_bringup::bitstream::{Bitstream, ByteOrder};

pub fn run(bytes: &[u8]) {
    let found = match Bitstream::parse(bytes) {
        Ok(found) => found,
        Err(error) => return drop(error.to_string()),
    };
    assert!(found.payload.start <= found.payload.end && found.payload.end <= bytes.len());
    let _ = (found.device(), found.family());
    for order in [ByteOrder::BitFile, ByteOrder::Swapped] {
        let mut written = Vec::new();
        // Words that cannot be turned round are refused before the first byte.
        if found.write(bytes, order, &mut written).is_ok() {
            assert_eq!(written.len(), found.payload.len());
        }
    }
}
