#![allow(unsafe_code, reason = "a model promises to touch no memory")]
//! Registers that remember: a core without a model.

use super::{AnyModel, Model, SimBus};

/// Half of what Vivado gives a core by default, and more registers than one has.
const WINDOW_BYTES: usize = 32 * 1024;

/// Words that read as they were written, 0 after power-on. They start nothing, and have no
/// interrupt.
struct Words([u32; WINDOW_BYTES / 4]);

/// `sim:registers`.
pub(crate) fn registers() -> AnyModel {
    AnyModel::new(Words([0; WINDOW_BYTES / 4]))
}

// SAFETY: it touches no memory.
unsafe impl Model for Words {
    const WINDOW_BYTES: usize = WINDOW_BYTES;

    fn advance(&mut self, _: &mut SimBus<'_>) {}

    fn read32(&mut self, offset: usize, _: &mut SimBus<'_>) -> u32 {
        self.0.get(offset / 4).copied().unwrap_or(0)
    }

    fn write32(&mut self, offset: usize, value: u32, _: &mut SimBus<'_>) {
        if let Some(word) = self.0.get_mut(offset / 4) {
            *word = value;
        }
    }

    fn irq_at_ns(&self) -> Option<u64> {
        None
    }

    fn reset(&mut self) {
        self.0.fill(0);
    }
}
