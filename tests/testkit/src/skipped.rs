//! Tests that were skipped: each says so at once, and the last test program lists them again
//! (`tests/tests/summary.rs`).

use std::env;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::process::parent_id;
use std::path::PathBuf;

/// Prints that `test` was skipped, and why: a reason ends with how to have what is missing. It is
/// printed past the test runner's capture, so that it is seen although the test passes.
pub fn skipped(test: &str, why: &str) {
    let why = why.replace('\n', " ");
    let line = format!("skipped: {test}: {why}\n");
    // In one piece, because tests run side by side. A write that fails is no failure of the test.
    let _ = std::io::stderr().write_all(line.as_bytes());
    let noted =
        noted().and_then(|path| OpenOptions::new().append(true).create(true).open(path).ok());
    if let Some(mut noted) = noted {
        let _ = noted.write_all(format!("{test}\t{why}\n").as_bytes());
    }
}

/// Takes the tests, with their reasons, that this `cargo test` skipped until now.
#[must_use]
pub fn take_skipped() -> Vec<(String, String)> {
    let Some(path) = noted() else { return Vec::new() };
    let text = fs::read_to_string(&path).unwrap_or_default();
    let _ = fs::remove_file(path);
    let lines = text.lines().filter_map(|line| line.split_once('\t'));
    lines.map(|(test, why)| (test.to_owned(), why.to_owned())).collect()
}

/// The file beside the build that all programs of one `cargo test` share: cargo is the parent of
/// each. `None`: this program is not where cargo builds tests.
fn noted() -> Option<PathBuf> {
    let program = env::current_exe().ok()?;
    let deps = program.parent().filter(|folder| folder.ends_with("deps"))?;
    Some(deps.parent()?.join(format!("skipped-by-{}", parent_id())))
}
