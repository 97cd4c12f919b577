#![allow(
    unsafe_code,
    reason = "a device that lies about being finished corrupts memory, also a simulated one"
)]
//! A model of an IP core, and a model of any type as one type.

use super::SimBus;
use super::board::no_memory;
use contigo_core::types::shared::Shared;
use contigo_core::types::{Result, lock};
use core::fmt;
use spin::{Mutex, MutexGuard};

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
/// The model touches only memory whose addresses its registers received, and none of it between
/// reporting that it is finished and the next start. The model must keep each promise that
/// [`Driver`](contigo_core::Driver) makes of a device. A stuck model never reports that it is
/// finished.
pub unsafe trait Model: Send {
    /// The size of its register window, in bytes.
    const WINDOW_BYTES: usize;

    /// The size of this model's window, where models of one type differ in it. It never changes.
    fn window_bytes(&self) -> usize {
        Self::WINDOW_BYTES
    }

    /// Does what is due by now.
    fn advance(&mut self, bus: &mut SimBus<'_>);

    /// A 32-bit read at `offset`, a multiple of 4 inside the window.
    fn read32(&mut self, offset: usize, bus: &mut SimBus<'_>) -> u32;

    /// A 32-bit write at `offset`, a multiple of 4 inside the window.
    fn write32(&mut self, offset: usize, value: u32, bus: &mut SimBus<'_>);

    /// When the interrupt line rises, in virtual nanoseconds. A time in the past: the line is high
    /// until acknowledged, and ends a wait at once. `None`: it will not rise by itself. A time
    /// before the true one is allowed: the wait ends too early, and the driver polls again.
    fn irq_at_ns(&self) -> Option<u64>;

    /// Lets time pass, for a wait, until the interrupt line rises or `deadline_ns`, and returns the
    /// time of that. A model that cannot foretell its interrupt, such as RTL, works here, and moves
    /// the clock with [`SimBus::run_until`].
    fn run(&mut self, deadline_ns: u64, bus: &mut SimBus<'_>) -> u64 {
        let _ = bus;
        self.irq_at_ns().map_or(deadline_ns, |at| at.min(deadline_ns))
    }

    /// The least and the greatest value that fit this core, of a driver's setting, or of the number
    /// `nth` of that name in a kernel's map. Opening `sim:NAME` refuses another value
    /// ([`Error::OtherModel`](contigo_core::Error::OtherModel)). `None`, the default: any fits.
    fn fits(&self, setting: &str, nth: usize) -> Option<(u64, u64)> {
        let _ = (setting, nth);
        None
    }

    /// The reset line: everything as after power-on, whatever it was doing.
    fn reset(&mut self);
}

/// The methods of a [`Model`] that can be called without its type.
trait Untyped: Send {
    fn advance(&mut self, bus: &mut SimBus<'_>);
    fn read32(&mut self, offset: usize, bus: &mut SimBus<'_>) -> u32;
    fn write32(&mut self, offset: usize, value: u32, bus: &mut SimBus<'_>);
    fn irq_at_ns(&self) -> Option<u64>;
    fn run(&mut self, deadline_ns: u64, bus: &mut SimBus<'_>) -> u64;
    fn fits(&self, setting: &str, nth: usize) -> Option<(u64, u64)>;
    fn reset(&mut self);
}

impl<M: Model> Untyped for M {
    fn advance(&mut self, bus: &mut SimBus<'_>) {
        Model::advance(self, bus);
    }
    fn read32(&mut self, offset: usize, bus: &mut SimBus<'_>) -> u32 {
        Model::read32(self, offset, bus)
    }
    fn write32(&mut self, offset: usize, value: u32, bus: &mut SimBus<'_>) {
        Model::write32(self, offset, value, bus);
    }
    fn irq_at_ns(&self) -> Option<u64> {
        Model::irq_at_ns(self)
    }
    fn run(&mut self, deadline_ns: u64, bus: &mut SimBus<'_>) -> u64 {
        Model::run(self, deadline_ns, bus)
    }
    fn fits(&self, setting: &str, nth: usize) -> Option<(u64, u64)> {
        Model::fits(self, setting, nth)
    }
    fn reset(&mut self) {
        Model::reset(self);
    }
}

/// **A model of any type**, in pages of its own: what stands behind `sim:NAME`.
pub struct AnyModel {
    model: Shared<Mutex<dyn Untyped>>,
    window_bytes: usize,
    /// A write was lost: the model does not answer until a reset.
    gone: bool,
}

impl AnyModel {
    /// `model`, of any size.
    ///
    /// # Panics
    /// Where the kernel has no memory for it, or the runtime was built without one (feature
    /// `linux`).
    #[must_use]
    pub fn new<M: Model + 'static>(model: M) -> Self {
        let window_bytes = model.window_bytes();
        // SAFETY: the pointer is unsized, and returned.
        let model =
            unsafe { Shared::<Mutex<dyn Untyped>>::unsized_by(Mutex::new(model), |inner| inner) };
        Self { model: model.unwrap_or_else(|error| no_memory(error)), window_bytes, gone: false }
    }

    /// Pulls the model's reset line, for every device that has the model.
    ///
    /// # Errors
    /// [`Error::Contended`](contigo_core::Error::Contended): another thread has the model.
    pub fn pull_reset(&self) -> Result<()> {
        self.lock()?.reset();
        Ok(())
    }

    /// Returns [`Model::fits`] of the model.
    ///
    /// # Errors
    /// As [`pull_reset`](Self::pull_reset).
    pub fn limits(&self, setting: &str, nth: usize) -> Result<Option<(u64, u64)>> {
        Ok(self.lock()?.fits(setting, nth))
    }

    fn lock(&self) -> Result<MutexGuard<'_, dyn Untyped + 'static>> {
        lock::acquire(&self.model)
    }

    fn with<R>(&self, act: impl FnOnce(&mut dyn Untyped) -> R) -> Option<R> {
        match self.lock() {
            Ok(mut model) if !self.gone => Some(act(&mut *model)),
            _ => None,
        }
    }
}

/// Another handle to the same model, for one driver's device. It keeps the model alive.
impl Clone for AnyModel {
    fn clone(&self) -> Self {
        Self { model: self.model.clone(), window_bytes: self.window_bytes, gone: false }
    }
}

// SAFETY: every method is the model's own, or does nothing where another thread has the model.
unsafe impl Model for AnyModel {
    /// No model has more; [`window_bytes`](Model::window_bytes) returns this model's size.
    const WINDOW_BYTES: usize = usize::MAX;

    fn window_bytes(&self) -> usize {
        self.window_bytes
    }
    fn advance(&mut self, bus: &mut SimBus<'_>) {
        self.with(|model| model.advance(bus));
    }
    fn read32(&mut self, offset: usize, bus: &mut SimBus<'_>) -> u32 {
        self.with(|model| model.read32(offset, bus)).unwrap_or(u32::MAX)
    }
    fn write32(&mut self, offset: usize, value: u32, bus: &mut SimBus<'_>) {
        // The next write might start a job with an old pointer.
        self.gone |= self.with(|model| model.write32(offset, value, bus)).is_none();
    }
    fn irq_at_ns(&self) -> Option<u64> {
        self.with(|model| model.irq_at_ns())?
    }
    fn run(&mut self, deadline_ns: u64, bus: &mut SimBus<'_>) -> u64 {
        self.with(|model| model.run(deadline_ns, bus)).unwrap_or(deadline_ns)
    }
    fn fits(&self, setting: &str, nth: usize) -> Option<(u64, u64)> {
        self.with(|model| model.fits(setting, nth))?
    }
    fn reset(&mut self) {
        let pulled = self.lock().map(|mut model| model.reset());
        self.gone &= pulled.is_err();
    }
}

impl fmt::Debug for AnyModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyModel").field("window_bytes", &self.window_bytes).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SimBoard, SimDevice};

    /// Larger than any model of this crate.
    struct Wide([u32; 32 * 1024]);

    // SAFETY: it touches no memory.
    unsafe impl Model for Wide {
        const WINDOW_BYTES: usize = 128 * 1024;
        fn advance(&mut self, _: &mut SimBus<'_>) {}
        fn read32(&mut self, offset: usize, _: &mut SimBus<'_>) -> u32 {
            self.0.get(offset / 4).copied().unwrap_or(0)
        }
        fn write32(&mut self, offset: usize, value: u32, _: &mut SimBus<'_>) {
            self.0.get_mut(offset / 4).into_iter().for_each(|word| *word = value);
        }
        fn irq_at_ns(&self) -> Option<u64> {
            None
        }
        fn reset(&mut self) {
            self.0.fill(0);
        }
    }

    #[test]
    fn model_of_any_size_is_lent() {
        let (board, model) = (SimBoard::new(1), AnyModel::new(Wide([0; 32 * 1024])));
        let [first, second] =
            [(); 2].map(|()| SimDevice::with_model(&board, board.port(), model.clone()));
        drop((model, board));
        // SAFETY: the model touches no memory.
        unsafe { first.write32(Wide::WINDOW_BYTES - 4, 7) };
        drop(first);
        assert_eq!(
            (second.read32(Wide::WINDOW_BYTES - 4), second.len_bytes()),
            (7, Wide::WINDOW_BYTES)
        );
    }
}
