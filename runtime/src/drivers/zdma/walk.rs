#![allow(unsafe_code, reason = "EN sends the channel to the operands")]
//! The channel's walk over one list, or over the one transfer in its registers: how it starts, when
//! it has ended, and what its registers say of it.

use super::{Zdma, jobs::Launch, regs};
use crate::{
    hw::{Device, wait::poll_until},
    types::{DevAddr, Error, Result},
};
use core::time::Duration;

impl<D: Device> Zdma<D> {
    /// Waits for the end of the list at work, and keeps what came of it. `false`: there is none, or
    /// it goes on.
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

    /// How many bytes at the beginning of a list that failed are where they belong. TOTAL_BYTE
    /// counts also after an error, and in no order that a manual tells. Only where the error was at
    /// the reading side is all that it counts the beginning; and only an idle channel has come to
    /// its end.
    fn done_for_certain(&self, isr: u32, status: u32) -> u32 {
        let of_reading = regs::INT_READ | regs::INT_SRC_DESCRIPTOR;
        let certain = regs::is_idle(status) && isr & of_reading != 0 && isr & regs::INT_FATAL & !of_reading == 0;
        if certain { regs::TOTAL_BYTE.read(&self.device) } else { 0 }
    }

    /// Starts the jobs that wait, where the channel is idle.
    pub(super) fn launch(&mut self) -> Result<()> {
        let coherent = self.device.port().coherent;
        let Some(Launch { from, to, bytes, list }) = self.jobs.launch(coherent)? else { return Ok(()) };
        let device = &self.device;
        let word3 = if coherent { regs::WORD3_COHERENT } else { 0 };
        // SAFETY: the operands of every job that waits were handed over (`submit`), and `check`
        // found the second one of each large enough for all of the first. So the transfers that EN
        // starts stay inside them, whether the registers describe one or the list does.
        unsafe {
            regs::ISR.write(device, regs::INT_ALL);
            // Clears its count so far. Writing 1 clears a bit (UG1087), as AMD's own driver does
            // it.
            regs::TOTAL_BYTE.write(device, regs::TOTAL_BYTE.read(device));
            if let Some(DevAddr(list)) = list {
                regs::CTRL0.write(device, regs::POINT_TYPE_MEMORY);
                regs::SRC_START.write(device, DevAddr(list));
                regs::DST_START.write(device, DevAddr(list.wrapping_add(regs::DESCRIPTOR_BYTES as u64)));
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

    /// The registers' verdict on the finished list. Registers of a device are distrusted: they are
    /// compared, not used.
    fn verdict(&self, isr: u32, status: u32) -> Result<()> {
        if isr & regs::INT_FATAL != 0 || status & regs::STATE == regs::STATE_FAILED {
            return Err(Error::Fault { device: "zdma", status: isr, what: regs::describe(isr) });
        }
        let done_bytes = regs::TOTAL_BYTE.read(&self.device);
        let need_bytes = self.jobs.running_bytes();
        if done_bytes != need_bytes {
            return Err(Error::ShortTransfer { need_bytes: u64::from(need_bytes), done_bytes: u64::from(done_bytes) });
        }
        Ok(())
    }
}
