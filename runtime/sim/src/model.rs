#![allow(
    unsafe_code,
    reason = "a device that lies about being finished corrupts memory, also a simulated one"
)]
//! A model of an IP core.

use super::SimBus;

/// A model of an IP core: what its registers do, and what it does to memory.
/// [`Driver`](contigo_core::Driver) has an example.
///
/// It is a state machine over virtual time. [`advance`](Self::advance) is called before every
/// register access and after every wait, with the clock as it stands then.
///
/// # Safety
/// Callers owe nothing.
///
/// # Implementation safety
/// The model touches only memory that its registers were told of. It touches none of it between
/// saying that it is finished and the next start. The model must keep each promise that
/// [`Driver`](contigo_core::Driver) makes of a device. A model that is stuck shows it by never
/// being finished.
pub unsafe trait Model: Send {
    /// The size of its register window, in bytes.
    const WINDOW_BYTES: usize;

    /// The size of this one's, where models of one type differ in it. It never changes.
    fn window_bytes(&self) -> usize {
        Self::WINDOW_BYTES
    }

    /// Does what is due by now.
    fn advance(&mut self, bus: &mut SimBus<'_>);

    /// A 32-bit read at `offset`, a multiple of 4 inside the window.
    fn read32(&mut self, offset: usize, bus: &mut SimBus<'_>) -> u32;

    /// A 32-bit write at `offset`, a multiple of 4 inside the window.
    fn write32(&mut self, offset: usize, value: u32, bus: &mut SimBus<'_>);

    /// When the interrupt line rises, in virtual nanoseconds; a time in the past: it is high until
    /// acknowledged, and ends a wait at once. `None`: it will not rise by itself. An earlier time
    /// than the true one is allowed: the wait ends too early, and the driver looks again.
    fn irq_at_ns(&self) -> Option<u64>;

    /// Lets time pass, for a wait, until the interrupt line rises or `deadline_ns`; the time when
    /// that was. A model that cannot foretell its interrupt, as one of gates cannot, works here,
    /// and moves the clock with [`SimBus::run_until`].
    fn run(&mut self, deadline_ns: u64, bus: &mut SimBus<'_>) -> u64 {
        let _ = bus;
        self.irq_at_ns().map_or(deadline_ns, |at| at.min(deadline_ns))
    }

    /// The least and the most that fits this core, of a setting of its driver, or of the number
    /// `nth` of that name in a kernel's map. A device by name (`sim:NAME`) refuses another value
    /// ([`Error::OtherModel`](contigo_core::Error::OtherModel)). `None`, the default: any fits.
    fn fits(&self, setting: &str, nth: usize) -> Option<(u64, u64)> {
        let _ = (setting, nth);
        None
    }

    /// The reset line: everything as after power-on, whatever it was doing.
    fn reset(&mut self);
}
