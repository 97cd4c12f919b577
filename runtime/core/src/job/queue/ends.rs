//! How a queue finds the ends of its jobs.

use super::Queue;
use super::flight::State;
use super::list::Place;
use crate::job::prepare::{ended, received};
use crate::job::{Completion, Driver, JobError};
use crate::mem::buf::Syncs;
use crate::trace::{Event, Site};
use crate::types::{Result, barrier, timeout_us};
use core::time::Duration;

impl<D: Driver> Queue<D> {
    /// The place of the next job that ended, where its operands still are. Its end is written to
    /// `completion`.
    #[inline]
    pub(super) fn ended(
        &mut self,
        timeout: Duration,
        completion: &mut Completion,
        site: Site,
    ) -> Result<Option<Place>, JobError<()>> {
        if let Err(error) = timeout_us(timeout) {
            return Err(JobError::without_buffers(error, error));
        }
        if self.held && self.state == State::AtWork {
            self.ring(site)?;
        }
        self.feed(site);
        if let Some(place) = self.at_hand(completion) {
            return Ok(Some(place));
        }
        if self.late.is_some()
            && let Some((error, cause)) = self.late.take()
        {
            return Err(JobError::without_buffers(error, cause));
        }
        if self.given.is_empty() {
            return Ok(None);
        }
        *completion = match self.look(timeout) {
            Ok(Some(completion)) => completion,
            Ok(None) => return Ok(None),
            Err(error) => return Err(self.channel_failed(error, site)),
        };
        let place = self.believed(completion, site)?;
        if !self.port.coherent && self.state == State::AtWork {
            self.gather(place, completion, site);
        }
        Ok(Some(place))
    }

    /// The place of a job whose end was found beside another one's.
    #[inline]
    pub(super) fn at_hand(&self, completion: &mut Completion) -> Option<Place> {
        let place = self.ended.first()?;
        *completion = self.places.job(place)?.end;
        Some(place)
    }

    /// The place of the job that `completion` is true of. It is still with the device's jobs.
    #[inline(always)]
    fn believed(&mut self, completion: &Completion, site: Site) -> Result<Place, JobError<()>> {
        let place = self.place_of(completion.slot);
        let most_bytes = place.and_then(|place| self.places.job(place)).map(|job| job.most_bytes);
        let Some(place) = place.filter(|_| completion.is_possible(most_bytes)) else {
            let error = completion.refusal(self.driver.name(), most_bytes);
            return Err(self.channel_failed(error, site));
        };
        barrier::after_completion();
        if self.port.is_simulated()
            && let Err(error) = ended(
                &self.driver,
                self.places.operands(place),
                completion.failed.is_some(),
                &mut self.wrong,
            )
        {
            return Err(self.channel_failed(error, site));
        }
        // An underrun: the last job ended, and no other was given. After a stop nothing is lost.
        if self.given.len() + self.waiting.len() == 1 && self.state != State::Stopped {
            self.counts.underruns += 1;
        }
        self.report(place, site, |port, job| Event::Complete { port, job });
        // Fewer than it may write, all of which count as written.
        if let Some(bytes) = completion.bytes.filter(|&bytes| Some(bytes) < most_bytes) {
            received(self.places.operands_mut(place), bytes);
        }
        match completion.failed {
            Some(_) => self.counts.failed += 1,
            None => self.counts.completed += 1,
        }
        Ok(place)
    }

    /// Collects the ends that can be seen without a register, so that one call makes the buffers of
    /// all these jobs ready for the CPU. An error comes after them.
    #[inline(never)]
    fn gather(&mut self, place: Place, completion: &Completion, site: Site) {
        self.keep_end(place, completion);
        for _ in 0..self.given.len() {
            let end = match self.driver.poll_again() {
                Ok(Some(end)) => end,
                Ok(None) => return,
                Err(error) => {
                    let JobError { error, cause, .. } = self.channel_failed(error, site);
                    self.late = Some((error, cause));
                    return;
                }
            };
            match self.believed(&end, site) {
                Ok(place) => self.keep_end(place, &end),
                Err(JobError { error, cause, .. }) => {
                    self.late = Some((error, cause));
                    return;
                }
            }
        }
    }

    /// Moves the job at `place`, which has ended, to those that the caller has not taken yet.
    fn keep_end(&mut self, place: Place, end: &Completion) {
        self.leave(place);
        if let Some(job) = self.places.job_mut(place) {
            job.end = *end;
        }
        self.ended.push(&mut self.places, place);
    }

    /// Makes the buffers of all jobs that have ended ready for the CPU, by as few calls as their
    /// memory allows. If that fails, each job's own sync returns the error.
    #[inline]
    pub(super) fn sync_ended(&mut self, site: Site) {
        // A single job's own sync is one call. Behind a port that snoops there are none.
        if self.ended.len() > 1 {
            self.sync_all_ended(site);
        }
    }

    #[inline(never)]
    fn sync_all_ended(&mut self, site: Site) {
        let mut syncs = Syncs::for_cpu(site);
        for place in self.ended.iter(&self.places) {
            for operand in self.places.operands(place) {
                if operand.given().add_written(&mut syncs).is_err() {
                    return;
                }
            }
        }
        if syncs.flush().is_err() {
            return;
        }
        self.places.each_operand(self.ended, |operand| operand.given_mut().was_synced());
    }

    /// Polls the driver once. After a stop it does not wait, and it skips the ends of jobs that
    /// were taken back: there are as many as slots at most.
    #[inline]
    fn look(&mut self, timeout: Duration) -> Result<Option<Completion>> {
        if self.state != State::Stopped {
            return self.driver.poll(timeout);
        }
        for _ in 0..=self.slots {
            match self.driver.poll(Duration::ZERO)? {
                Some(end) if self.place_of(end.slot).is_none() => {}
                ended => return Ok(ended),
            }
        }
        Ok(None)
    }

    /// The place of the job whose end the driver may report for `slot`: the oldest one, if jobs end
    /// in order.
    #[inline]
    fn place_of(&self, slot: usize) -> Option<Place> {
        let is_of = |place: &Place| self.places.job(*place).is_some_and(|job| job.slot == slot);
        if self.in_order && self.state != State::Stopped {
            return self.given.first().filter(is_of);
        }
        self.given.iter(&self.places).find(is_of)
    }
}
