//! A tool for NVTX, such as `nsys`, where one waits for this program.

use contigo_nvtx::{Error, Ranges};
use std::io::{self, Write};

/// Lets the tool hear the run, where the command has no listener of its own.
pub(crate) fn listen() {
    contigo_nvtx::listen().map_or_else(|error| unheard(&error), |_| ());
}

/// The tool, for a listener of the command's own.
pub(crate) fn ranges() -> Option<&'static Ranges> {
    Ranges::attached().unwrap_or_else(|error| {
        unheard(&error);
        None
    })
}

/// The run goes on without it.
fn unheard(error: &Error) {
    // Where standard error is closed too, this line is lost.
    let _ = writeln!(io::stderr(), "contigo: {error}; the run goes on without it");
}
