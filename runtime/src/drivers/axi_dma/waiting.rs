//! How a channel waits for the end of its oldest job.

use super::{at::At, channel::AxiDmaChannel, lane::Lane, shared::set_busy};
use crate::{
    hw::{
        Device,
        wait::{poll_every, poll_until},
    },
    job::Completion,
    types::{Error, Result},
};
use core::time::Duration;

impl<D: Device> AxiDmaChannel<D> {
    /// As [`Driver::poll`](crate::Driver::poll).
    #[inline]
    pub(super) fn wait(&mut self, timeout: Duration) -> Result<Option<Completion>> {
        if self.lane.in_flight == 0 {
            return Ok(None);
        }
        if !self.lane.runs {
            return self.lane.look_stopped();
        }
        let base = self.lane.side.base();
        let (lane, mut found) = (&mut self.lane, Ok(None));
        let (step_us, mut ended, mut left) = (lane.step_us(), false, timeout);
        let look = |lane: &mut Lane, device: &D| lane.look(&At { device, base });
        if step_us < u32::MAX {
            let from_us = self.device.now_us();
            poll_every(&self.device, step_us, timeout, |device| {
                found = look(lane, device);
                ended = !matches!(found, Ok(None));
                // From here on an interrupt comes.
                ended || lane.step_us() > step_us
            })?;
            left = timeout.saturating_sub(Duration::from_micros(self.device.now_us().saturating_sub(from_us)));
        }
        if !ended {
            ended = poll_until(&self.device, left, |device| {
                found = look(lane, device);
                !matches!(found, Ok(None))
            })?;
        }
        if !ended && !timeout.is_zero() && self.lane.ring.is_some() {
            // Once a wait, also where no register said anything.
            found = self.lane.look_at_memory(&At { device: &self.device, base }, 0);
        }
        let told = self.believed(found.map_err(|error| self.or_siblings(error)));
        if self.lane.in_flight == 0 {
            set_busy(&self.device, self.lane.side, false);
        }
        told
    }

    /// A look's result, where no reset came: the core's epoch is read after it.
    fn believed(&mut self, found: Result<Option<Completion>>) -> Result<Option<Completion>> {
        if !self.was_reset() || !self.lane.runs {
            return found;
        }
        // A status in a descriptor was written before the reset, and is true.
        match (self.lane.ring.is_some(), found) {
            (true, Ok(Some(end))) => Ok(Some(end)),
            (true, Ok(None)) => match self.lane.look_at_memory(&At { device: &self.device, base: self.lane.side.base() }, 0) {
                Ok(Some(end)) => Ok(Some(end)),
                _ => Err(Error::EndedByReset { device: self.lane.side.name() }),
            },
            _ => Err(Error::EndedByReset { device: self.lane.side.name() }),
        }
    }
}
