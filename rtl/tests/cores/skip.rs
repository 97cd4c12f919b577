//! A core for a test, or a line that says why the test is skipped.

use contigo_rtl::NoCore;
use std::thread;

/// The core that was opened; `None`, and a line, where it was not built.
pub(crate) fn or_skip<T>(open: Result<T, NoCore>) -> Option<T> {
    match open {
        Ok(core) => Some(core),
        Err(why @ NoCore::NotBuilt { .. }) => {
            // The test runner names the test's thread after it.
            let thread = thread::current();
            let test = thread.name().unwrap_or("a core in Verilog");
            contigo_testkit::skipped(test, &why.to_string());
            None
        }
        Err(why) => panic!("{why}"),
    }
}
