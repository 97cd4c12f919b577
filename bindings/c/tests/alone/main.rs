//! Tests that want a process to themselves: what counts is who makes the first call, that a table
//! is full, that nothing was allocated, or which GPUs there are. Each runs this program again, for
//! itself alone.
#![allow(
    unsafe_code,
    clippy::undocumented_unsafe_blocks,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that panics has failed, which is its purpose; the C functions take pointers, \
              which are references here, or NULL on purpose"
)]

#[path = "../common/mod.rs"]
mod common;
mod counting;
#[cfg(all(feature = "cuda", target_pointer_width = "64"))]
mod cuda;
mod fork;
mod limits;
mod no_heap;

use contigo_testkit::emulated;
use std::path::Path;
use std::{env, thread};

/// In the process of one test: its name.
const TEST: &str = "CONTIGO_C_TEST";

/// Runs the test in a process of its own.
fn alone(act: impl FnOnce()) {
    if is_alone() { act() } else { run(None) }
}

/// The name of the test that runs, which the harness gives its thread.
fn test() -> String {
    thread::current().name().unwrap().to_owned()
}

/// Is this the process of the test?
fn is_alone() -> bool {
    env::var_os(TEST).is_some_and(|name| *name == *test())
}

/// Runs the process of a test, which finds libraries in `folder` first.
fn run(folder: Option<&Path>) {
    let test = test();
    let mut command = emulated::command(env::current_exe().unwrap());
    command.args(["--exact", &test, "--nocapture"]).env(TEST, &test);
    if let Some(folder) = folder {
        command.env("LD_LIBRARY_PATH", folder);
    }
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    // A name that no test has runs nothing, and succeeds.
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{test}: {said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
