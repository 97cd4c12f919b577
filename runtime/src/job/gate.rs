#![allow(unsafe_code, reason = "who opens a gate promises what the core touches")]
//! The part that stops a core from outside, whatever the core does.

use super::StopProgram;
use crate::types::{Error, Result};

/// A gate between a core and memory, which has the core's reset line too
/// ([`AxiGate`](crate::drivers::axi_gate::AxiGate)).
pub(crate) trait Gate {
    /// Lets nothing new pass, waits for what is owed, resets the core, and ends that reset.
    /// Afterwards nothing passes or is under way.
    fn shut(&self) -> Result<()>;

    /// Forgets the error, and lets bursts pass.
    ///
    /// # Safety
    /// The core touches only memory that was handed to it.
    unsafe fn open_up(&self);

    /// The first error since the gate opened.
    fn error(&self) -> Option<Error>;

    /// The same as [`shut`](Self::shut), as steps for the window that has the gate's registers at
    /// `offset`.
    fn program(&self, offset: usize) -> StopProgram;
}
