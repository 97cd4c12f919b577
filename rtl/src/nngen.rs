#![allow(unsafe_code, reason = "implementing `Driver` is a promise about the hardware")]
//! The driver of an accelerator that NNgen made of a network (`cores/nngen`). Its operands are the
//! core's memory map: scratch, scores, pixels, weights.

use contigo::hw::mmio::{ReadOnly, ReadWrite, Register};
use contigo::hw::poll_until;
use contigo::job::exactly;
use contigo::mem::DevSlice;
use contigo::{Align, Completion, Device, Driver, Error, OperandSpec, Result};
use core::time::Duration;

/// Registers, by NNgen 1.3.4's own table (verilog.py); each is 32 bits.
mod regs {
    use super::{ReadOnly, ReadWrite, Register};

    /// W 1: the job begins.
    pub(super) const START: Register<ReadWrite> = Register::at(0x10);
    /// Bit 0: a job runs.
    pub(super) const BUSY: Register<ReadOnly> = Register::at(0x14);
    /// W 1: the state machines go back to their beginnings, once no burst is being sent.
    pub(super) const RESET: Register<ReadWrite> = Register::at(0x18);
    /// Bit 0: `BUSY` fell.
    pub(super) const ISR: Register<ReadOnly> = Register::at(0x24);
    /// The interrupts that are on.
    pub(super) const IER: Register<ReadWrite> = Register::at(0x28);
    /// W: those that were seen.
    pub(super) const IAR: Register<ReadWrite> = Register::at(0x2C);
    /// The addresses of the operands, in their order.
    pub(super) const ADDRESSES: [Register<ReadWrite>; 4] =
        [Register::at(0x84), Register::at(0x88), Register::at(0x8C), Register::at(0x90)];
}

/// The window of its registers.
pub const WINDOW_BYTES: usize = 0x100;
/// The bytes of each operand: scratch, 16 scores of int32, 64 pixels of int8, weights and biases.
pub const OPERAND_BYTES: [usize; 4] = [64, 64, 64, 2752];
const OPERANDS: [OperandSpec; 4] = {
    let [out, to] = [
        OperandSpec::from_device().aligned(Align::LINE),
        OperandSpec::to_device().aligned(Align::LINE),
    ];
    [out, out, to, to]
};
/// A reset waits for the bursts that are being sent; a burst of 256 words takes 1.3 µs at 200 MHz.
/// The limit is a thousand times that and more, for an interconnect that others congest.
const STOP: Duration = Duration::from_millis(10);

/// The driver of a network that NNgen made.
///
/// The core breaks a driver's second rule after a stop. Its reset looks at the bursts that are
/// sent, and not at their answers: a write may reach memory after `BUSY` reads 0. With a gate
/// between the core and memory, and this driver in a [`Gated`](contigo::drivers::axi_gate::Gated),
/// none does. `tests/cores/nngen.rs` shows both.
#[derive(Debug)]
pub struct NnGen<D>(D);

impl<D: Device> NnGen<D> {
    /// The driver of `device`.
    ///
    /// # Errors
    /// [`Error::RegisterWindow`].
    ///
    /// # Safety
    /// The window is this core's, and no other code drives it while this value lives. Its writes
    /// are answered before a stop ends, by memory that is quick, or by a gate.
    pub unsafe fn open(device: D) -> Result<Self> {
        if device.len_bytes() < WINDOW_BYTES {
            return Err(Error::RegisterWindow {
                device: "nngen",
                need_bytes: WINDOW_BYTES,
                have_bytes: device.len_bytes(),
            });
        }
        Ok(Self(device))
    }

    /// No interrupt is left over.
    fn acknowledge(&self) {
        // SAFETY: it starts nothing.
        unsafe { regs::IAR.write(&self.0, 3) }
    }
}

// SAFETY: it touches the four operands, whose sizes `check` compares, and nothing else. `ISR` rises
// after the last answer of a job; for a stop see the type's own words, and `open`.
unsafe impl<D: Device> Driver for NnGen<D> {
    fn name(&self) -> &'static str {
        "nngen"
    }

    contigo::forward!(|this| this.0 => port, simulated);

    fn addr_bits(&self) -> u32 {
        32
    }

    fn operands(&self) -> &[OperandSpec] {
        &OPERANDS
    }

    fn check(&self, operands: &[DevSlice], _words: &[u32]) -> Result<()> {
        let operands: &[DevSlice; 4] = exactly(operands)?;
        for (index, (operand, need)) in operands.iter().zip(OPERAND_BYTES).enumerate() {
            if operand.len_bytes < need {
                return Err(Error::BufferSize {
                    index,
                    need_bytes: need as u64,
                    have_bytes: operand.len_bytes,
                });
            }
        }
        Ok(())
    }

    unsafe fn submit(&mut self, _slot: usize, operands: &[DevSlice], _words: &[u32]) -> Result<()> {
        for (register, operand) in regs::ADDRESSES.iter().zip(operands) {
            #[allow(clippy::cast_possible_truncation, reason = "`addr_bits` is 32")]
            let low = operand.addr.0 as u32;
            // SAFETY: nothing runs.
            unsafe { register.write(&self.0, low) }
        }
        // SAFETY: the operands were handed over, and `check` found them large enough.
        unsafe {
            regs::IER.write(&self.0, 1);
            regs::START.write(&self.0, 1);
        }
        Ok(())
    }

    fn poll(&mut self, timeout: Duration) -> Result<Option<Completion>> {
        // All ones is the answer of a device that is gone.
        let done = poll_until(
            &self.0,
            timeout,
            |core| matches!(regs::ISR.read(core), isr if isr & 1 == 1 && isr != u32::MAX),
        )?;
        if done {
            self.acknowledge();
        }
        Ok(done.then_some(Completion::of(0)))
    }

    fn stop(&mut self) -> Result<()> {
        self.acknowledge();
        if regs::BUSY.read(&self.0) == 0 {
            return Ok(());
        }
        // SAFETY: a reset starts nothing.
        unsafe { regs::RESET.write(&self.0, 1) };
        let mut status = 0;
        let idle = poll_until(&self.0, STOP, |core| {
            status = regs::BUSY.read(core);
            status == 0
        })?;
        self.acknowledge();
        let waited_us = u32::try_from(STOP.as_micros()).unwrap_or(u32::MAX);
        if idle { Ok(()) } else { Err(Error::WillNotStop { device: "nngen", status, waited_us }) }
    }
}
