//! A program with the feature `defmt` and no logger is linked, and runs:
//! `cargo test --package contigo --features defmt --test unheard`.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, which is its purpose")]

use contigo::{Align, Region, sim::SimBoard};

#[test]
fn events_that_nobody_hears_are_no_error() {
    let board = SimBoard::new(1);
    let region = Region::new(board.memory(4096).unwrap()).unwrap();
    let mut buf = region.alloc(1024, Align::LINE).unwrap();
    buf.copy_from_slice(&[7; 16]).unwrap();
    assert!(buf.view::<u8>().unwrap().starts_with(&[7; 16]));
}
