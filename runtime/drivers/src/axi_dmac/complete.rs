#![allow(
    unsafe_code,
    reason = "interrupts are acknowledged, and ENABLE is a bit of a control register"
)]
//! How a job's end is seen and told, and how the core is stopped: it is disabled, completes its
//! accesses, and resets itself.

use super::{
    config::{DmacFound, DmacKind},
    regs,
    submit::{Jobs, State, gone},
};
use contigo_core::{
    hw::{Device, wait::poll_every},
    job::Completion,
    types::{Error, Result},
};
use core::time::Duration;

/// Between two looks while it waits: no interrupt announces the end of a stop.
const STOP_STEP_US: u32 = 5;

impl Jobs {
    /// The oldest job's end, where it was read before.
    pub(super) fn tell(&mut self) -> Option<Completion> {
        let place =
            self.places.get_mut(self.oldest).filter(|place| self.given > 0 && place.ended)?;
        place.ended = false;
        let completion = match (self.kind, place.partial) {
            (DmacKind::Receive, Some(bytes)) => {
                Completion::of(self.oldest).with_bytes(usize::try_from(bytes).unwrap_or(usize::MAX))
            }
            _ => Completion::of(self.oldest),
        };
        (self.oldest, self.given) = (self.id(1), self.given - 1);
        Some(completion)
    }

    /// Looks for ends, and gives the core what was held back for them.
    pub(super) fn look(&mut self, device: &impl Device, found: &DmacFound) -> Result<()> {
        self.look_for_ends(device)?;
        self.launch(device, found)
    }

    /// Looks for ends, and starts nothing.
    pub(super) fn look_for_ends(&mut self, device: &impl Device) -> Result<()> {
        if self.given == 0 {
            return Ok(());
        }
        // The newest first: a job that is confirmed after DONE was read could be an old one there.
        let confirmed = self.is_confirmed(device)?;
        let mut done = self.done(device)?;
        let ids = if confirmed { self.given } else { self.given - 1 };
        if !self.any_ended(done, ids) {
            // The line is a level: it falls here, and what came meanwhile is seen.
            // SAFETY: acknowledging moves no data.
            unsafe { regs::IRQ_PENDING.write(device, regs::IRQ_ENDED) };
            done = self.done(device)?;
        }
        let ended = done;
        // A report is there with its DONE bit, or before. There are as many as IDs, at most.
        for _ in 0..regs::IDS {
            if done & regs::PARTIAL == 0 {
                break;
            }
            let bytes = regs::PARTIAL_LENGTH.read(device);
            let id = regs::PARTIAL_ID.read_and_clear(device);
            if bytes == u32::MAX || id as usize >= regs::IDS {
                return Err(gone(id));
            }
            if let Some(place) = self.places.get_mut(id as usize) {
                place.partial = Some(bytes);
            }
            done = self.done(device)?;
        }
        // After the reports: a core that goes away between the two has ended nothing.
        for steps in 0..ids {
            let id = self.id(steps);
            if let Some(place) = self.places.get_mut(id) {
                place.ended |= ended >> id & 1 != 0;
            }
        }
        Ok(())
    }

    fn done(&self, device: &impl Device) -> Result<u32> {
        let done = regs::DONE.read(device);
        if done & regs::DONE_RESERVED != 0 { Err(gone(done)) } else { Ok(done) }
    }

    fn any_ended(&self, done: u32, ids: usize) -> bool {
        done & regs::PARTIAL != 0 || (0..ids).any(|steps| done >> self.id(steps) & 1 != 0)
    }

    /// The core has stopped: only ends that were read are told.
    pub(super) fn stopped(&mut self) {
        let ended = (0..self.given)
            .take_while(|&steps| self.places.get(self.id(steps)).is_some_and(|place| place.ended))
            .count();
        (self.given, self.held, self.state) = (ended, 0, State::Stopped);
    }
}

/// Disables the core behind `device`, and waits until it has reset itself.
///
/// HWDESC stays as it is: the core waits for the read of a descriptor only where it is set
/// (`axi_dmac_reset_manager.v`, `disabled_all`). Without it the reset comes before the read's
/// answer, which the next list then takes for its own descriptor.
pub(super) fn halt(device: &impl Device, stop_us: u32) -> Result<()> {
    let mut status = 0;
    let lists = regs::CONTROL.read(device) & regs::HWDESC;
    // SAFETY: a core that is disabled starts nothing.
    unsafe {
        regs::IRQ_MASK.write(device, regs::IRQ_QUEUED | regs::IRQ_ENDED);
        regs::CONTROL.write(device, lists);
    }
    let met = poll_every(device, STOP_STEP_US, Duration::from_micros(stop_us.into()), |device| {
        status = regs::STATE.read(device);
        status & (regs::STATE_BITS | regs::STATE_RESERVED) == regs::STATE_RESET
    })?;
    if met {
        Ok(())
    } else {
        Err(Error::WillNotStop { device: "axi_dmac", status, waited_us: stop_us })
    }
}
