#![allow(unsafe_code, reason = "a model of any type is put in its place, and passes its promises on")]
//! A model of any type as one type.

use super::{Model, SimBus};
use crate::types::in_place::InPlace;
use core::fmt;

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

/// **A model of any type, which it owns**, in a place of fixed size: what stands behind
/// `sim:NAME`.
pub struct AnyModel {
    model: InPlace<dyn Untyped, { AnyModel::MAX_BYTES }>,
    window_bytes: usize,
}

impl AnyModel {
    /// The largest model: a PL330's, with eight channels that each hold data on its way.
    pub const MAX_BYTES: usize = 48 * 1024;

    /// `model`, in a fixed place. A model that is too large, or aligned to more than 16 bytes, is
    /// refused by the compiler.
    #[must_use]
    pub fn new<M: Model + 'static>(model: M) -> Self {
        // SAFETY: it casts to `M`, and that becomes what an `M` is.
        Self { model: unsafe { InPlace::new::<M>(model, |place| place.cast::<M>()) }, window_bytes: M::WINDOW_BYTES }
    }
}

// SAFETY: every method is the model's own.
unsafe impl Model for AnyModel {
    /// No model has more; [`window_bytes`](Model::window_bytes) has this one's.
    const WINDOW_BYTES: usize = usize::MAX;

    fn window_bytes(&self) -> usize {
        self.window_bytes
    }
    fn advance(&mut self, bus: &mut SimBus<'_>) {
        self.model.get_mut().advance(bus);
    }
    fn read32(&mut self, offset: usize, bus: &mut SimBus<'_>) -> u32 {
        self.model.get_mut().read32(offset, bus)
    }
    fn write32(&mut self, offset: usize, value: u32, bus: &mut SimBus<'_>) {
        self.model.get_mut().write32(offset, value, bus);
    }
    fn irq_at_ns(&self) -> Option<u64> {
        self.model.get().irq_at_ns()
    }
    fn run(&mut self, deadline_ns: u64, bus: &mut SimBus<'_>) -> u64 {
        self.model.get_mut().run(deadline_ns, bus)
    }
    fn fits(&self, setting: &str, nth: usize) -> Option<(u64, u64)> {
        self.model.get().fits(setting, nth)
    }
    fn reset(&mut self) {
        self.model.get_mut().reset();
    }
}

impl fmt::Debug for AnyModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyModel").field("window_bytes", &self.window_bytes).finish_non_exhaustive()
    }
}
