//! A core for a test, or a line that says why the test is skipped.

use contigo_rtl::{Core, NoCore, PowerOn};
use std::io::{Write, stderr};

pub(crate) fn core(test: &str, name: &str, power_on: PowerOn) -> Option<Core> {
    match Core::open(name, power_on) {
        Ok(core) => Some(core),
        Err(why @ NoCore::NotBuilt { .. }) => {
            // The harness keeps what `eprintln!` prints of a test that passes.
            let _ = writeln!(stderr(), "SKIPPED: {test}: {why}");
            None
        }
        Err(why) => panic!("{why}"),
    }
}
