#![allow(unsafe_code, reason = "an instruction for the debug interface is a register write")]
//! How channels are stopped.

use super::regs;
use super::submit::{DEBUG_US, Thread, debug_instruction};
use crate::checks::stops;
use contigo_core::hw::{Device, Mmio};
use contigo_core::job::StopStep;
use contigo_core::types::Result;
use core::ops::Range;

/// How long a stop waits for transfers under way. Transfers of 256 bytes take 2 µs with the slowest
/// memory here. This is five thousand times that, for a congested interconnect.
const STOP_US: u32 = 10_000;
/// The time between polls of a wait: no interrupt announces the end of a kill. After this time an
/// instruction that left the debug interface has taken effect.
const STOP_STEP_US: u32 = 50;
/// DMAKILL, byte 0 (Arm DDI 0424C, 4.3.6).
const DMAKILL: u32 = 0x01;

/// Kills `thread` by the debug interface, which is idle and which only this caller uses.
pub(super) fn kill(device: &impl Mmio, thread: u32) {
    // SAFETY: DMAKILL starts no transfer.
    unsafe { debug_instruction(device, thread, [DMAKILL, 0], 0) }
}

/// The progress of stopping channels.
#[derive(Clone, Debug)]
pub(super) struct Stopping {
    /// The channels to stop.
    channels: Range<u32>,
    /// A channel that may be about to start: the debug interface is done with its DMAGO, and the
    /// channel may not be. DMAKILL comes after it, and is harmless to a stopped channel (Altera
    /// HWLIB, `alt_dma_channel_kill`).
    unsettled: Option<u32>,
    /// Until then the last instruction may take effect.
    settles_at_us: u64,
    /// The register that shows it is not stopped: DBGSTATUS, CSRn or FTRD.
    last: u32,
}

/// The next step.
enum Next {
    Stopped,
    Wait,
    /// DMAKILL this thread, as DBGINST0 encodes it.
    Kill(u32),
}

impl Stopping {
    pub(super) const fn new(channels: Range<u32>, unsettled: Option<u32>) -> Self {
        Self { channels, unsettled, settles_at_us: 0, last: 0 }
    }

    /// Stops them. `kill` issues DMAKILL for a thread, and returns whether it could.
    ///
    /// # Errors
    /// [`Error::WillNotStop`], or the error of the interrupt's file.
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

    /// Waits for threads that end by themselves, and kills one that will not. Stopped means that
    /// all these channels are, the manager does not fault, and no instruction under way could start
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
    /// Steps that kill a channel, which also keeps the manager's DMAGO from taking effect later.
    /// They first wait for a channel that ends its transfers after a fault.
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
