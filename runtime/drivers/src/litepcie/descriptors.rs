#![allow(unsafe_code, reason = "descriptors are given and a lane is stopped here, by registers")]
//! A reader or a writer: its table of descriptors, its progress, and its stop.

use super::config::LitepcieConfig;
use super::regs;
use crate::checks::{high, low, stops};
use crate::settle::{Settle, settle};
use contigo_core::hw::{Device, Mmio};
use contigo_core::job::StopStep;
use contigo_core::mem::DevSlice;
use contigo_core::types::{Error, Result};

/// The name in messages.
pub(super) const DEVICE: &str = "litepcie";
/// The time between polls for a request's end.
const STEP_US: u32 = 1;

#[derive(Debug)]
pub(super) struct Lane {
    regs: regs::Lane,
    /// How many descriptors are certainly over.
    pub(super) over: u32,
    /// Those that were counted after them: the answers, or the writes in memory, come later.
    pub(super) settle: Settle,
    stop_us: u32,
    stopped: bool,
}

impl Lane {
    pub(super) const fn new(base: u32, reads: bool, config: &LitepcieConfig) -> Self {
        let settle_us = if reads || !config.ordered { config.settle_us } else { 0 };
        Self {
            regs: regs::Lane::at(base as usize),
            over: 0,
            settle: Settle::new(settle_us),
            stop_us: config.stop_us,
            stopped: true,
        }
    }

    /// Checks that a lane is there.
    ///
    /// # Errors
    /// [`Error::Fault`]
    pub(super) fn find(&self, device: &impl Mmio) -> Result<()> {
        let enable = self.regs.enable.read(device);
        if enable & regs::ENABLE_RESERVED == 0 {
            return Ok(());
        }
        let what = "an enable register that no lane has: compare reader_at and writer_at with \
            csr.csv; all ones: the card is gone";
        Err(Error::Fault { device: DEVICE, status: enable, what })
    }

    /// Empties the lane's table, and has it execute each descriptor once.
    ///
    /// # Safety
    /// The lane is stopped.
    pub(super) unsafe fn prepare(&mut self, device: &impl Mmio) {
        // SAFETY: a lane that does not run executes nothing.
        unsafe {
            self.regs.enable.write(device, 0);
            self.regs.reset.write(device, 1);
            self.regs.loop_prog_n.write(device, 0);
        }
        self.settle.begin_anew();
        (self.over, self.stopped) = (0, false);
    }

    /// Adds one descriptor of `len_bytes` to the table.
    ///
    /// # Safety
    /// The bytes were handed over, and the table has room.
    #[allow(clippy::cast_possible_truncation, reason = "a length of 24 bits")]
    pub(super) unsafe fn give(&self, device: &impl Mmio, slice: &DevSlice, len_bytes: usize) {
        // SAFETY: the caller's promise.
        unsafe {
            self.regs
                .value_high
                .write(device, (len_bytes as u32 & regs::LENGTH) | regs::LAST_DISABLE);
            self.regs.value_low.write(device, low(slice.addr.0));
            self.regs.we.write(device, high(slice.addr.0));
        }
    }

    /// # Safety
    /// All bytes of its table's descriptors were handed over.
    pub(super) unsafe fn run(&self, device: &impl Mmio) {
        // SAFETY: the caller's promise.
        unsafe { self.regs.enable.write(device, regs::RUN) }
    }

    /// Counts the descriptors that are over by now.
    ///
    /// # Errors
    /// [`Error::Fault`]: the card is gone.
    #[allow(clippy::cast_possible_truncation, reason = "not more than were seen, a `u32`")]
    pub(super) fn look(&mut self, device: &impl Device) -> Result<()> {
        if self.stopped {
            return Ok(());
        }
        let count = self.regs.loop_status.read(device);
        if count == u32::MAX {
            self.find(device)?;
        }
        // A descriptor counts when its last request has left: the answer comes later, and so does a
        // write that the card's answers may overtake.
        self.settle.look(device, count.wrapping_sub(self.over) as usize);
        self.over = self.over.wrapping_add(self.settle.take_all() as u32);
        Ok(())
    }

    /// Stops the lane, and counts what ended before.
    ///
    /// # Errors
    /// [`Error::WillNotStop`], or the error of the interrupt's file.
    pub(super) fn stop(&mut self, device: &impl Device) -> Result<()> {
        if self.stopped {
            return Ok(());
        }
        // SAFETY: a lane that does not run starts no request.
        unsafe { self.regs.enable.write(device, 0) };
        let mut enable = 0;
        stops(device, DEVICE, STEP_US, self.stop_us, |device| {
            enable = self.regs.enable.read(device);
            (enable & (regs::ENABLE_RESERVED | regs::IDLE | regs::RUN) == regs::IDLE, enable)
        })?;
        // Until requests that left before are answered, and writes are in memory.
        let waited_us = self.settle.us();
        if !settle(device, waited_us)? {
            return Err(Error::WillNotStop { device: DEVICE, status: enable, waited_us });
        }
        // The answer to this read follows what an ordered writer sent before (PCI Express Base
        // Specification, "Transaction Ordering").
        let count = self.regs.loop_status.read(device);
        // SAFETY: as above.
        unsafe { self.regs.reset.write(device, 1) };
        (self.over, self.stopped) = (count, true);
        Ok(())
    }

    /// The same as steps, for a lane that needs no time afterwards. The answer that reports idle
    /// follows its writes.
    pub(super) const fn stop_steps(&self) -> [StopStep; 4] {
        let enable = self.regs.enable.offset();
        let idle = regs::ENABLE_RESERVED | regs::IDLE | regs::RUN;
        let is_idle = StopStep::poll_until(enable, idle, regs::IDLE, self.stop_us);
        [
            StopStep::write(enable, u32::MAX, 0),
            is_idle,
            StopStep::write(self.regs.reset.offset(), u32::MAX, 1),
            is_idle,
        ]
    }
}
