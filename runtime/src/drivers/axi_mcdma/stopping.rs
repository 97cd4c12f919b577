#![allow(unsafe_code, reason = "a channel and a core are stopped here, by their registers")]
//! How a channel stops, and how the core is reset.

use super::{channel::McdmaChannel, fault, regs};
use crate::{
    hw::{self, Device, wait::poll_every},
    job::{StopProgram, StopStep},
    types::{Error, Result},
};
use core::time::Duration;

/// Between two looks while something ends.
const STEP_US: u32 = 1;

/// Resets the core, both directions, by the register of direction `common`.
///
/// # Errors
/// [`Error::WillNotStop`]: the reset does not end; or that of the interrupt's file.
pub(super) fn reset(device: &impl Device, common: &regs::Common, stop_us: u32) -> Result<()> {
    // SAFETY: a core in reset starts nothing.
    unsafe { common.control.write(device, regs::RESET) };
    let mut control = 0;
    let over = poll_every(device, STEP_US, Duration::from_micros(stop_us.into()), |device| {
        control = common.control.read(device);
        control & regs::RESET == 0 && is_halted(common.status.read(device))
    })?;
    if over { Ok(()) } else { Err(Error::WillNotStop { device: fault::DEVICE, status: control, waited_us: stop_us }) }
}

/// Does the common status say Halted, and nothing that cannot be?
pub(super) const fn is_halted(status: u32) -> bool {
    status & (regs::HALTED | regs::COMMON_RESERVED) == regs::HALTED
}

impl<D: Device> McdmaChannel<D> {
    /// Has a reset, which is over, ended what `submit` began?
    ///
    /// # Errors
    /// [`Error::Contended`]: a sibling's reset does not end.
    fn was_reset(&self) -> Result<bool> {
        // A sibling's reset counts its epoch before it begins, and holds the lock to its end.
        let device = &*self.device;
        hw::locked(device, || {
            // One that failed counts too, so the registers have to say the same. All zeros and all
            // ones are no registers.
            Ok(device.reset_epoch() != self.epoch
                && self.regs.control.read(device) & (regs::RUN | regs::IRQS | regs::THRESHOLD_1) == regs::THRESHOLD_1
                && regs::COMMON.iter().all(|common| common.control.read(device) & regs::RESET == 0))
        })
    }

    /// As [`Driver::stop`](crate::Driver::stop).
    ///
    /// No register says that a channel has stopped alone: what it fetched it carries out, whenever
    /// its packet comes. So it stops by itself where all of its descriptors are done soon, and else
    /// the core is reset, which ends its siblings' jobs too.
    pub(super) fn stop_channel(&mut self) -> Result<()> {
        if !self.runs {
            return Ok(());
        }
        let was_reset = self.was_reset()?;
        if !was_reset && !self.drained()? {
            let (common, stop_us) = (self.common, self.config.stop_us);
            hw::reset_all(&*self.device, || reset(&*self.device, common, stop_us))?;
            self.cut = true;
        }
        self.cut |= was_reset;
        self.runs = false;
        Ok(())
    }

    /// It fetches no more. True: it has none left either.
    ///
    /// # Errors
    /// The interrupt's file failed: the channel had no time.
    fn drained(&mut self) -> Result<bool> {
        let device = &*self.device;
        // SAFETY: a channel that does not run starts nothing.
        unsafe { self.regs.control.write(device, regs::IRQS | regs::THRESHOLD_1) };
        if self.in_flight == 0 {
            return Ok(true);
        }
        let newest = self.ring.after(self.oldest, self.in_flight - 1);
        let (registers, at, epoch, ring) = (self.regs, self.status_at(), self.epoch, &mut self.ring);
        let mut done = false;
        poll_every(device, STEP_US, Duration::from_micros(self.config.stop_us.into()), |device| {
            let status = registers.status.read(device);
            let hopeless = status & (regs::ERROR | regs::OTHER_ERROR) != 0 || device.reset_epoch() != epoch;
            // The register first: a look at a descriptor is a sync. They end in order.
            if status & (regs::IDLE | regs::CHANNEL_RESERVED) == regs::IDLE {
                let mut words = [0];
                done = ring.read(newest, at, &mut words).is_ok() && words[0] & (regs::COMPLETE | regs::FAILED) == regs::COMPLETE;
            }
            done || hopeless
        })?;
        Ok(done)
    }

    /// The reset as steps. It ends the jobs of all channels.
    pub(super) fn stop_steps(&self) -> StopProgram {
        let (control, status, stop_us) = (self.common.control.offset(), self.common.status.offset(), self.config.stop_us);
        StopProgram::new(&[
            StopStep::write(control, u32::MAX, regs::RESET),
            StopStep::poll_until(control, regs::RESET, 0, stop_us),
            StopStep::poll_until(status, regs::HALTED | regs::COMMON_RESERVED, regs::HALTED, stop_us),
        ])
        .unwrap_or_default()
    }
}
