//! `contigo log`: prints a program's events, from the ring that it left.

#[cfg(feature = "log")]
mod lines;
#[cfg(feature = "log")]
mod read;
#[cfg(feature = "log")]
mod texts;

use crate::failure::Failure;
use clap::Args;
use std::path::PathBuf;

#[derive(Args, Debug)]
#[cfg_attr(not(feature = "log"), allow(dead_code, reason = "the help has them still"))]
pub(crate) struct Options {
    /// The file that the program logs into; FILE.before is the run before
    #[arg(value_name = "FILE")]
    pub(super) file: PathBuf,
    /// The program's file with its symbols, where the log's own path has none
    #[arg(long, value_name = "PROGRAM")]
    pub(super) elf: Option<PathBuf>,
    /// Go on with what is logged from now on, also by the program's next run
    #[arg(long)]
    pub(super) follow: bool,
    /// Print a JSON object a line
    #[arg(long)]
    pub(super) json: bool,
}

#[cfg(feature = "log")]
pub(crate) fn log(options: &Options) -> Result<(), Failure> {
    read::log(options)
}

/// Explains how to get the command.
#[cfg(not(feature = "log"))]
pub(crate) fn log(_: &Options) -> Result<(), Failure> {
    Err(Failure::Usage(
        "this tool was built without the decoder of logs: cargo install --path \
                        tools/contigo --features log"
            .into(),
    ))
}
