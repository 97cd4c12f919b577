//! A core for a test, or a line that says why the test is skipped.

use contigo_rtl::NoCore;
use std::io::{Write, stderr};

/// The core that was opened; `None`, and a line, where it was not built.
pub(crate) fn or_skip<T>(test: &str, open: Result<T, NoCore>) -> Option<T> {
    match open {
        Ok(core) => Some(core),
        Err(why @ NoCore::NotBuilt { .. }) => {
            // The harness keeps what `eprintln!` prints of a test that passes.
            let _ = writeln!(stderr(), "SKIPPED: {test}: {why}");
            None
        }
        Err(why) => panic!("{why}"),
    }
}
