#![allow(unsafe_code, reason = "interrupt enables are registers")]
//! A kernel cannot be aborted: stopping waits for the end of the jobs under way. The driver does
//! so, or the kernel of Linux by a program of steps where this program is gone.

use super::{
    super::{Protocol, regs},
    ApCtrl, CHAIN,
    handshake::{acknowledge, release, results},
};
use crate::{
    hw::{Device, wait::poll_every},
    job::{Completion, StopProgram, StopStep},
    types::{Error, Result},
};
use core::time::Duration;
use heapless::Vec;

/// How long stopping waits for the end of the jobs under way, unless the program says. 200 MB take
/// so long at the slowest port here (Zynq HP at 100 MHz, 0.4 GB/s).
pub(super) const STOP_US: u32 = 500_000;
/// The polls of a stop program may last a second together; the longest here has three.
const PROGRAM_US: u32 = 1_000_000 / 3;
/// Between two looks while it waits: a job that hangs raises no interrupt.
const STOP_STEP_US: u32 = 50;

impl<D: Device> ApCtrl<D> {
    /// Waits for the end of the jobs under way, and keeps what they left.
    pub(super) fn halt(&mut self) -> Result<()> {
        if self.waiting.take().is_some() {
            let _ = self.slots.pop_back();
        }
        let mut status = 0;
        // Somebody may have left AUTO_RESTART on: such a kernel is never idle. The rest of CTRL
        // ignores a 0.
        // SAFETY: it starts nothing, and the kernel starts nothing by itself any more.
        unsafe { regs::CTRL.write(&self.device, 0) };
        let Self { device, map, slots, ended, .. } = self;
        let idle = poll_every(&*device, STOP_STEP_US, Duration::from_micros(self.stop_us.into()), |device| {
            status = regs::CTRL.read_and_clear(device);
            if regs::is_done(status) {
                let words = results(device, map);
                // As many as slots have room.
                let _ = slots.pop_front().map(|slot| ended.push_back(Completion { words, ..Completion::of(slot) }));
                release(device, map);
            }
            regs::is_idle(status)
        })?;
        if !idle {
            return Err(Error::WillNotStop { device: self.name, status, waited_us: self.stop_us });
        }
        self.slots.clear();
        if self.map.has_interrupt() {
            acknowledge(&self.device);
            // AP_READY lets a job start that waits.
            let enabled = if self.map.protocol() == Protocol::Chain { regs::INT_DONE | regs::INT_READY } else { regs::INT_DONE };
            // Also after a reset from outside, which turned them off.
            // SAFETY: interrupt enables move no data.
            unsafe {
                regs::IER.write(&self.device, enabled);
                regs::GIE.write(&self.device, 1);
            }
        }
        Ok(())
    }

    /// Waits for the end of the jobs under way, with the interrupt off: a kernel cannot be aborted.
    /// In a chain the first job's end must be seen before the second can end. It is looked for
    /// twice, because the program may have died right after an AP_CONTINUE, when AP_DONE is read
    /// once more.
    pub(super) fn program(&self) -> StopProgram {
        let ctrl = regs::CTRL.offset();
        let limit_us = self.stop_us.min(PROGRAM_US);
        let mut steps = Vec::<_, { 2 * CHAIN + 2 }>::new();
        // There is room for all.
        if self.map.has_interrupt() {
            let _ = steps.push(StopStep::write(regs::GIE.offset(), u32::MAX, 0));
        }
        if self.map.protocol() == Protocol::Chain {
            for _ in 0..CHAIN {
                let _ = steps.push(StopStep::poll_while(ctrl, regs::AP_DONE | regs::AP_IDLE, 0, limit_us));
                let _ = steps.push(StopStep::write(ctrl, u32::MAX, regs::AP_CONTINUE));
            }
        } else {
            // AUTO_RESTART off, as AP_CONTINUE's write does.
            let _ = steps.push(StopStep::write(ctrl, u32::MAX, 0));
        }
        let _ = steps.push(StopStep::poll_until(ctrl, regs::IDLE_MASK, regs::AP_IDLE, limit_us));
        StopProgram::new(&steps).unwrap_or_default()
    }
}
