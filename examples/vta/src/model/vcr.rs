#![allow(unsafe_code, reason = "a model promises to touch only what it was told of")]
//! The same accelerator as the DE10-Nano has it: the Chisel design, with one block of registers.
//!
//! References: apache/tvm-vta, `hardware/chisel/src/main/scala/shell/VCR.scala` (the registers, in
//! their order), `core/Core.scala` (which pointer is whose).

use super::{FETCH, PAGE, START, VtaModel};
use contigo::sim::{Model, SimBus};

/// Register 0 once FINISH was reached: `b_10`.
const FINISHED: u32 = 2;

/// **A model of VTA on a DE10-Nano.**
#[derive(Debug, Default)]
pub struct VtaDe10Nano {
    vta: VtaModel,
    /// Register 0.
    control: u32,
}

impl VtaDe10Nano {
    /// As after power-on.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// One control register, one counter, one value, then six pointers of 32 bits.
    fn word(&mut self, offset: usize) -> Option<&mut u32> {
        match offset {
            0x08 => Some(&mut self.vta.insn_count),
            0x0C => Some(&mut self.vta.insn_addr),
            0x10 => Some(&mut self.vta.bases.uop),
            0x14 => Some(&mut self.vta.bases.inp),
            0x18 => Some(&mut self.vta.bases.wgt),
            0x1C => Some(&mut self.vta.bases.acc),
            0x20 => Some(&mut self.vta.bases.out),
            _ => None,
        }
    }
}

// SAFETY: as `VtaModel`'s, which does everything that touches memory.
unsafe impl Model for VtaDe10Nano {
    const WINDOW_BYTES: usize = PAGE;

    fn advance(&mut self, bus: &mut SimBus<'_>) {
        let ran = self.vta.run.is_some();
        self.vta.advance(bus);
        if ran && self.vta.run.is_none() {
            self.control = FINISHED;
        }
    }

    fn read32(&mut self, offset: usize, _: &mut SimBus<'_>) -> u32 {
        if offset == 0 { self.control } else { self.word(offset).map_or(0, |word| *word) }
    }

    fn write32(&mut self, offset: usize, value: u32, bus: &mut SimBus<'_>) {
        if offset == 0 {
            self.control = value;
            if value & START != 0 {
                // There is one launch for all stages.
                self.vta.restarts = [true; super::STAGES];
                self.vta.write32(FETCH * PAGE, START, bus);
            }
        } else if let Some(word) = self.word(offset) {
            *word = value;
        }
    }

    fn irq_at_ns(&self) -> Option<u64> {
        None
    }

    fn reset(&mut self) {
        *self = Self::new();
    }
}
