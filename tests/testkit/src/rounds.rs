//! How often a random test repeats.

use crate::emulated;
use std::env;

/// How many of its rounds, seeds or repetitions a random test does here, of `all`, which is at
/// least 1: a tenth on a developer's machine, so that all tests end in minutes, and all of them
/// where `CONTIGO_ROUNDS=all` is set, as `.ci/run` does. Under an emulator it is always a tenth: a
/// round takes ten to forty times as long there, and a processor's own run does all.
pub fn rounds(all: u64) -> u64 {
    let asked = env::var("CONTIGO_ROUNDS").is_ok_and(|value| {
        assert_eq!(value, "all", "CONTIGO_ROUNDS is all, or it is not set");
        true
    });
    if asked && emulated::why().is_none() { all } else { all.div_ceil(10) }
}
