#![allow(unsafe_code, reason = "a wrapper of a driver keeps a driver's promises")]
//! A driver with a gate behind it.

use super::AxiGate;
use contigo_core::{
    forward,
    hw::{Mmio, Wait},
    job::{Completion, Driver, StopProgram},
    mem::DevSlice,
    types::Result,
};
use core::{mem::ManuallyDrop, time::Duration};

/// **Any driver, made stoppable** by the gate between its core and memory.
///
/// Stopping shuts the gate and resets the core by the gate's reset line, whatever the core is
/// doing. Then the driver's own `stop` finds a core fresh from its reset, and the gate opens. So a
/// driver whose `stop` waits for the job's end, as that of `ap_ctrl`, never waits for it. The jobs
/// under way are lost, with those that had ended and whose end was not told.
///
/// An error that the gate kept is reported in place of a job's end, also where the core looks at no
/// answer. A driver of one job at a time tells its end when memory has answered all that passed.
/// With several jobs in flight the core itself must count its answers, and an error ends all of
/// them. A look costs one register more.
///
/// Where the gate does not shut, because the interconnect owes an answer, no register of the core
/// is touched until it does. `poll` and `submit` are
/// [`Error::WillNotStop`](contigo_core::Error::WillNotStop) then, and a driver that is dropped is
/// leaked.
#[derive(Debug)]
pub struct Gated<D, W: Mmio + Wait> {
    /// Dropped where the core may be touched.
    driver: ManuallyDrop<D>,
    gate: AxiGate<W>,
    /// The gate was told to shut, and was not opened since. Until then no register of the core is
    /// touched. The core may be in its reset, where an access may hang. Or it would say there that
    /// it has stopped, while memory still owes it an answer.
    shut: bool,
    /// Where the gate's registers are in the driver's own window.
    at: Option<usize>,
}

impl<D: Driver, W: Mmio + Wait> Gated<D, W> {
    /// `driver` behind `gate`, which was opened first.
    ///
    /// # Safety
    /// 1. Everything that the driver's core does to memory passes this gate, and nothing else does.
    /// 2. The gate's `core_aresetn` resets the core. After a reset the core does nothing before its
    ///    next job, and the driver's `stop` sets up again all that a reset cleared.
    pub const unsafe fn new(driver: D, gate: AxiGate<W>) -> Self {
        Self { driver: ManuallyDrop::new(driver), gate, shut: false, at: None }
    }

    /// The same, where the gate's registers are at `offset` in the driver's own window: the stop
    /// program then shuts the gate, whatever the core does. Without it there is none: the core's
    /// own would believe a core in its reset.
    ///
    /// # Safety
    /// This gate's registers are at `offset` of the window that the stop program is left for. At
    /// another place the steps might start a job.
    #[must_use]
    pub const unsafe fn in_window(mut self, offset: usize) -> Self {
        self.at = Some(offset);
        self
    }

    /// The gate.
    pub const fn gate(&self) -> &AxiGate<W> {
        &self.gate
    }

    /// Refuses a job while the gate is shut.
    fn refuse(&self) -> Result<()> {
        if self.shut { Err(self.gate.held()) } else { Ok(()) }
    }
}

// SAFETY: 1. to 6. are the driver's. 2. after `stop`, also by the gate: it was shut, all that had
// passed was answered, and the core came out of its reset, which `new`'s caller promised starts
// nothing. 7. The program leaves the gate shut. 8. Both have limits.
unsafe impl<D: Driver, W: Mmio + Wait> Driver for Gated<D, W> {
    forward!(
        |this| *this.driver => name, port, simulated, addr_bits, operands, depth, in_order, check,
        arm_irq, ran_dry
    );

    unsafe fn submit(&mut self, slot: usize, operands: &[DevSlice], words: &[u32]) -> Result<()> {
        self.refuse()?;
        // SAFETY: the caller's promise.
        unsafe { self.driver.submit(slot, operands, words) }
    }

    fn poll(&mut self, timeout: Duration) -> Result<Option<Completion>> {
        self.refuse()?;
        let told = self.driver.poll(timeout);
        let ended = matches!(told, Ok(Some(_)));
        // The gate has the last word: a core may look at no answer. The end of a lone job is
        // reported when memory has answered all that passed.
        self.gate.failure(ended && self.driver.depth() == 1).map_or(told, Err)
    }

    fn stop(&mut self) -> Result<()> {
        self.shut = true;
        self.gate.stop_core()?;
        self.driver.stop()?;
        // SAFETY: the core is fresh from its reset, and its driver has stopped it.
        unsafe { self.gate.open_again() };
        self.shut = false;
        Ok(())
    }

    fn stop_program(&self) -> StopProgram {
        self.at.map(AxiGate::<W>::program).unwrap_or_default()
    }
}

impl<D, W: Mmio + Wait> Drop for Gated<D, W> {
    fn drop(&mut self) {
        // A gate that is shut is tried once more; it stays shut for the next program, which opens
        // it.
        if !self.shut || self.gate.stop_core().is_ok() {
            // SAFETY: once, and it is not used after it.
            unsafe { ManuallyDrop::drop(&mut self.driver) }
        }
    }
}
