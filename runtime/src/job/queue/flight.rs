#![allow(unsafe_code, reason = "doorbells are rung here, for operands that were just handed over, and come out of their places")]
//! The way of a job through a queue: into its place, and out of it.

use super::Queue;
use crate::{
    job::{
        Completion, Driver, JobError,
        prepare::{OperandError, Slices, ended, forget_ends, prepare, received, tell_given},
    },
    mem::{DevBuf, DevSlice, Operand},
    trace::{self, Event, Site},
    types::{Error, Result, barrier, timeout_us},
};
use core::{array, ptr, time::Duration};
use heapless::Vec;

/// The buffers of one job, on the device's side.
pub(super) type Buffers<'p, T, const OPERANDS: usize> = Vec<DevBuf<'p, T>, OPERANDS>;
/// The same in flight.
pub(super) type Given<'p, T, const OPERANDS: usize> = Vec<Operand<'p, T>, OPERANDS>;
/// A look at a queue: a job that ended, or none, or why there is no such job.
pub(super) type Look<'p, J, T, const OPERANDS: usize> = Result<Option<J>, JobError<Buffers<'p, T, OPERANDS>>>;

pub(super) struct InFlight<'p, const OPERANDS: usize, T> {
    /// Given to the device.
    pub(super) operands: Given<'p, T, OPERANDS>,
    pub(super) slot: usize,
    /// The caller's name for it.
    pub(super) tag: usize,
    /// Which push it was, to take jobs back in their order.
    pub(super) serial: u64,
    /// How many bytes the device may write.
    pub(super) most_bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    AtWork,
    Stopped,
    /// It would not stop; or its driver panicked where it starts or stops, and nobody knows what
    /// the device does. `stop` comes first.
    MustStop,
}

impl<'p, D: Driver, const SLOTS: usize, const OPERANDS: usize, T> Queue<'p, D, SLOTS, OPERANDS, T> {
    /// The next job that ended well, and the place where its operands still are.
    #[inline]
    pub(super) fn ended_well(&mut self, timeout: Duration, site: Site) -> Look<'p, (usize, Completion), T, OPERANDS> {
        match self.ended(timeout, site)? {
            Some((place, Completion { failed: Some(what), status, .. })) => {
                Err(self.failed_alone(place, Error::Fault { device: self.driver.name(), status, what }))
            }
            ended => Ok(ended),
        }
    }

    /// One job's error, with its buffers out of their place.
    #[cold]
    pub(super) fn failed_alone(&mut self, place: usize, error: Error) -> JobError<Buffers<'p, T, OPERANDS>> {
        let mut buffers = Vec::new();
        // There is room for each.
        let tag = self.hand_out(place, |_, _, buf| drop(buffers.push(buf)));
        JobError { error, cause: error, operand: None, buffers: tag.map(|_| buffers) }
    }

    /// The next job's end, and the place where its operands still are.
    #[inline]
    pub(super) fn ended(&mut self, timeout: Duration, site: Site) -> Look<'p, (usize, Completion), T, OPERANDS> {
        if let Err(error) = timeout_us(timeout) {
            return Err(JobError::leaked(error, error));
        }
        if self.len == 0 {
            return Ok(None);
        }
        let completion = match self.look(timeout) {
            Ok(Some(completion)) => completion,
            Ok(None) => return Ok(None),
            Err(error) => return Err(self.channel_failed(error, site)),
        };
        let place = if self.in_order { self.oldest } else { completion.slot };
        let job = self.places.get_mut(place).and_then(Option::as_mut).filter(|job| job.slot == completion.slot);
        let most_bytes = job.as_ref().map(|job| job.most_bytes);
        if let Err(error) = completion.verify(self.driver.name(), most_bytes.is_some(), most_bytes.unwrap_or(0)) {
            return Err(self.channel_failed(error, site));
        }
        barrier::after_completion();
        let Some(InFlight { operands, .. }) = job else { return Ok(None) };
        if self.port.is_simulated()
            && let Err(error) = ended(&self.driver, operands, completion.failed.is_some(), &mut self.wrong)
        {
            return Err(self.channel_failed(error, site));
        }
        // The last one, and no other was given: where that is a stop's doing, nothing is lost.
        if self.len == 1 && self.state != State::Stopped {
            self.counts.ran_dry += 1;
        }
        trace::happened(Event::Complete { port: self.port.name, job: self.counts.pushed }, site);
        if let Some(bytes) = completion.bytes {
            received(operands, bytes);
        }
        match completion.failed {
            Some(_) => self.counts.failed += 1,
            None => self.counts.completed += 1,
        }
        Ok(Some((place, completion)))
    }

    /// One wait of the driver's. After a stop, one look, and the ends of jobs that were taken back
    /// are passed over: there are as many as slots at most.
    #[inline]
    pub(super) fn look(&mut self, timeout: Duration) -> Result<Option<Completion>> {
        if self.state != State::Stopped {
            return self.driver.poll(timeout);
        }
        for _ in 0..=self.slots {
            match self.driver.poll(Duration::ZERO)? {
                Some(end) if !self.places.iter().flatten().any(|job| job.slot == end.slot) => {}
                ended => return Ok(ended),
            }
        }
        Ok(None)
    }

    /// Gives the buffers at `place` to `each`; the job's tag. The device does not have them.
    #[inline]
    pub(super) fn hand_out(&mut self, place: usize, mut each: impl FnMut(usize, usize, DevBuf<'p, T>)) -> Option<usize> {
        let there = self.places.get_mut(place)?;
        let InFlight { operands, tag, .. } = there.as_mut()?;
        let (tag, len) = (*tag, operands.len());
        // SAFETY: so many are there, and the list has none of them from here on: each is read once.
        // Where `each` panics, the others are leaked.
        unsafe {
            operands.set_len(0);
            let first = operands.as_ptr();
            (0..len).for_each(|index| each(tag, index, first.add(index).read().into_dev()));
            // Nothing is left to drop.
            ptr::from_mut(there).write(None);
        }
        self.came_out(place);
        Some(tag)
    }

    /// The values that `each` makes of the operands at `place`, which has as many as a job can
    /// have.
    #[inline]
    pub(super) fn take_out<B>(&mut self, place: usize, each: impl Fn(Operand<'p, T>) -> B) -> Option<[B; OPERANDS]> {
        let there = self.places.get_mut(place)?;
        let operands = &mut there.as_mut()?.operands;
        if operands.len() < OPERANDS {
            return None;
        }
        // SAFETY: as in `hand_out`.
        let taken = unsafe {
            operands.set_len(0);
            let first = operands.as_ptr();
            array::from_fn(|index| each(first.add(index).read()))
        };
        *there = None;
        self.came_out(place);
        Some(taken)
    }

    /// The place of the oldest job that a stopped device has not ended.
    pub(super) fn oldest_to_take_back(&self) -> Option<usize> {
        if self.state != State::Stopped {
            return None;
        }
        let jobs = self.places.iter().enumerate().filter_map(|(place, job)| job.as_ref().map(|job| (job.serial, place)));
        jobs.min().map(|(_, place)| place)
    }

    /// Everything that can be refused, then the caches and the barrier before the doorbell. The
    /// operands are the device's then.
    #[inline]
    pub(super) fn ready(
        &self,
        operands: &mut [Operand<'_, T>],
        slices: &mut Slices<OPERANDS>,
        args: &[u32],
        site: Site,
    ) -> Result<usize, OperandError> {
        if self.state != State::AtWork {
            return Err((None, Error::QueueStopped { in_flight: self.len }));
        }
        if self.is_full() {
            return Err((None, Error::QueueFull { depth: self.depth }));
        }
        let most_bytes = prepare(&self.driver, &self.port, operands, slices, args, site)?;
        barrier::before_doorbell();
        for (operand, slice) in operands.iter_mut().zip(&*slices) {
            operand.give(&self.port, slice.addr);
        }
        Ok(most_bytes)
    }

    /// Moves a job's operands into their place, and rings the doorbell. `ready` succeeded. Where
    /// the device did not take the job and was stopped, the operands are in the list again, and the
    /// error has buffers.
    #[inline]
    pub(super) fn launch(
        &mut self,
        operands: &mut Given<'p, T, OPERANDS>,
        tag: usize,
        most_bytes: usize,
        slices: &[DevSlice],
        args: &[u32],
        site: Site,
    ) -> Result<usize, JobError<()>> {
        let (place, slot) = self.free();
        // `free` found it, empty: the queue was not full.
        let Some(there) = self.places.get_mut(place) else { return Err(JobError::leaked(Error::Busy, Error::Busy)) };
        // From here on the device may have the addresses: the buffers are in their place, also when
        // the driver panics.
        let job = there.insert(InFlight { operands: Vec::new(), slot, tag, serial: self.counts.pushed, most_bytes });
        move_all(operands, &mut job.operands);
        if self.port.is_simulated() {
            let wrong = tell_given(&self.driver, &self.port, &job.operands);
            // Up to here none of the jobs in flight has ended with any. Where the board did
            // not hear of the hand-over, the next end is an error.
            self.wrong = if self.len == 0 || wrong.is_err() { wrong } else { self.wrong };
        }
        self.len += 1;
        self.counts.pushed += 1;
        // A driver that panics leaves the slot in use, and `next_slot` at it.
        self.state = State::MustStop;
        // SAFETY: 1. `ready` ran `check` on these slices and arguments. 2. `slot` is free and below
        // the driver's depth (`free`). 3. The buffers are `DevBuf`s in their place. No view of them
        // exists, and their region keeps them mapped while they are not dropped. They come out only
        // after `poll` told this slot's end, or after `stop`.
        let submitted = unsafe { self.driver.submit(slot, slices, args) };
        self.state = State::AtWork;
        if let Err(cause) = submitted {
            return Err(self.not_launched(place, cause, operands, site));
        }
        self.next_slot = if slot + 1 >= self.slots { 0 } else { slot + 1 };
        trace::happened(Event::Submit { port: self.port.name, job: self.counts.pushed }, site);
        Ok(slot)
    }

    /// The device did not take the job at `place`: it is stopped, or the job stays inside.
    #[cold]
    #[inline(never)]
    fn not_launched(&mut self, place: usize, cause: Error, back: &mut Given<'p, T, OPERANDS>, site: Site) -> JobError<()> {
        let stopped = self.stop();
        trace::happened(Event::Stop { port: self.port.name, job: self.counts.pushed }, site);
        if let Err(error) = stopped {
            return JobError::leaked(error, cause);
        }
        // There is room for each: they were in this list.
        let given_back = |_, _, buf| drop(back.push(Operand::refused(buf)));
        match self.hand_out(place, given_back) {
            Some(_) => {
                self.counts.pushed -= 1;
                JobError::gave_back(cause, ())
            }
            None => JobError::leaked(cause, cause),
        }
    }

    /// A free place and its slot. The queue is not full.
    #[inline]
    pub(super) fn free(&self) -> (usize, usize) {
        if self.in_order {
            let place = self.oldest + self.len;
            return (if place >= SLOTS { place - SLOTS } else { place }, self.next_slot);
        }
        let is_free = |slot: &usize| self.places.get(*slot).is_some_and(Option::is_none);
        let slot = (self.next_slot..self.depth).chain(0..self.next_slot.min(self.depth)).find(is_free).unwrap_or(SLOTS);
        (slot, slot)
    }

    /// The job at `place` came out.
    #[inline]
    pub(super) fn came_out(&mut self, place: usize) {
        self.len -= 1;
        if place == self.oldest {
            self.oldest = if place + 1 >= SLOTS { 0 } else { place + 1 };
        }
        self.begin_anew_if_empty();
    }

    /// A stopped queue that is empty starts from slot 0 (`Driver`, 12).
    #[inline]
    pub(super) fn begin_anew_if_empty(&mut self) {
        if self.state == State::Stopped && self.len == 0 {
            forget_ends(&mut self.driver);
            // Nobody's bytes are looked at before the last of these looks.
            barrier::after_completion();
            (self.state, self.oldest, self.next_slot) = (State::AtWork, 0, 0);
        }
    }

    /// The channel cannot go on: it is stopped, and the jobs stay inside.
    #[cold]
    pub(super) fn channel_failed(&mut self, cause: Error, site: Site) -> JobError<Buffers<'p, T, OPERANDS>> {
        let stopped = if self.state == State::Stopped { Ok(()) } else { self.stop() };
        trace::happened(Event::Stop { port: self.port.name, job: self.counts.pushed }, site);
        JobError::leaked(stopped.err().unwrap_or(cause), cause)
    }
}

/// The buffers of a job, still on the device's side.
#[inline]
pub(super) fn buffers<'p, T, const OPERANDS: usize>(operands: Given<'p, T, OPERANDS>) -> Buffers<'p, T, OPERANDS> {
    operands.into_iter().map(Operand::into_dev).collect()
}

/// Moves what is in one list to another one, which is empty.
#[inline]
fn move_all<T, const N: usize>(from: &mut Vec<T, N>, to: &mut Vec<T, N>) {
    let len = from.len();
    // SAFETY: so many are in `from`, which has none of them from here on; `to` is another list, has
    // room for as many, and none to drop.
    unsafe {
        from.set_len(0);
        ptr::copy_nonoverlapping(from.as_ptr(), to.as_mut_ptr(), len);
        to.set_len(len);
    }
}
