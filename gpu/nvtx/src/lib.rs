//! Contigo's events as ranges of NVTX, NVIDIA's protocol between programs and profilers.
//!
//! ```text
//!   NVTX_INJECTION64_PATH ──► injection.rs: the tool's library, loaded, and asked to attach
//!                                 │ its functions, in the tables of abi.rs
//!                                 ▼
//!   contigo::trace ─────────► ranges.rs: each event is a range, a mark, or a job's begin and end
//! ```
//!
//! A tool such as `nsys profile` sets the variable for the program that it starts. [`listen`] looks
//! at it once. Where it is not set nothing is loaded, and the runtime's events have no listener: a
//! run costs what it costs without this crate.
//!
//! | event | in the domain `contigo` | payload |
//! |---|---|---|
//! | a sync, a copy | a range of its thread, by its name: `sync for device`, `copy` | bytes |
//! | a job | a range `job on PORT`, from its doorbell to its result | its number |
//! | every other event | a mark, by its name: `map`, `take`, `leak` | bytes, where it has any |
//!
//! Copies are red. Names have no numbers in them, so that `nsys stats` adds up what is alike.
//!
//! A program with a listener of its own hands each event on to [`Ranges`], which is a [`Listener`].
//!
//! [`Listener`]: contigo::trace::Listener

mod abi;
mod injection;
mod ranges;

pub use injection::Error;
pub use ranges::Ranges;

use contigo::trace;
use std::sync::OnceLock;

/// Sends the runtime's events to the tool that `NVTX_INJECTION64_PATH` names, from now on. In a
/// program of 32 bits it is `NVTX_INJECTION32_PATH`. `false`: the variable is not set. A second
/// call changes nothing.
///
/// # Errors
/// The variable names no tool that attaches, or another listener hears the events already.
pub fn listen() -> Result<bool, Error> {
    static LISTENS: OnceLock<Result<bool, Error>> = OnceLock::new();
    let first = || {
        let Some(ranges) = Ranges::attached()? else { return Ok(false) };
        trace::set_listener(ranges).map_or(Err(Error::AnotherListens), |()| Ok(true))
    };
    LISTENS.get_or_init(first).clone()
}
