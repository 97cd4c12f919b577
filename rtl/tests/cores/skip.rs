//! A core for a test, or a line that says why the test is skipped.

use contigo_rtl::NoCore;
use std::{
    io::{Write, stderr},
    thread,
};

/// The core that was opened; `None`, and a line, where it was not built.
pub(crate) fn or_skip<T>(open: Result<T, NoCore>) -> Option<T> {
    match open {
        Ok(core) => Some(core),
        Err(why @ NoCore::NotBuilt { .. }) => {
            // The harness keeps what `eprintln!` prints of a test that passes, and names the
            // test's thread after it.
            let thread = thread::current();
            let test = thread.name().unwrap_or("a core in Verilog");
            let _ = writeln!(stderr(), "SKIPPED: {test}: {why}");
            None
        }
        Err(why) => panic!("{why}"),
    }
}
