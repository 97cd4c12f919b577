//! What a device may use is leaked, never given back.
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    reason = "no device receives an address; a test that panics has failed, which is its purpose"
)]

use contigo::sim::SimBoard;
use contigo::{Align, Direction, Region};
use contigo_objects::{Buffer, Views};

const BYTES: usize = 256;

/// A region, how much of it is free, and a buffer of it that a device has.
fn given() -> (Region, usize, Buffer, Views) {
    let board = SimBoard::new(1);
    let region = Region::new(board.memory(64 * 1024).unwrap()).unwrap();
    let (mut buffer, views) =
        (Buffer::new(region.alloc(BYTES, Align::DLPACK).unwrap()), Views::new());
    let free = region.free_bytes();
    // SAFETY: no device receives the address.
    let given = unsafe { buffer.give(&views, &board.port(), 0..BYTES, Direction::Bidirectional) };
    assert!(given.is_ok());
    (region, free, buffer, views)
}

#[test]
fn buffer_dropped_at_the_device_is_leaked() {
    let (region, free, buffer, _) = given();
    drop(buffer);
    assert_eq!(region.free_bytes(), free);
}

#[test]
fn a_buffer_in_whose_place_another_is_put() {
    let (region, free, mut buffer, views) = given();
    buffer.put(Ok(region.alloc(BYTES, Align::DLPACK).unwrap()));
    assert_eq!(region.free_bytes(), free - BYTES, "the first is leaked");
    drop(buffer.free(&views).unwrap());
    assert_eq!(region.free_bytes(), free);
}
