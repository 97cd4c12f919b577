//! A tool for NVTX, such as `nsys`, where one waits for this program.

use contigo_nvtx::{Error, Ranges};
use std::io::{self, Write};

/// Lets the tool record the run, if the command has no listener of its own.
pub(crate) fn listen() {
    contigo_nvtx::listen().map_or_else(|error| unheard(&error), |_| ());
}

/// The tool, for a command with its own listener.
pub(crate) fn ranges() -> Option<&'static Ranges> {
    Ranges::attached().unwrap_or_else(|error| {
        unheard(&error);
        None
    })
}

/// Reports the error: the run goes on without the tool.
fn unheard(error: &Error) {
    // If standard error is closed too, this line is lost.
    let _ = writeln!(io::stderr(), "contigo: {error}; the run goes on without it");
}
