#![allow(unsafe_code, reason = "doorbells are rung here, for operands that were just handed over")]
//! A job's way through a queue: into its place, to the driver, and out again.

use super::Queue;
use super::list::Place;
use super::places::{Job, MAX_WORDS, argument};
use crate::job::prepare::{
    OperandError, Slices, at_rest, ended, forget_ends, prepare, received, tell_given,
};
use crate::job::{Completion, Driver, JobError};
use crate::mem::{DevSlice, Operand};
use crate::trace::{self, Event, Site};
use crate::types::{Error, Result, barrier, timeout_us};
use core::mem;
use core::time::Duration;
use heapless::Vec;

/// Whether a queue's device can be given jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    AtWork,
    Stopped,
    /// The device would not stop, or its driver panicked while it started or stopped the device,
    /// whose state is unknown then. `stop` comes first.
    MustStop,
}

impl<D: Driver> Queue<D> {
    /// Does every check that can refuse a job, then the cache maintenance.
    #[inline]
    fn ready<const N: usize>(
        &self,
        operands: &[Operand],
        slices: &mut Slices<N>,
        words: &[u32],
        site: Site,
    ) -> Result<usize, OperandError> {
        if self.state != State::AtWork {
            return Err((None, Error::QueueStopped { in_flight: self.len() }));
        }
        if self.is_full() {
            return Err((None, Error::QueueFull { depth: self.capacity() }));
        }
        let each = self.places.operands_each();
        if operands.len() != each {
            return Err((None, argument("the count of operands", operands.len(), each, each)));
        }
        if words.len() > MAX_WORDS {
            return Err((None, argument("the count of argument words", words.len(), 0, MAX_WORDS)));
        }
        prepare(&self.driver, &self.port, self.addr_bits, operands, slices, words, site)
    }

    /// Moves a job's operands into a place, and gives the job to the driver, or lets it wait if the
    /// driver has as many as it takes. If the job is refused, or the device did not take it and was
    /// stopped, the operands are in the list again, and the error has buffers.
    #[inline]
    pub(super) fn enter<const N: usize>(
        &mut self,
        operands: &mut Vec<Operand, N>,
        words: &[u32],
        tag: usize,
        site: Site,
    ) -> Result<(Place, u64), JobError<()>> {
        let mut slices = Slices::<N>::new();
        let most_bytes = match self.ready(operands, &mut slices, words, site) {
            Ok(most_bytes) => most_bytes,
            Err((operand, error)) => {
                return Err(JobError { operand, ..JobError::gave_back(error, ()) });
            }
        };
        for (operand, slice) in operands.iter_mut().zip(&slices) {
            operand.give(&self.port, slice.addr);
        }
        if mem::take(&mut self.forget) {
            forget_ends(&mut self.driver);
        }
        let number = self.counts.pushed;
        let Some(place) = self.free.pop(&self.places) else {
            return Err(JobError::gave_back(Error::Busy, ()));
        };
        // From here on the operands are in their place, even if the driver panics. The place was
        // free, and `ready` counted the operands.
        if !self.places.put(place, Job::new(number, tag, most_bytes), operands) {
            self.free.push(&mut self.places, place);
            return Err(JobError::gave_back(Error::Busy, ()));
        }
        self.counts.pushed += 1;
        // Jobs that wait already were here first.
        if !self.waiting.is_empty() || self.given.len() >= self.most_given {
            self.places.keep_words(place, words);
            self.waiting.push(&mut self.places, place);
            return Ok((place, number));
        }
        match self.launch(place, &slices, Some(words), site) {
            Ok(()) => Ok((place, number)),
            Err(cause) => Err(self.not_launched(place, cause, operands, site)),
        }
    }

    /// Gives the job at `place`, which is in no list, to the driver. `words` are the job's, if they
    /// are not in the place.
    #[inline]
    fn launch(
        &mut self,
        place: Place,
        slices: &[DevSlice],
        words: Option<&[u32]>,
        site: Site,
    ) -> Result<()> {
        let slot = self.next_slot();
        if self.port.is_simulated() {
            let wrong = tell_given(&self.driver, &self.port, self.places.operands(place));
            // With other jobs in flight the old count stays: none of them has ended with a wrong
            // access. If the board did not hear of the hand-over, the next end is an error.
            self.wrong = if self.given.is_empty() || wrong.is_err() { wrong } else { self.wrong };
        }
        if let Some(job) = self.places.job_mut(place) {
            job.slot = slot;
        }
        self.given.push(&mut self.places, place);
        if !self.in_order {
            self.slots_used |= slot_bit(slot);
        }
        let words = words.unwrap_or_else(|| self.places.words(place));
        // If the driver panics, the slot stays in use, and `next` stays at it.
        self.state = State::MustStop;
        barrier::before_doorbell();
        // SAFETY: 1. `ready` ran `check` on these slices and words. Those of a job that waited are
        // made again from operands, and copied from words, that have not changed (`feed`). 2.
        // `slot` is free and below the driver's depth, and follows the one before (`next_slot`). 3.
        // The operands are in their place, which does not drop them. No view of them exists, and
        // they keep their memory mapped. They come out only after `poll` reported this slot's end,
        // or after `stop`.
        let submitted = unsafe {
            if self.held {
                self.driver.submit_more(slot, slices, words)
            } else {
                self.driver.submit(slot, slices, words)
            }
        };
        self.state = State::AtWork;
        submitted?;
        self.owed = self.held;
        self.next = if slot + 1 >= self.slots { 0 } else { slot + 1 };
        trace::happened(Event::Submit { port: self.port.name, job: self.count_of(place) }, site);
        Ok(())
    }

    /// Stops a device that did not take the job at `place`. If that fails, the job stays inside.
    #[cold]
    #[inline(never)]
    fn not_launched<const N: usize>(
        &mut self,
        place: Place,
        cause: Error,
        back: &mut Vec<Operand, N>,
        site: Site,
    ) -> JobError<()> {
        let failed = self.channel_failed(cause, site);
        if self.state == State::MustStop {
            return failed;
        }
        // There is room for each: they were in this list.
        self.hand_out(place, |_, operand| drop(back.push(Operand::refused(operand.into_dev()))));
        self.counts.pushed -= 1;
        JobError::gave_back(cause, ())
    }

    /// Rings the doorbell that is owed, and ends the burst.
    #[inline(never)]
    pub(super) fn ring(&mut self, site: Site) -> Result<(), JobError<()>> {
        if self.state == State::MustStop {
            let error = Error::QueueStopped { in_flight: self.len() };
            return Err(JobError::leaked(error, error));
        }
        self.held = false;
        if !mem::take(&mut self.owed) {
            return Ok(());
        }
        // As in `launch`.
        self.state = State::MustStop;
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
            match operand.check(index, &self.port, self.addr_bits) {
                Ok(slice) => _ = slices.push(slice),
                Err(error) => {
                    self.given.push(&mut self.places, place);
                    return Err(error);
                }
            }
        }
        self.launch(place, &slices, None, site)
    }

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
            return Err(JobError::leaked(error, error));
        }
        if self.held && self.state == State::AtWork {
            self.ring(site)?;
        }
        self.feed(site);
        if self.late.is_some()
            && let Some((error, cause)) = self.late.take()
        {
            return Err(JobError::leaked(error, cause));
        }
        if self.given.is_empty() {
            return Ok(None);
        }
        *completion = match self.look(timeout) {
            Ok(Some(completion)) => completion,
            Ok(None) => return Ok(None),
            Err(error) => return Err(self.channel_failed(error, site)),
        };
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
        if self.len() == 1 && self.state != State::Stopped {
            self.counts.underruns += 1;
        }
        trace::happened(Event::Complete { port: self.port.name, job: self.count_of(place) }, site);
        if let Some(bytes) = completion.bytes {
            received(self.places.operands_mut(place), bytes);
        }
        match completion.failed {
            Some(_) => self.counts.failed += 1,
            None => self.counts.completed += 1,
        }
        Ok(Some(place))
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

    /// The slot of the next job. The driver has fewer jobs than `most_given`.
    const fn next_slot(&self) -> usize {
        if self.in_order { self.next } else { self.slots_used.trailing_ones() as usize }
    }

    /// Gives each operand at `place`, which the device does not have, to `each` with its index. If
    /// `each` panics, the place is lost with what is left in it.
    #[inline]
    pub(super) fn hand_out(&mut self, place: Place, each: impl FnMut(usize, Operand)) {
        self.leave(place);
        self.places.take(place, each);
        self.came_out(place);
    }

    /// What `each` makes of the operands at `place`, in an array of as many as a job has.
    #[inline]
    pub(super) fn hand_out_array<const N: usize, B>(
        &mut self,
        place: Place,
        each: impl Fn(Operand) -> B,
    ) -> Option<[B; N]> {
        let buffers = self.places.take_array(place, each)?;
        self.leave(place);
        self.came_out(place);
        Some(buffers)
    }

    /// Removes the job at `place` from its list, and frees its slot.
    #[inline]
    fn leave(&mut self, place: Place) {
        if self.given.remove(&mut self.places, place) {
            if !self.in_order {
                let slot = self.places.job(place).map_or(usize::MAX, |job| job.slot);
                self.slots_used &= !slot_bit(slot);
            }
        } else {
            self.waiting.remove(&mut self.places, place);
        }
    }

    /// Puts `place`, which is empty, into the list of free places.
    #[inline]
    fn came_out(&mut self, place: Place) {
        self.free.push(&mut self.places, place);
        self.begin_anew_if_empty();
    }

    /// Makes a stopped queue that is empty start from slot 0 (`Driver`, 12).
    #[inline]
    pub(super) fn begin_anew_if_empty(&mut self) {
        if self.state == State::Stopped && self.is_empty() {
            (self.state, self.next, self.slots_used, self.late, self.forget) =
                (State::AtWork, 0, 0, None, true);
        }
    }

    /// Stops the device, whatever it is doing. Jobs that had ended still come out by
    /// [`wait`](Self::wait); the others, also those that the device was never given, by
    /// [`take_back`](Self::take_back).
    ///
    /// # Errors
    /// [`Error::WillNotStop`]: the jobs stay inside. Reset the device from outside, and call `stop`
    /// again.
    pub fn stop(&mut self) -> Result<()> {
        self.counts.stopped += 1;
        (self.state, self.held, self.owed) = (State::MustStop, false, false);
        self.driver.stop()?;
        barrier::after_completion();
        self.state = State::Stopped;
        if self.port.is_simulated() {
            self.given.iter(&self.places).for_each(|place| at_rest(self.places.operands(place)));
        }
        self.begin_anew_if_empty();
        Ok(())
    }

    /// The number of the job at `place` in events, which count from 1.
    fn count_of(&self, place: Place) -> u64 {
        self.places.job(place).map_or(0, |job| job.number.saturating_add(1))
    }

    /// Stops the channel, which cannot go on. The jobs stay inside.
    #[cold]
    pub(super) fn channel_failed(&mut self, cause: Error, site: Site) -> JobError<()> {
        let stopped = if self.state == State::Stopped { Ok(()) } else { self.stop() };
        let job = self.given.first().map_or(self.counts.pushed, |oldest| self.count_of(oldest));
        trace::happened(Event::Stop { port: self.port.name, job }, site);
        JobError::leaked(stopped.err().unwrap_or(cause), cause)
    }
}

/// The bit of `slot` in `Queue::slots_used`; 0 for a slot beyond the first 64.
const fn slot_bit(slot: usize) -> u64 {
    if slot < u64::BITS as usize { 1 << slot } else { 0 }
}
