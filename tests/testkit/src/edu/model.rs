#![allow(unsafe_code, reason = "a model promises what a device promises")]
//! A model of `edu` on the simulated board, for the driver's tests: what `hw/misc/edu.c` does, with
//! its traps.

use super::{Edu, regs};
use contigo::{
    DevAddr, Result,
    sim::{Model, SimBus, SimWindow},
};

/// 100 ms from the doorbell to the transfer.
const DELAY_NS: u64 = 100_000_000;

/// The device, whose mask has `BITS` bits: an address is cut to it without a word.
#[derive(Debug)]
pub struct EduModel<const BITS: u32> {
    source: u64,
    target: u64,
    count: u64,
    command: u32,
    raised: u32,
    ends_at_ns: Option<u64>,
    buffer: [u8; 4096],
    /// Writes that came while a transfer ran, and were ignored.
    ignored: u32,
    /// The timer never fires.
    stuck: bool,
}

impl<const BITS: u32> EduModel<BITS> {
    const DMA_MASK: u64 = (1 << BITS) - 1;

    /// An edu.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            source: 0,
            target: 0,
            count: 0,
            command: 0,
            raised: 0,
            ends_at_ns: None,
            buffer: [0; 4096],
            ignored: 0,
            stuck: false,
        }
    }

    /// One that ends no transfer.
    #[must_use]
    pub const fn stuck() -> Self {
        Self { stuck: true, ..Self::new() }
    }

    fn transfer(&mut self, bus: &mut SimBus<'_>) {
        let count = usize::try_from(self.count).unwrap_or(0).min(self.buffer.len());
        let Some(bytes) = self.buffer.get_mut(..count) else { return };
        // As in edu.c: what the bus answers is thrown away, and a read that fails leaves zeros.
        if self.command & regs::FROM_EDU == 0 {
            if bus.read(DevAddr(self.source & Self::DMA_MASK), bytes).is_err() {
                bytes.fill(0);
            }
        } else {
            let _ = bus.write(DevAddr(self.target & Self::DMA_MASK), bytes);
        }
    }
}

impl<const BITS: u32> Default for EduModel<BITS> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const BITS: u32> Edu<SimWindow<EduModel<BITS>>, BITS> {
    /// As [`open`](Edu::open), and safe: the type of the window says that an edu with this mask is
    /// behind it.
    ///
    /// # Errors
    /// As [`open`](Edu::open).
    pub fn open_simulated(window: SimWindow<EduModel<BITS>>) -> Result<Self> {
        // SAFETY: the model is an edu with this mask, and `SimDevice::window` gives one window at a
        // time.
        unsafe { Self::open(window) }
    }
}

// SAFETY: it touches `count` bytes at the address in the register of the transfer's direction,
// once, before RUN clears. A stuck one never says that it is finished.
unsafe impl<const BITS: u32> Model for EduModel<BITS> {
    const WINDOW_BYTES: usize = 1 << 20;

    fn advance(&mut self, bus: &mut SimBus<'_>) {
        if self.ends_at_ns.is_some_and(|at| at <= bus.now_ns()) && !self.stuck {
            self.transfer(bus);
            self.ends_at_ns = None;
            if self.command & regs::INTERRUPT != 0 {
                self.raised |= regs::DMA_DONE;
            }
            self.command &= !regs::RUN;
        }
    }

    #[allow(clippy::cast_possible_truncation, reason = "a read of 32 bits gives the lower half")]
    fn read32(&mut self, offset: usize, _bus: &mut SimBus<'_>) -> u32 {
        match offset {
            0x00 => 0x0100_00ED,
            0x24 => self.raised,
            0x80 => self.source as u32,
            0x88 => self.target as u32,
            0x90 => self.count as u32,
            0x98 => self.command,
            // For the tests: how many writes were ignored.
            0xF000 => self.ignored,
            _ => u32::MAX,
        }
    }

    fn write32(&mut self, offset: usize, value: u32, bus: &mut SimBus<'_>) {
        let running = self.command & regs::RUN != 0;
        match offset {
            0x64 => self.raised &= !value,
            0x80 | 0x88 | 0x90 | 0x98 if running => self.ignored += 1,
            0x80 => self.source = value.into(),
            0x88 => self.target = value.into(),
            0x90 => self.count = value.into(),
            0x98 if value & regs::RUN != 0 => {
                self.command = value;
                self.ends_at_ns = Some(bus.now_ns() + DELAY_NS);
            }
            _ => {}
        }
    }

    fn irq_at_ns(&self) -> Option<u64> {
        // Without an interrupt the end is seen by looking.
        if self.raised != 0 {
            Some(0)
        } else {
            self.ends_at_ns.filter(|_| self.command & regs::INTERRUPT != 0 && !self.stuck)
        }
    }

    fn reset(&mut self) {
        *self = Self::new();
    }
}
