#![allow(unsafe_code, reason = "a model keeps a device's promises")]
//! A core with a gate, on the simulated board.

use crate::{Model, SimBus};

/// The gate's registers: `rtl/gate/registers.md`.
const GATE_BYTES: usize = 0x1000;

/// Any core's model with a gate. The gate's registers follow the core's, at [`GATE`](Self::GATE).
///
/// A core's model moves data at once, so no transfer is ever outstanding: while the gate is shut,
/// the core's time stands still. `rtl/` has the gate itself, with everything that a bus does.
#[derive(Debug, Default)]
pub struct GatedModel<M> {
    core: M,
    control: u32,
}

impl<M: Model> GatedModel<M> {
    /// Where the gate's registers are.
    pub const GATE: usize = M::WINDOW_BYTES.next_multiple_of(GATE_BYTES);

    /// `core` with a gate that is open.
    pub const fn new(core: M) -> Self {
        Self { core, control: 0 }
    }
}

// SAFETY: only the core's model touches memory.
unsafe impl<M: Model> Model for GatedModel<M> {
    const WINDOW_BYTES: usize = Self::GATE + GATE_BYTES;

    fn fits(&self, setting: &str, nth: usize) -> Option<(u64, u64)> {
        self.core.fits(setting, nth)
    }

    fn advance(&mut self, bus: &mut SimBus<'_>) {
        if self.control == 0 {
            self.core.advance(bus);
        }
    }

    fn read32(&mut self, offset: usize, bus: &mut SimBus<'_>) -> u32 {
        // The offsets are from `rtl/gate/registers.md`, independent of the driver's constants.
        match offset.checked_sub(Self::GATE) {
            None => self.core.read32(offset, bus),
            Some(0x00) => u32::from_be_bytes(*b"GATE"),
            Some(0x04) => 0x0001_0000,
            Some(0x08) => 8 << 24 | 32 << 16 | 4 << 10 | 64,
            Some(0x0C) => self.control,
            Some(0x10) => 1 | (self.control & 1) << 1 | (self.control & 2) << 1,
            Some(_) => 0,
        }
    }

    fn write32(&mut self, offset: usize, value: u32, bus: &mut SimBus<'_>) {
        match offset.checked_sub(Self::GATE) {
            None => self.core.write32(offset, value, bus),
            Some(0x0C) => {
                self.control = value & 3;
                if value & 2 != 0 {
                    self.core.reset();
                }
            }
            Some(_) => {}
        }
    }

    fn irq_at_ns(&self) -> Option<u64> {
        if self.control == 0 { self.core.irq_at_ns() } else { None }
    }

    fn run(&mut self, deadline_ns: u64, bus: &mut SimBus<'_>) -> u64 {
        if self.control == 0 { self.core.run(deadline_ns, bus) } else { deadline_ns }
    }

    fn reset(&mut self) {
        self.control = 0;
        self.core.reset();
    }
}
