#![allow(unsafe_code, reason = "a wrapper of a driver keeps a driver's promises")]
//! A driver with a gate behind it.

use super::AxiGate;
use contigo_core::forward;
use contigo_core::hw::{Mmio, Wait};
use contigo_core::job::{Completion, Driver, StopProgram};
use contigo_core::mem::DevSlice;
use contigo_core::types::Result;
use core::mem::ManuallyDrop;
use core::time::Duration;

/// **Any driver, made stoppable** by the gate between its core and memory.
///
/// Stopping shuts the gate and resets the core by the gate's reset line, whatever the core is
/// doing. Then the driver's own `stop` finds a core just reset, and the gate opens. So a driver
/// whose `stop` waits for the job's end, such as `ap_ctrl`, never waits. Jobs under way are lost,
/// and so are jobs that ended unreported.
///
/// An error that the gate recorded replaces a job's completion, even if the core ignores answers. A
/// driver of one job at a time reports completion when memory has answered every burst that passed.
/// With several jobs in flight the core itself must count its answers, and an error ends all of
/// them. Each poll reads one more register.
///
/// If the gate does not shut, because the interconnect owes an answer, no register of the core is
/// touched until it does. `poll`, `submit` and `doorbell` then return
/// [`Error::WillNotStop`](contigo_core::Error::WillNotStop), and dropping the driver leaks it.
#[derive(Debug)]
pub struct Gated<D, W: Mmio + Wait> {
    /// Dropped only if the core may be touched.
    driver: ManuallyDrop<D>,
    gate: AxiGate<W>,
    /// The gate was shut and has not been opened since. Meanwhile no register of the core is
    /// touched: an access to a core in reset may hang, or may report that the core has stopped
    /// while memory still owes it an answer.
    shut: bool,
    /// The offset of the gate's registers in the driver's own window.
    at: Option<usize>,
}

impl<D: Driver, W: Mmio + Wait> Gated<D, W> {
    /// Puts `driver` behind `gate`, which was opened first.
    ///
    /// # Safety
    /// 1. Everything that the driver's core does to memory passes this gate, and nothing else does.
    /// 2. The gate's `core_aresetn` resets the core. After a reset the core does nothing before its
    ///    next job, and the driver's `stop` sets up again all that a reset cleared.
    pub const unsafe fn new(driver: D, gate: AxiGate<W>) -> Self {
        Self { driver: ManuallyDrop::new(driver), gate, shut: false, at: None }
    }

    /// The same, with the gate's registers at `offset` in the driver's own window: the stop program
    /// then shuts the gate, whatever the core does. Without `offset` there is no stop program: the
    /// core's own would believe a core in reset.
    ///
    /// # Safety
    /// This gate's registers are at `offset` of the window that the stop program is for. At any
    /// other place the steps might start a job.
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

// SAFETY: 1. to 6. are the driver's. 2. after `stop`, the gate adds: it was shut, every burst that
// had passed was answered, and the core left its reset, which by `new`'s contract starts nothing.
// 7. The program leaves the gate shut. 8. Both have limits.
unsafe impl<D: Driver, W: Mmio + Wait> Driver for Gated<D, W> {
    forward!(
        |this| *this.driver => name, port, simulated, addr_bits, operands, depth, in_order, check,
        waits_for_doorbell, arm_irq, underruns
    );

    unsafe fn submit(&mut self, slot: usize, operands: &[DevSlice], words: &[u32]) -> Result<()> {
        self.refuse()?;
        // SAFETY: the caller's promise.
        unsafe { self.driver.submit(slot, operands, words) }
    }

    unsafe fn submit_more(
        &mut self,
        slot: usize,
        operands: &[DevSlice],
        words: &[u32],
    ) -> Result<()> {
        self.refuse()?;
        // SAFETY: the caller's promise.
        unsafe { self.driver.submit_more(slot, operands, words) }
    }

    fn doorbell(&mut self) -> Result<()> {
        self.refuse()?;
        self.driver.doorbell()
    }

    fn poll(&mut self, timeout: Duration) -> Result<Option<Completion>> {
        self.refuse()?;
        let told = self.driver.poll(timeout);
        let ended = matches!(told, Ok(Some(_)));
        // The gate decides, because a core may ignore answers. A single job's end is reported when
        // memory has answered every burst that passed.
        self.gate.failure(ended && self.driver.depth() == 1).map_or(told, Err)
    }

    fn stop(&mut self) -> Result<()> {
        self.shut = true;
        self.gate.stop_core()?;
        self.driver.stop()?;
        // SAFETY: the core was reset, and its driver has stopped it since.
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
        // Retries a gate that did not shut; it stays shut until the next program opens it.
        if !self.shut || self.gate.stop_core().is_ok() {
            // SAFETY: `drop` runs once, and nothing uses it afterwards.
            unsafe { ManuallyDrop::drop(&mut self.driver) }
        }
    }
}
