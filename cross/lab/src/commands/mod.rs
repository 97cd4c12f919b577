//! The subcommands.

pub(crate) mod command;
pub(crate) mod kernel;
pub(crate) mod list;
pub(crate) mod setup;
pub(crate) mod shell;
pub(crate) mod test;

use anyhow::Context;
use contigo_cross::failure::Result;
use std::{
    fmt::Display,
    io::{self, ErrorKind, Write},
};

/// Prints `text` and a line break on standard output. A reader that has gone (`cargo lab list |
/// head -1`) is no failure.
fn print(text: impl Display) -> Result<()> {
    let mut out = io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(error).context("cannot write to standard output")
        }
        _ => Ok(()),
    }
}
