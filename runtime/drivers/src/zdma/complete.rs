#![allow(unsafe_code, reason = "EN sends the channel to the operands, and stops it")]
//! How a list starts, how its end (or that of the one transfer in registers) is detected, and how a
//! channel stops: its copy ends by itself, and EN is cleared only if no end comes. If this process
//! has died, the Linux kernel waits for the copy by a program of steps.

use super::driver::Zdma;
use super::regs;
use super::submit::Launch;
use contigo_core::hw::Device;
use contigo_core::hw::wait::{poll_every, poll_until};
use contigo_core::job::{StopProgram, StopStep};
use contigo_core::types::{DevAddr, Error, Result};
use core::time::Duration;

/// How long a stop waits for a channel's end in addition to its copy, and again after clearing EN.
/// The channels' common buffer holds 4 KiB, which take 5 µs at 1 GB/s. This is more than a thousand
/// times that, for a congested interconnect.
const STOP_US: u32 = 10_000;
/// How long the kernel waits for the copy's end if this process has died: nearly the whole second
/// that its polls may wait together.
const PROGRAM_US: u32 = 900_000;
/// Bytes that the last copy moves in a microsecond: 100 MB/s, an eighth of what 64 bits carry at
/// 100 MHz.
const STOP_BYTES_PER_US: u32 = 100;
/// The time between polls of a wait: no interrupt announces the end of a stop.
const STOP_STEP_US: u32 = 50;
/// Consecutive polls that must find the channel idle: STATUS may lag right after a doorbell.
const IDLE_LOOKS: u32 = 2;

impl<D: Device> Zdma<D> {
    /// Starts the waiting jobs if the channel is idle.
    pub(super) fn launch(&mut self) -> Result<()> {
        let coherent = self.device.port().coherent;
        let Some(Launch { from, to, bytes, list }) = self.jobs.launch(coherent)? else {
            return Ok(());
        };
        let device = &self.device;
        let word3 = if coherent { regs::WORD3_COHERENT } else { 0 };
        // SAFETY: the operands of every waiting job were handed over (`submit`), and `check` found
        // each second operand large enough for all of the first. So the transfers that EN starts,
        // from registers or from the list, stay inside them.
        unsafe {
            regs::ISR.write(device, regs::INT_ALL);
            // Clears the count. Writing 1 clears a bit (UG1087), as in AMD's own driver.
            regs::TOTAL_BYTE.write(device, regs::TOTAL_BYTE.read(device));
            if let Some(DevAddr(list)) = list {
                regs::CTRL0.write(device, regs::POINT_TYPE_MEMORY);
                regs::SRC_START.write(device, DevAddr(list));
                regs::DST_START
                    .write(device, DevAddr(list.wrapping_add(regs::DESCRIPTOR_BYTES as u64)));
            } else {
                regs::CTRL0.write(device, 0);
                regs::SRC_ADDR.write(device, from);
                regs::SRC_SIZE.write(device, bytes);
                regs::SRC_WORD3.write(device, word3);
                regs::DST_ADDR.write(device, to);
                regs::DST_SIZE.write(device, bytes);
                regs::DST_WORD3.write(device, word3);
            }
            regs::CTRL2.write(device, regs::ENABLE);
        }
        Ok(())
    }

    /// Waits for the end of the list at work, and records its result. `false` if there is no list,
    /// or it is still at work.
    pub(super) fn list_ended(&mut self, timeout: Duration) -> Result<bool> {
        if !self.jobs.are_running() {
            return Ok(false);
        }
        let (mut isr, mut status) = (0, regs::STATE_BUSY);
        // An error ends the waiting at once, and the engine stops the channel. DMA_DONE is not
        // enough: STATUS must agree.
        let ended = poll_until(&self.device, timeout, |device| {
            isr = regs::ISR.read(device);
            if isr == u32::MAX || isr & (regs::INT_DONE | regs::INT_FATAL) == 0 {
                return false;
            }
            status = regs::STATUS.read(device);
            isr & regs::INT_FATAL != 0 || regs::is_idle(status)
        })?;
        if ended {
            // SAFETY: acknowledging moves no data.
            unsafe { regs::ISR.write(&self.device, isr & regs::INT_ALL) };
            match self.verdict(isr, status) {
                Ok(()) => self.jobs.all_ended(),
                Err(fault) => self.jobs.failed(fault, self.done_for_certain(isr, status)),
            }
        }
        Ok(ended)
    }

    /// How many bytes at the beginning of a failed list were certainly copied. TOTAL_BYTE also
    /// counts after an error, in an order that no manual documents. It counts only the beginning if
    /// the error was on the reading side; and only on an idle channel is it final.
    fn done_for_certain(&self, isr: u32, status: u32) -> u32 {
        let of_reading = regs::INT_READ | regs::INT_SRC_DESCRIPTOR;
        let certain = regs::is_idle(status)
            && isr & of_reading != 0
            && isr & regs::INT_FATAL & !of_reading == 0;
        if certain { regs::TOTAL_BYTE.read(&self.device) } else { 0 }
    }

    /// The finished list's result, by the registers. They are not trusted: the driver compares
    /// their values, and never uses them.
    fn verdict(&self, isr: u32, status: u32) -> Result<()> {
        if isr & regs::INT_FATAL != 0 || status & regs::STATE == regs::STATE_FAILED {
            return Err(Error::Fault { device: "zdma", status: isr, what: regs::describe(isr) });
        }
        let done_bytes = regs::TOTAL_BYTE.read(&self.device);
        let need_bytes = self.jobs.running_bytes();
        if done_bytes != need_bytes {
            return Err(Error::ShortTransfer {
                need_bytes: u64::from(need_bytes),
                done_bytes: u64::from(done_bytes),
            });
        }
        Ok(())
    }

    /// Masks the interrupts, waits for the channel's end, and clears EN only if none comes.
    ///
    /// A copy ends by itself, and at its end STATUS is known to be true. No source documents how a
    /// channel at work reacts to clearing EN. UG1085 only says that it can be disabled at any time,
    /// and that a paused one then leaves its state ("DMA Controller Functional Description",
    /// "Channel Disabled"). So this comes last, when the copy should have ended long ago.
    pub(super) fn halt(&mut self) -> Result<()> {
        // SAFETY: masking moves no data.
        unsafe { regs::IDS.write(&self.device, regs::INT_ALL) };
        let copy_us = STOP_US + self.jobs.running_bytes() / STOP_BYTES_PER_US;
        let mut left_over = self.not_idle(copy_us)?;
        // SAFETY: clearing EN starts nothing; CONT with EN at 0 leads from the paused state to the
        // disabled one.
        unsafe {
            regs::CTRL2.write(&self.device, 0);
            if left_over == Some(regs::STATE_PAUSED) {
                regs::CTRL0.write(&self.device, regs::CTRL0.read(&self.device) | regs::CONTINUE);
            }
        }
        if left_over.is_some() {
            left_over = self.not_idle(STOP_US)?;
        }
        if let Some(status) = left_over {
            return Err(Error::WillNotStop {
                device: "zdma",
                status,
                waited_us: copy_us + STOP_US,
            });
        }
        // SAFETY: acknowledging moves no data.
        unsafe { regs::ISR.write(&self.device, regs::INT_ALL) };
        Ok(())
    }

    /// Waits at most `limit_us` until the channel is idle. `None`, or the last STATUS.
    ///
    /// # Errors
    /// The error of the interrupt's file, if that ended the wait.
    fn not_idle(&mut self, limit_us: u32) -> Result<Option<u32>> {
        let (mut status, mut idle_looks) = (regs::STATE_BUSY, 0);
        let idle = poll_every(
            &self.device,
            STOP_STEP_US,
            Duration::from_micros(limit_us.into()),
            |device| {
                status = regs::STATUS.read(device);
                idle_looks = if regs::is_idle(status) { idle_looks + 1 } else { 0 };
                idle_looks >= IDLE_LOOKS
            },
        )?;
        Ok((!idle).then_some(status))
    }

    /// Waits for the copy's end, with the interrupts masked: no source documents what disabling a
    /// channel at work does. EN reads 1 from the doorbell on, also while the channel pauses, and
    /// from an absent device.
    pub(super) fn program(&self) -> StopProgram {
        StopProgram::new(&[
            StopStep::write(regs::IDS.offset(), u32::MAX, regs::INT_ALL),
            StopStep::poll_until(regs::CTRL2.offset(), regs::ENABLE, 0, PROGRAM_US),
            StopStep::poll_while(regs::STATUS.offset(), regs::STATE, regs::STATE_BUSY, STOP_US),
        ])
        .unwrap_or_default()
    }
}
