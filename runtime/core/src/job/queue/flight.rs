#![allow(unsafe_code, reason = "doorbells are rung here, for operands that were just handed over")]
//! A job's way through a queue: into its place, to the driver, and out of both. `ends.rs` finds its
//! end, and `burst.rs` has what several jobs share.

use super::Queue;
use super::list::Place;
use super::places::{Job, MAX_WORDS, argument};
use crate::job::prepare::{OperandError, Slices, at_rest, forget_ends, prepare, tell_given};
use crate::job::{Driver, JobError};
use crate::mem::buf::Cleaning;
use crate::mem::{DevSlice, Operand};
use crate::trace::{self, Event, Site};
use crate::types::{Error, Result, barrier};
use core::mem;
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
        cleaning: Cleaning,
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
        let way = (&self.port, self.reach);
        prepare(&self.driver, way, operands, slices, words, cleaning, site)
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
        let cleaning = self.cleaning();
        let most_bytes = match self.ready(operands, &mut slices, words, cleaning, site) {
            Ok(most_bytes) => most_bytes,
            Err((operand, error)) => {
                return Err(JobError { operand, ..JobError::gave_back(error, ()) });
            }
        };
        for (operand, slice) in operands.iter_mut().zip(&slices) {
            operand.give(&self.port, slice.addr, cleaning);
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
        if !self.has_room() {
            self.places.keep_words(place, words);
            self.waiting.push(&mut self.places, place);
            return Ok((place, number));
        }
        match self.launch(place, &slices, Some(words), site) {
            Ok(()) => Ok((place, number)),
            Err(cause) => Err(self.not_launched(place, cause, operands, site)),
        }
    }

    /// Is the next job given to the driver at once?
    #[inline]
    pub(super) const fn has_room(&self) -> bool {
        self.waiting.is_empty() && self.given.len() < self.most_given
    }

    /// Gives the job at `place`, which is in no list, to the driver. `words` are the job's, if they
    /// are not in the place.
    #[inline]
    pub(super) fn launch(
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
        self.owed += usize::from(self.held);
        self.next = if slot + 1 >= self.slots { 0 } else { slot + 1 };
        self.report(place, site, |port, job| Event::Submit { port, job });
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

    /// The number of the job at `place`, and what `each` makes of its operands, in an array of as
    /// many as a job has.
    #[inline]
    pub(super) fn hand_out_array<const N: usize, B>(
        &mut self,
        place: Place,
        each: impl Fn(Operand) -> B,
    ) -> Option<(u64, [B; N])> {
        let taken = self.places.take_array(place, each)?;
        self.leave(place);
        self.came_out(place);
        Some(taken)
    }

    /// Removes the job at `place` from its list, and frees its slot.
    #[inline]
    pub(super) fn leave(&mut self, place: Place) {
        if self.ended.first() == Some(place) {
            self.ended.pop(&self.places);
        } else if self.given.remove(&mut self.places, place) {
            if !self.in_order {
                let slot = self.places.job(place).map_or(usize::MAX, |job| job.slot);
                self.slots_used &= !slot_bit(slot);
            }
        } else {
            self.waiting.remove(&mut self.places, place);
        }
    }

    /// The place of the oldest job that a stopped device has not ended. It counts as taken back.
    pub(super) fn oldest_to_take_back(&mut self) -> Option<Place> {
        if self.state != State::Stopped {
            return None;
        }
        let place = self.given.first().or_else(|| self.waiting.first())?;
        self.counts.cancelled += 1;
        Some(place)
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
        (self.state, self.held, self.owed) = (State::MustStop, false, 0);
        self.driver.stop()?;
        barrier::after_completion();
        self.state = State::Stopped;
        self.forget_unrung();
        if self.port.is_simulated() {
            self.given.iter(&self.places).for_each(|place| at_rest(self.places.operands(place)));
        }
        self.begin_anew_if_empty();
        Ok(())
    }

    /// Reports an event of the job at `place`, which is not made if nothing listens.
    #[inline]
    pub(super) fn report(&self, place: Place, site: Site, event: fn(&'static str, u64) -> Event) {
        if trace::is_heard() {
            trace::happened(event(self.port.name, self.count_of(place)), site);
        }
    }

    /// The number of the job at `place` in events, which count from 1.
    pub(super) fn count_of(&self, place: Place) -> u64 {
        self.places.job(place).map_or(0, |job| job.number.saturating_add(1))
    }

    /// Stops the channel, which cannot go on. The jobs stay inside.
    #[cold]
    pub(super) fn channel_failed(&mut self, cause: Error, site: Site) -> JobError<()> {
        let stopped = if self.state == State::Stopped { Ok(()) } else { self.stop() };
        let job = self.given.first().map_or(self.counts.pushed, |oldest| self.count_of(oldest));
        trace::happened(Event::Stop { port: self.port.name, job }, site);
        JobError::without_buffers(stopped.err().unwrap_or(cause), cause)
    }
}

/// The bit of `slot` in `Queue::slots_used`; 0 for a slot beyond the first 64.
const fn slot_bit(slot: usize) -> u64 {
    if slot < u64::BITS as usize { 1 << slot } else { 0 }
}
