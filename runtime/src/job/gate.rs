#![allow(unsafe_code, reason = "who opens a gate promises what the core touches")]
//! The part that stops a core from outside, whatever the core does.

use super::{Completion, StopProgram};
use crate::types::{Error, Result};

/// A gate between a core and memory, which has the core's reset line too
/// ([`AxiGate`](crate::drivers::axi_gate::AxiGate)).
pub(crate) trait Gate {
    /// Lets nothing new pass, waits for what is owed, resets the core, and ends that reset.
    /// Afterwards nothing passes or is under way. Where it fails the core may be in its reset, and
    /// a write may be under way.
    fn shut(&self) -> Result<()>;

    /// Forgets the error, and lets bursts pass.
    ///
    /// # Safety
    /// The core touches only memory that was handed to it.
    unsafe fn open_up(&self);

    /// The first error since the gate opened; that somebody shut it is one. With `settled` it first
    /// waits for what memory owes, and a core that is owed an answer for too long is an error too.
    fn error(&self, settled: bool) -> Option<Error>;

    /// The error of a gate that did not shut.
    fn held(&self) -> Error;

    /// The same as [`shut`](Self::shut), as steps for the window that has the gate's registers at
    /// `offset`.
    fn program(&self, offset: usize) -> StopProgram;
}

/// A driver's word about its gate: it was told to shut, and was not opened since. Until then no
/// register of the core is touched. The core may be in its reset, where an access may hang. Or it
/// would say there that it has stopped, while memory still owes it an answer.
#[derive(Debug)]
pub(crate) struct Shut(bool);

impl Shut {
    /// A gate that may be open.
    pub(crate) const NOT: Self = Self(false);

    /// As [`Driver::stop`](super::Driver::stop).
    pub(crate) fn stop(&mut self, gate: &dyn Gate, driver: impl FnOnce() -> Result<()>) -> Result<()> {
        self.0 = true;
        gate.shut()?;
        driver()?;
        // SAFETY: the core is fresh from its reset, and its driver has stopped it.
        unsafe { gate.open_up() };
        self.0 = false;
        Ok(())
    }

    /// Refuses a job while it is shut.
    pub(crate) fn refuse(&self, gate: &dyn Gate) -> Result<()> {
        if self.0 { Err(gate.held()) } else { Ok(()) }
    }

    /// As [`Driver::poll`](super::Driver::poll), of a driver that has `depth` jobs at most. The
    /// gate has the last word: a core may look at no answer. The end of a lone job is told when
    /// memory has answered all that passed.
    pub(crate) fn poll(
        &self,
        gate: &dyn Gate,
        depth: usize,
        told: impl FnOnce() -> Result<Option<Completion>>,
    ) -> Result<Option<Completion>> {
        self.refuse(gate)?;
        let told = told();
        let ended = matches!(told, Ok(Some(_)));
        gate.error(ended && depth == 1).map_or(told, Err)
    }

    /// May a driver that is dropped touch its core? A gate that is shut is tried once more; it
    /// stays shut for the next program, which opens it.
    pub(crate) fn lets_go(&self, gate: &dyn Gate) -> bool {
        !self.0 || gate.shut().is_ok()
    }
}
