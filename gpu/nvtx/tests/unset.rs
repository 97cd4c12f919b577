//! Where no tool is named, a program loads nothing and hears nothing: it costs what it costs
//! without this crate.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed, which is its purpose")]

use contigo::trace::{self, Event, Kind, Ledger};
use std::collections::BTreeSet;
use std::fs;

static LEDGER: Ledger<4> = Ledger::new();

/// The files that are mapped into this process.
fn loaded() -> BTreeSet<String> {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines().filter_map(|line| line.split_once('/').map(|(_, path)| path.to_owned())).collect()
}

#[test]
fn nothing_is_loaded_and_no_listener_is_set() {
    if ["NVTX_INJECTION64_PATH", "NVTX_INJECTION32_PATH"]
        .iter()
        .any(|name| std::env::var_os(name).is_some())
    {
        return;
    }
    let before = loaded();
    assert_eq!(contigo_nvtx::listen(), Ok(false));
    assert_eq!(loaded(), before);
    // The place of the listener is free: an event costs the load and the branch that it costs
    // without this crate.
    assert!(trace::set_listener(&LEDGER).is_ok());
    trace::note(Event::CopyBytes { len_bytes: 7 });
    assert_eq!(LEDGER.total(Kind::CopyBytes).bytes, 7);
}
