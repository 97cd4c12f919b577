#![allow(unsafe_code, reason = "an instruction for the debug interface is a register write")]
//! How channels are stopped.

use super::{
    regs,
    submit::{DEBUG_US, Thread, debug_instruction},
};
use crate::checks::stops;
use contigo_core::{
    hw::{Device, Mmio},
    job::StopStep,
    types::Result,
};
use core::ops::Range;

/// How long stopping waits for the transfers under way to end. Transfers of 256 bytes take 2 µs at
/// the slowest memory here. This is five thousand times that, for an interconnect that others
/// congest.
const STOP_US: u32 = 10_000;
/// Between two looks while it waits: no interrupt announces the end of a kill. After so long an
/// instruction that left the debug interface has had its effect.
const STOP_STEP_US: u32 = 50;
/// DMAKILL, byte 0 (Arm DDI 0424C, 4.3.6).
const DMAKILL: u32 = 0x01;

/// Kills `thread` by the debug interface, which is idle and this caller's alone.
pub(super) fn kill(device: &impl Mmio, thread: u32) {
    // SAFETY: DMAKILL starts no transfer.
    unsafe { debug_instruction(device, thread, [DMAKILL, 0], 0) }
}

/// How far the stopping of channels has come.
#[derive(Clone, Debug)]
pub(super) struct Stopping {
    /// Which ones.
    channels: Range<u32>,
    /// A channel that may be about to start: its DMAGO is done with in the debug interface, and
    /// maybe not yet in the channel. DMAKILL comes after it, and does no harm to a channel that is
    /// stopped (Altera HWLIB, `alt_dma_channel_kill`).
    unsettled: Option<u32>,
    /// Until then the last instruction may have its effect.
    settles_at_us: u64,
    /// The register that keeps it from being stopped: DBGSTATUS, CSRn or FTRD.
    last: u32,
}

/// What comes next.
enum Next {
    Stopped,
    Wait,
    /// DMAKILL for this thread, as DBGINST0 names it.
    Kill(u32),
}

impl Stopping {
    pub(super) const fn new(channels: Range<u32>, unsettled: Option<u32>) -> Self {
        Self { channels, unsettled, settles_at_us: 0, last: 0 }
    }

    /// Stops them. `kill` gives DMAKILL for a thread, and says whether it could.
    ///
    /// # Errors
    /// [`Error::WillNotStop`], or that of the interrupt's file.
    pub(super) fn run<D: Device>(
        mut self,
        device: &D,
        kill: impl Fn(&D, u32) -> bool,
    ) -> Result<()> {
        stops(device, regs::DEVICE, STOP_STEP_US, STOP_US, |device| {
            let next = self.next(device);
            if let Next::Kill(thread) = next
                && kill(device, thread)
            {
                self.unsettled = None;
                self.settles_at_us = device.now_us().saturating_add(STOP_STEP_US.into());
            }
            (matches!(next, Next::Stopped), self.last)
        })
    }

    /// Waits for what will end by itself, and kills one thread that will not. Stopped: all these
    /// channels are, the manager does not fault, and no instruction is on its way that could start
    /// one.
    fn next(&mut self, device: &impl Device) -> Next {
        self.last = regs::DBGSTATUS.read(device);
        if self.last & regs::DBG_BUSY != 0 {
            return Next::Wait;
        }
        for (thread, channel) in
            (0..).zip(&regs::CHANNELS).filter(|(thread, _)| self.channels.contains(thread))
        {
            self.last = channel.csr.read(device);
            match self.last & regs::STATUS {
                regs::STOPPED if self.unsettled != Some(thread) => {}
                regs::KILLING | regs::COMPLETING | regs::FAULTING_COMPLETING => return Next::Wait,
                _ => return Next::Kill(thread << 8 | 1),
            }
        }
        if regs::FSRD.read(device) & regs::FSRD_MANAGER != 0 {
            self.last = regs::FTRD.read(device);
            return Next::Kill(0);
        }
        if device.now_us() < self.settles_at_us { Next::Wait } else { Next::Stopped }
    }
}

impl Thread {
    /// Steps that kill it, which also stops the manager's DMAGO from taking effect later; a channel
    /// that ends its transfers after a fault is waited for first.
    pub(super) fn stop_steps(&self) -> [StopStep; 7] {
        let channel = u32::from(self.config.channel);
        let debug = regs::DBGSTATUS.offset();
        let not_busy = StopStep::poll_while(debug, regs::DBG_BUSY, regs::DBG_BUSY, DEBUG_US);
        let csr = self.registers().map_or(0, |channel| channel.csr.offset());
        [
            StopStep::poll_while(csr, regs::STATUS, regs::FAULTING_COMPLETING, STOP_US),
            not_busy,
            StopStep::write(regs::DBGINST0.offset(), u32::MAX, DMAKILL << 16 | channel << 8 | 1),
            StopStep::write(regs::DBGINST1.offset(), u32::MAX, 0),
            StopStep::write(regs::DBGCMD.offset(), u32::MAX, 0),
            not_busy,
            StopStep::poll_until(csr, regs::STATUS, regs::STOPPED, STOP_US),
        ]
    }
}
