#![allow(unsafe_code, reason = "registers stop a channel and the core")]
//! How a channel is stopped: alone, or by a reset of the core.

use super::channel::McdmaChannel;
use super::config::{STEP_US, reset};
use super::jobs::is_good;
use super::regs;
use crate::checks::reset_program;
use contigo_core::hw::wait::poll_every;
use contigo_core::hw::{self, Device};
use contigo_core::job::StopProgram;
use contigo_core::types::Result;
use core::mem;
use core::time::Duration;

impl<D: Device> McdmaChannel<D> {
    /// Returns whether a reset, which is over, ended the jobs in flight.
    ///
    /// # Errors
    /// [`Error::Contended`]: a sibling's reset does not end.
    fn was_reset(&self) -> Result<bool> {
        // A sibling's reset counts its epoch before it begins, and holds the lock to its end.
        let device = &*self.device;
        hw::locked(device, || {
            // A failed reset counts too, so the registers have to agree. All zeros or all ones mean
            // no device.
            Ok(device.reset_epoch() != self.epoch
                && self.regs.control.read(device) & (regs::RUN | regs::IRQS | regs::THRESHOLD_1)
                    == regs::THRESHOLD_1
                && regs::COMMON.iter().all(|common| common.control.read(device) & regs::RESET == 0))
        })
    }

    /// As [`Driver::stop`](contigo_core::Driver::stop).
    ///
    /// No register reports that a single channel has stopped: it carries out what it fetched,
    /// whenever the packet comes. So the channel stops alone if all of its descriptors finish soon;
    /// otherwise the core is reset, which ends its siblings' jobs too.
    pub(super) fn stop_channel(&mut self) -> Result<()> {
        // The core has none of the jobs whose doorbell is owed.
        let rung = self.in_flight - mem::take(&mut self.owed);
        if !self.runs {
            return Ok(());
        }
        let was_reset = self.was_reset()?;
        if !was_reset && !self.drained(rung)? {
            let (common, stop_us) = (self.common, self.config.stop_us);
            hw::reset_all(&*self.device, || reset(&*self.device, common, stop_us))?;
            self.cut = true;
        }
        self.cut |= was_reset;
        self.runs = false;
        Ok(())
    }

    /// Keeps the channel from fetching more. Returns whether the descriptors of its oldest `rung`
    /// jobs, which had their doorbell, are all done.
    ///
    /// # Errors
    /// The interrupt's file failed, which cut the wait short.
    fn drained(&mut self, rung: usize) -> Result<bool> {
        let device = &*self.device;
        // SAFETY: a channel that does not run starts nothing.
        unsafe { self.regs.control.write(device, regs::IRQS | regs::THRESHOLD_1) };
        if rung == 0 {
            return Ok(true);
        }
        let newest = self.ring.after(self.oldest, rung - 1);
        let (registers, at, epoch, ring) =
            (self.regs, self.way.status_at(), self.epoch, &mut self.ring);
        let mut done = false;
        poll_every(device, STEP_US, Duration::from_micros(self.config.stop_us.into()), |device| {
            let status = registers.status.read(device);
            let hopeless =
                status & (regs::ERROR | regs::OTHER_ERROR) != 0 || device.reset_epoch() != epoch;
            // Registers first: a read of a descriptor is a sync. They end in order.
            if status & (regs::IDLE | regs::CHANNEL_RESERVED) == regs::IDLE {
                let mut words = [0];
                done = ring.read(newest, at, &mut words).is_ok() && is_good(words[0]);
            }
            done || hopeless
        })?;
        Ok(done)
    }

    /// The reset as steps. It ends the jobs of all channels.
    pub(super) fn stop_steps(&self) -> StopProgram {
        let (control, status) = (self.common.control.offset(), self.common.status.offset());
        reset_program(
            (control, regs::RESET, regs::RESET),
            (status, regs::HALTED | regs::COMMON_RESERVED, regs::HALTED),
            self.config.stop_us,
        )
    }
}
