//! What several jobs share: a doorbell, and one call for their caches; and the jobs that wait until
//! the driver has room.

use super::Queue;
use super::flight::State;
use super::list::Place;
use crate::job::prepare::Slices;
use crate::job::{Driver, JobError};
use crate::mem::buf::{Cleaning, Syncs};
use crate::trace::Site;
use crate::types::{Error, Result, barrier};

impl<D: Driver> Queue<D> {
    /// When the caches of the next job's buffers are cleaned: with those of its burst, if its
    /// device leaves them alone until the doorbell.
    #[inline]
    pub(super) fn cleaning(&self) -> Cleaning {
        if self.held && !self.port.coherent { self.cleaning_of_burst() } else { Cleaning::Now }
    }

    #[inline(never)]
    fn cleaning_of_burst(&self) -> Cleaning {
        let waits = self.has_room() && self.driver.waits_for_doorbell();
        if waits { Cleaning::Later } else { Cleaning::Now }
    }

    /// Rings the doorbell, unless ends are at hand and the device has more jobs than wait for it.
    #[inline]
    pub(super) fn ring_unless_few(&mut self, site: Site) -> Result<(), JobError<()>> {
        let is_few = !self.ended.is_empty() && 2 * self.owed < self.given.len();
        if is_few || self.state != State::AtWork { Ok(()) } else { self.ring(site) }
    }

    /// Cleans the caches of the burst's buffers, by as few calls as their memory allows.
    fn clean_owed(&mut self, site: Site) -> Result<()> {
        let before = self.given.len().saturating_sub(self.owed);
        let mut syncs = Syncs::for_device(site);
        for place in self.given.iter(&self.places).skip(before) {
            for operand in self.places.operands(place) {
                operand.given().add_uncleaned(&mut syncs)?;
            }
        }
        syncs.flush()?;
        self.places.each_operand(self.given, |operand| operand.given_mut().was_cleaned());
        Ok(())
    }

    /// After a stop: the device never had the jobs of a burst whose doorbell was not rung.
    pub(super) fn forget_unrung(&mut self) {
        if !self.port.coherent {
            self.places.each_operand(self.given, |operand| operand.given_mut().was_not_rung());
        }
    }

    /// Rings the doorbell that is owed, and ends the burst.
    #[inline(never)]
    pub(super) fn ring(&mut self, site: Site) -> Result<(), JobError<()>> {
        if self.state == State::MustStop {
            let error = Error::QueueStopped { in_flight: self.len() };
            return Err(JobError::without_buffers(error, error));
        }
        self.held = false;
        if self.owed == 0 {
            return Ok(());
        }
        // As in `launch`.
        self.state = State::MustStop;
        // A kernel that was busy is asked twice; nothing was rung.
        if !self.port.coherent
            && let Err(cause) = self.clean_owed(site).or_else(|_| self.clean_owed(site))
        {
            return Err(self.channel_failed(cause, site));
        }
        self.owed = 0;
        barrier::before_doorbell();
        let rung = self.driver.doorbell();
        self.state = State::AtWork;
        rung.map_err(|cause| self.channel_failed(cause, site))
    }

    /// Gives waiting jobs to a driver that can take them. If the device does not take one, it is
    /// stopped: the next poll returns the error, and all jobs must be taken back.
    #[inline]
    pub(super) fn feed(&mut self, site: Site) {
        if !self.waiting.is_empty() {
            self.feed_waiting(site);
        }
    }

    #[inline(never)]
    fn feed_waiting(&mut self, site: Site) {
        while self.state == State::AtWork && self.given.len() < self.most_given {
            let Some(place) = self.waiting.pop(&self.places) else { return };
            if let Err(cause) = self.feed_one(place, site) {
                let JobError { error, cause, .. } = self.channel_failed(cause, site);
                self.late = Some((error, cause));
            }
        }
    }

    fn feed_one(&mut self, place: Place, site: Site) -> Result<()> {
        let mut slices = Slices::<{ crate::job::MAX_OPERANDS }>::new();
        for (index, operand) in self.places.operands(place).iter().enumerate() {
            // The check of `ready`, which found nothing to refuse. There is room for each.
            match operand.check(index, &self.port, self.reach) {
                Ok(slice) => _ = slices.push(slice),
                Err(error) => {
                    self.given.push(&mut self.places, place);
                    return Err(error);
                }
            }
        }
        self.launch(place, &slices, None, site)
    }
}
