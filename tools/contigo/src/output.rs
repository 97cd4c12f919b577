//! Standard output: text, or one JSON value. A reader that has gone (`contigo info | head -1`) is
//! no failure.

use crate::failure::Failure;
use serde::Serialize;
use std::{
    fmt::Display,
    io::{self, ErrorKind, Write},
};

/// Prints `text` and a line break.
pub(crate) fn text(text: impl Display) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::Output(error)),
        _ => Ok(()),
    }
}

/// Prints one value, indented, and nothing else.
pub(crate) fn json(value: &impl Serialize) -> Result<(), Failure> {
    let indented =
        serde_json::to_string_pretty(value).map_err(|error| Failure::Encode(error.to_string()))?;
    text(indented)
}
