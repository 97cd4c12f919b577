#![allow(unsafe_code, reason = "opening a gate is a promise about the core")]
//! What a driver remembers of the gate that stops its core.

use super::gate::AxiGate;
use crate::{
    hw::{Mmio, Wait},
    job::Completion,
    types::Result,
};

/// The gate was told to shut, and was not opened since. Until then no
/// register of the core is touched. The core may be in its reset, where an access may hang. Or it
/// would say there that it has stopped, while memory still owes it an answer.
#[derive(Debug)]
pub(super) struct Shut(bool);

impl Shut {
    /// A gate that may be open.
    pub(super) const NOT: Self = Self(false);

    /// As [`Driver::stop`](crate::Driver::stop).
    pub(super) fn stop<W: Mmio + Wait>(&mut self, gate: &AxiGate<W>, driver: impl FnOnce() -> Result<()>) -> Result<()> {
        self.0 = true;
        gate.stop_core()?;
        driver()?;
        // SAFETY: the core is fresh from its reset, and its driver has stopped it.
        unsafe { gate.open_again() };
        self.0 = false;
        Ok(())
    }

    /// Refuses a job while it is shut.
    pub(super) fn refuse<W: Mmio + Wait>(&self, gate: &AxiGate<W>) -> Result<()> {
        if self.0 { Err(gate.held()) } else { Ok(()) }
    }

    /// As [`Driver::poll`](crate::Driver::poll), of a driver that has `depth` jobs at most. The
    /// gate has the last word: a core may look at no answer. The end of a lone job is told when
    /// memory has answered all that passed.
    pub(super) fn poll<W: Mmio + Wait>(
        &self,
        gate: &AxiGate<W>,
        depth: usize,
        told: impl FnOnce() -> Result<Option<Completion>>,
    ) -> Result<Option<Completion>> {
        self.refuse(gate)?;
        let told = told();
        let ended = matches!(told, Ok(Some(_)));
        gate.failure(ended && depth == 1).map_or(told, Err)
    }

    /// May a driver that is dropped touch its core? A gate that is shut is tried once more; it
    /// stays shut for the next program, which opens it.
    pub(super) fn lets_go<W: Mmio + Wait>(&self, gate: &AxiGate<W>) -> bool {
        !self.0 || gate.stop_core().is_ok()
    }
}
