//! Standard output: a table, or one JSON value. A reader that has gone (`cargo cross build | head
//! -1`) is no failure.

use contigo_cross::failure::Result;
use serde::Serialize;
use std::{
    fmt::Display,
    io::{self, ErrorKind, Write},
};

/// Prints `text` and a line break.
pub(crate) fn text(text: impl Display) -> Result<()> {
    let mut out = io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(anyhow::anyhow!("cannot write to standard output: {error}"))
        }
        _ => Ok(()),
    }
}

/// Prints one value, indented, and nothing else.
pub(crate) fn json(value: &impl Serialize) -> Result<()> {
    text(serde_json::to_string_pretty(value)?)
}

/// A size as people say it.
pub(crate) fn size(bytes: u64) -> String {
    let tenths = bytes.saturating_mul(10) >> 20;
    format!("{}.{} MiB", tenths / 10, tenths % 10)
}
