#![allow(unsafe_code, reason = "a wrapper of a driver keeps a driver's promises")]
//! A driver with a gate behind it.

use super::gate::AxiGate;
use crate::{
    hw::{Mmio, Wait},
    job::{Completion, Driver, Gate, StopProgram, TypedDriver},
    types::Result,
};
use core::time::Duration;

/// **Any driver, made stoppable** by the gate between its core and memory.
///
/// Stopping shuts the gate and resets the core by the gate's reset line, whatever the core is
/// doing. Then the driver's own `stop` finds a core fresh from its reset, and the gate opens. So a
/// driver whose `stop` waits for the job's end, as that of `ap_ctrl`, never waits for it. The job
/// under way is lost.
///
/// A look costs one register more. An error that the gate kept is told in place of the job's end.
#[derive(Debug)]
pub struct Gated<D, W> {
    driver: D,
    gate: AxiGate<W>,
    /// Where the gate's registers are in the driver's own window.
    at: Option<usize>,
}

impl<D: Driver, W: Mmio + Wait> Gated<D, W> {
    /// `driver` behind `gate`.
    ///
    /// # Safety
    /// 1. Everything that the driver's core does to memory passes this gate, and nothing else does.
    /// 2. The gate's `core_aresetn` resets the core. After a reset the core does nothing before its
    ///    next job, and the driver's `stop` sets up again all that a reset cleared.
    pub const unsafe fn new(driver: D, gate: AxiGate<W>) -> Self {
        Self { driver, gate, at: None }
    }

    /// The same, where the gate's registers are at `offset` in the driver's own window: the stop
    /// program then shuts the gate, whatever the core does.
    #[must_use]
    pub fn in_window(self, offset: usize) -> Self {
        Self { at: Some(offset), ..self }
    }

    /// The gate.
    pub const fn gate(&self) -> &AxiGate<W> {
        &self.gate
    }
}

// SAFETY: 1. to 6. are the driver's. 2. after `stop`, also by the gate: it was shut, all that had
// passed was answered, and the core came out of its reset, which `new`'s caller promised starts
// nothing. 7. The program leaves the gate shut. 8. Both have limits.
unsafe impl<D: Driver, W: Mmio + Wait> Driver for Gated<D, W> {
    crate::types::forward::forward!(|this| this.driver => name, port, addr_bits, operands, depth, in_order, check, submit, arm_irq, ran_dry);

    fn poll(&mut self, timeout: Duration) -> Result<Option<Completion>> {
        let told = self.driver.poll(timeout);
        // The gate knows the address, and the core may say nothing.
        self.gate.error().map_or(told, Err)
    }

    fn stop(&mut self) -> Result<()> {
        Gate::shut(&self.gate)?;
        self.driver.stop()?;
        // SAFETY: the core is fresh from its reset, and its driver has stopped it.
        unsafe { Gate::open_up(&self.gate) };
        Ok(())
    }

    fn stop_program(&self) -> StopProgram {
        self.at.map_or_else(|| self.driver.stop_program(), AxiGate::<W>::program)
    }
}

impl<D: TypedDriver<OPERANDS>, W: Mmio + Wait, const OPERANDS: usize> TypedDriver<OPERANDS> for Gated<D, W> {
    type Args = D::Args;
    type Words = D::Words;
    type Report = D::Report;

    fn words(args: &D::Args) -> D::Words {
        D::words(args)
    }

    fn report(&self, completion: &Completion) -> D::Report {
        self.driver.report(completion)
    }
}
