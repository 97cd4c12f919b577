//! FNV-1a, which a simulated stream says of the bytes that it took (`StreamCounts::sent_hash`).

/// The first hash.
pub const START: u64 = 0xcbf2_9ce4_8422_2325;

/// Continues from `hash` over `bytes`.
pub fn more(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
