//! A program with a listener of its own gets an error, and keeps its listener.
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::panic,
    reason = "the environment of a process with one test; a test that panics has failed"
)]

mod tool;

use contigo::trace::{self, Ledger};

static LEDGER: Ledger<4> = Ledger::new();

#[test]
fn another_listener_is_an_error_each_time() {
    trace::set_listener(&LEDGER).ok().unwrap();
    // SAFETY: the one test of this process: no other code reads the environment meanwhile.
    unsafe { std::env::set_var(tool::VARIABLE, tool::library()) };
    for _ in 0..2 {
        assert_eq!(contigo_nvtx::listen(), Err(contigo_nvtx::Error::AnotherListens));
    }
    assert!(contigo_nvtx::Ranges::attached().unwrap().is_some(), "it can hand its events on");
}
