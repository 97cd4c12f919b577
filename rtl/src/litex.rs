#![allow(unsafe_code, reason = "implementing `Driver` is a promise about the hardware")]
//! The driver of LiteX's DMA reader and writer, joined by a FIFO (`cores/litex`): they copy.

use contigo::hw::mmio::{ReadOnly, ReadWrite, Register};
use contigo::hw::poll_every;
use contigo::job::exactly;
use contigo::mem::DevSlice;
use contigo::{Align, Completion, Device, Driver, Error, OperandSpec, Result};
use core::time::Duration;

/// Registers of the reader and of the writer, words of 32 bits, in the order of LiteX 2024.12's
/// `add_csr` (litex/soc/cores/dma.py). The higher half of an address comes first, and these masters
/// have 32 bits of it.
mod regs {
    use super::{ReadOnly, ReadWrite, Register};

    /// The first byte.
    pub(super) const BASE: [Register<ReadWrite>; 2] = [Register::at(0x004), Register::at(0x804)];
    /// Bytes.
    pub(super) const LENGTH: [Register<ReadWrite>; 2] = [Register::at(0x008), Register::at(0x808)];
    /// Bit 0: it runs; 0 puts its state machine back to the beginning.
    pub(super) const ENABLE: [Register<ReadWrite>; 2] = [Register::at(0x00C), Register::at(0x80C)];
    /// Bit 0: the writer's last word was answered.
    pub(super) const WRITER_DONE: Register<ReadOnly> = Register::at(0x810);
}

/// The window of its registers: a page of LiteX's for the reader, and one for the writer.
pub const WINDOW_BYTES: usize = 0x1000;
const WORD_BYTES: usize = 4;
/// Whole words, and a length that a register of 32 bits holds.
const OPERANDS: [OperandSpec; 2] = {
    const MOST_BYTES: usize = 0xFFFF_FFFC;
    let word = match Align::new(WORD_BYTES) {
        Ok(align) => align,
        Err(_) => Align::LINE,
    };
    [
        OperandSpec { max_bytes: MOST_BYTES, ..OperandSpec::to_device().aligned(word) },
        OperandSpec { max_bytes: MOST_BYTES, ..OperandSpec::from_device().aligned(word) },
    ]
};
/// The core has no interrupt. In 5 µs it copies 20 words or more.
const STEP_US: u32 = 5;

/// The driver of LiteX's reader and writer: a job copies all of its first operand.
///
/// A job's end is sound: the writer is done after the answer of its last word. A stop is not, and
/// breaks a driver's second rule. Clearing `enable` forgets the read and the write that are under
/// way, and no register says when they were answered. A write whose address memory had not taken
/// goes to address 0 then. The next job takes the old answers for its own. So this driver belongs
/// in a [`Gated`](contigo::drivers::axi_gate::Gated), with the gate before the core's master and
/// the gate's reset line as the core's. `tests/cores/litex.rs` shows both.
///
/// LiteX ends a word that memory answered with an error like any other; the gate tells it.
#[derive(Debug)]
pub struct LitexDma<D>(D);

impl<D: Device> LitexDma<D> {
    /// The driver of `device`.
    ///
    /// # Errors
    /// [`Error::RegisterWindow`].
    ///
    /// # Safety
    /// The window is this core's, and no other code drives it while this value lives. A job is only
    /// stopped behind a gate that resets the core first.
    pub unsafe fn open(device: D) -> Result<Self> {
        if device.len_bytes() < WINDOW_BYTES {
            return Err(Error::RegisterWindow {
                device: "litex_dma",
                need_bytes: WINDOW_BYTES,
                have_bytes: device.len_bytes(),
            });
        }
        Ok(Self(device))
    }

    /// Both state machines are at their beginning. A writer that is off empties the FIFO.
    fn disable(&self) {
        for enable in &regs::ENABLE {
            // SAFETY: nothing new is read or written; for a job under way see `open`.
            unsafe { enable.write(&self.0, 0) }
        }
    }
}

// SAFETY: it reads the first operand and writes as many bytes of the second, as `check` compares
// them. `WRITER_DONE` rises with the answer of the last write, and every read was answered before.
// For a stop see the type's own words, and `open`.
unsafe impl<D: Device> Driver for LitexDma<D> {
    fn name(&self) -> &'static str {
        "litex_dma"
    }

    contigo::forward!(|this| this.0 => port, simulated);

    fn addr_bits(&self) -> u32 {
        32
    }

    fn operands(&self) -> &[OperandSpec] {
        &OPERANDS
    }

    fn check(&self, operands: &[DevSlice], _words: &[u32]) -> Result<()> {
        let [from, to] = exactly(operands)?;
        let (value, min, multiple_of) =
            (from.len_bytes as u64, WORD_BYTES as u64, WORD_BYTES as u64);
        if value < min || !value.is_multiple_of(multiple_of) {
            return Err(Error::Argument {
                name: "the bytes of a copy",
                value,
                min,
                max: u64::from(u32::MAX),
                multiple_of,
            });
        }
        if to.len_bytes < from.len_bytes {
            return Err(Error::BufferSize {
                index: 1,
                need_bytes: value,
                have_bytes: to.len_bytes,
            });
        }
        Ok(())
    }

    unsafe fn submit(&mut self, _slot: usize, operands: &[DevSlice], _words: &[u32]) -> Result<()> {
        let [from, to] = exactly(operands)?;
        self.disable();
        for ((base, length), operand) in regs::BASE.iter().zip(&regs::LENGTH).zip([from, to]) {
            #[allow(
                clippy::cast_possible_truncation,
                reason = "`addr_bits` is 32, and `OPERANDS` limits the length"
            )]
            let (addr, len_bytes) = (operand.addr.0 as u32, from.len_bytes as u32);
            // SAFETY: nothing runs.
            unsafe {
                base.write(&self.0, addr);
                length.write(&self.0, len_bytes);
            }
        }
        // The writer first: in its first cycle it throws a word away.
        for enable in regs::ENABLE.iter().rev() {
            // SAFETY: the operands were handed over, and `check` found them large enough.
            unsafe { enable.write(&self.0, 1) }
        }
        Ok(())
    }

    fn poll(&mut self, timeout: Duration) -> Result<Option<Completion>> {
        // All ones is the answer of a device that is gone.
        let done = poll_every(&self.0, STEP_US, timeout, |core| regs::WRITER_DONE.read(core) == 1)?;
        if done {
            self.disable();
        }
        Ok(done.then_some(Completion::of(0)))
    }

    fn stop(&mut self) -> Result<()> {
        self.disable();
        Ok(())
    }
}
