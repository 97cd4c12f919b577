#![allow(unsafe_code, reason = "implementing `Driver` is a promise about the hardware")]
//! The driver of the project's own core for a camera (`cores/s2mm`): packets of a stream that never
//! waits, each into a buffer.

use contigo::hw::mmio::{ReadOnly, ReadWrite, Register};
use contigo::hw::{poll_every, poll_until};
use contigo::job::exactly;
use contigo::mem::DevSlice;
use contigo::{Align, Completion, Device, Driver, Error, OperandSpec, Result};
use core::time::Duration;

/// Registers: the table in `cores/s2mm/top.v`.
mod regs {
    use super::{ReadOnly, ReadWrite, Register};

    /// [`ID_IS`].
    pub(super) const ID: Register<ReadOnly> = Register::at(0x00);
    /// [`RUN`], [`CLEAR`].
    pub(super) const CONTROL: Register<ReadWrite> = Register::at(0x04);
    /// Bit 0: stopped, and all is answered.
    pub(super) const STATUS: Register<ReadOnly> = Register::at(0x08);
    /// The next buffer's address, the lower half first.
    pub(super) const ADDR: [Register<ReadWrite>; 2] = [Register::at(0x0C), Register::at(0x10)];
    /// Its bytes, which gives it.
    pub(super) const LENGTH: Register<ReadWrite> = Register::at(0x14);
    /// The oldest buffer's end: [`THERE`] and the bits below.
    pub(super) const END: Register<ReadOnly> = Register::at(0x18);
    /// W: that end was read.
    pub(super) const TAKEN: Register<ReadWrite> = Register::at(0x1C);
    /// Packets lost.
    pub(super) const LOST: Register<ReadOnly> = Register::at(0x20);
    /// Packets cut.
    pub(super) const CUT: Register<ReadOnly> = Register::at(0x24);
    /// How often the last buffer ended and no other was there.
    pub(super) const DRY: Register<ReadOnly> = Register::at(0x28);

    pub(super) const ID_IS: u32 = u32::from_be_bytes(*b"S2MM");
    pub(super) const RUN: u32 = 1 << 0;
    pub(super) const CLEAR: u32 = 1 << 1;
    /// END: there is one.
    pub(super) const THERE: u32 = 1 << 31;
    /// END: memory answered with an error.
    pub(super) const FAILED: u32 = 1 << 30;
    /// END: the packet's rest was dropped.
    pub(super) const IS_CUT: u32 = 1 << 29;
    /// END: the packet ends in this buffer.
    pub(super) const LAST: u32 = 1 << 28;
    /// END: bytes.
    pub(super) const BYTES: u32 = LAST - 1;
}

/// The window of its registers.
pub const WINDOW_BYTES: usize = 0x40;
/// Buffers that it takes at once.
pub const DEPTH: usize = 8;
/// A beat, of which addresses and lengths are multiples.
const BEAT_BYTES: usize = 8;
const OPERANDS: [OperandSpec; 1] = {
    const MOST_BYTES: usize = (1 << 28) - BEAT_BYTES;
    let beat = match Align::new(BEAT_BYTES) {
        Ok(align) => align,
        Err(_) => Align::LINE,
    };
    [OperandSpec {
        min_bytes: BEAT_BYTES,
        max_bytes: MOST_BYTES,
        ..OperandSpec::from_device().aligned(beat)
    }]
};
/// It has four bursts under way at most. Memory that answers has answered them within microseconds;
/// the limit is a thousand times that.
const STOP: Duration = Duration::from_millis(10);
/// No interrupt announces that it is stopped.
const STEP_US: u32 = 2;

/// The driver of a camera's way to memory, for a [`Stream`](contigo::Stream).
///
/// A frame is one packet. A packet that finds no room is lost, or cut: a cut one fails alone. A
/// packet that is longer than its buffer goes on in the next.
#[derive(Debug)]
pub struct S2mm<D> {
    device: D,
    running: bool,
    /// The slot whose end comes next.
    oldest: usize,
}

impl<D: Device> S2mm<D> {
    /// The driver of `device`.
    ///
    /// # Errors
    /// [`Error::RegisterWindow`]; [`Error::WrongDevice`]: another core is there.
    ///
    /// # Safety
    /// The window is this core's, and no other code drives it while this value lives.
    pub unsafe fn open(device: D) -> Result<Self> {
        if device.len_bytes() < WINDOW_BYTES {
            return Err(Error::RegisterWindow {
                device: "s2mm",
                need_bytes: WINDOW_BYTES,
                have_bytes: device.len_bytes(),
            });
        }
        let found = regs::ID.read(&device);
        if found != regs::ID_IS {
            return Err(Error::WrongDevice {
                device: "s2mm",
                register: "ID",
                expected: regs::ID_IS,
                found,
            });
        }
        Ok(Self { device, running: false, oldest: 0 })
    }

    /// Packets of which nothing came, and packets of which only the beginning came, since the
    /// core's reset.
    pub fn losses(&self) -> (u32, u32) {
        (regs::LOST.read(&self.device), regs::CUT.read(&self.device))
    }
}

// SAFETY: the core writes the buffers that it was given, no more than their lengths, and nothing
// else. It tells a buffer's end after the answer of its last burst, and is stopped when all that it
// sent was answered.
unsafe impl<D: Device> Driver for S2mm<D> {
    fn name(&self) -> &'static str {
        "s2mm"
    }

    contigo::forward!(|this| this.device => port, simulated);

    fn addr_bits(&self) -> u32 {
        64
    }

    fn operands(&self) -> &[OperandSpec] {
        &OPERANDS
    }

    fn depth(&self) -> usize {
        DEPTH
    }

    fn check(&self, operands: &[DevSlice], _words: &[u32]) -> Result<()> {
        let [to] = exactly(operands)?;
        let (value, unit) = (to.len_bytes as u64, BEAT_BYTES as u64);
        if value.is_multiple_of(unit) {
            return Ok(());
        }
        let max = OPERANDS.map(|to| to.max_bytes as u64)[0];
        Err(Error::Argument {
            name: "the bytes of a frame's buffer",
            value,
            min: unit,
            max,
            multiple_of: unit,
        })
    }

    unsafe fn submit(&mut self, _slot: usize, operands: &[DevSlice], _words: &[u32]) -> Result<()> {
        let [to] = exactly(operands)?;
        #[allow(
            clippy::cast_possible_truncation,
            reason = "halves, and a length that `OPERANDS` limits"
        )]
        let (low, high, len_bytes) =
            (to.addr.0 as u32, (to.addr.0 >> 32) as u32, to.len_bytes as u32);
        let [addr_low, addr_high] = regs::ADDR;
        // SAFETY: a stopped core forgets its old buffers first. The operand was handed over, and
        // the core writes no more than its length.
        unsafe {
            if !self.running {
                regs::CONTROL.write(&self.device, regs::CLEAR);
            }
            addr_low.write(&self.device, low);
            addr_high.write(&self.device, high);
            regs::LENGTH.write(&self.device, len_bytes);
            if !self.running {
                regs::CONTROL.write(&self.device, regs::RUN);
                (self.running, self.oldest) = (true, 0);
            }
        }
        Ok(())
    }

    fn poll(&mut self, timeout: Duration) -> Result<Option<Completion>> {
        let mut end = 0;
        // All ones is the answer of a device that is gone.
        let told = poll_until(&self.device, timeout, |core| {
            end = regs::END.read(core);
            end & regs::THERE != 0 && end != u32::MAX
        })?;
        if !told {
            return Ok(None);
        }
        // SAFETY: it frees a place, and starts nothing.
        unsafe { regs::TAKEN.write(&self.device, 1) };
        let slot = self.oldest;
        self.oldest = (slot + 1) % DEPTH;
        let failed = match end & (regs::FAILED | regs::IS_CUT) {
            0 => None,
            regs::IS_CUT => {
                Some("the packet's rest was dropped: memory was slower than the stream")
            }
            _ => Some("memory answered with an error; check that its port is enabled"),
        };
        Ok(Some(Completion {
            bytes: Some((end & regs::BYTES) as usize),
            last: Some(end & regs::LAST != 0),
            status: end,
            failed,
            ..Completion::of(slot)
        }))
    }

    fn stop(&mut self) -> Result<()> {
        self.running = false;
        // SAFETY: it takes nothing more, and writes what it took into buffers that it has.
        unsafe { regs::CONTROL.write(&self.device, 0) };
        let mut status = 0;
        let stopped = poll_every(&self.device, STEP_US, STOP, |core| {
            status = regs::STATUS.read(core);
            status == 1
        })?;
        let waited_us = u32::try_from(STOP.as_micros()).unwrap_or(u32::MAX);
        if stopped { Ok(()) } else { Err(Error::WillNotStop { device: "s2mm", status, waited_us }) }
    }

    fn underruns(&self) -> Option<u64> {
        Some(regs::DRY.read(&self.device).into())
    }
}
