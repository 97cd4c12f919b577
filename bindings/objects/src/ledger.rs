//! The jobs of one driver: those in flight, and those that ended and whose ends were not taken.

use contigo::job::{AnyDriver, MAX_OPERANDS};
use contigo::types::Refused;
use contigo::{Completion, CpuBuf, DevBuf, Driver, Error, JobError, Operand, OperandSpec, Queue};
use core::mem::{self, MaybeUninit};
use core::time::Duration;
use heapless::Vec;
use std::time::Instant;

/// The most jobs of one ledger: as many as a descriptor ring of the fabric takes, with a bit each.
pub const JOBS: usize = 64;

const _: () = assert!(JOBS == u64::BITS as usize, "`used` has a bit for each");

/// The operands of a job on their way to the device.
pub type Operands = Vec<Operand, MAX_OPERANDS>;

/// The binding's data of a job: the objects whose buffers the device has. The default is a ticket
/// without a job. The value stays in its ticket and does not move.
pub trait Job: Default {
    /// Takes buffer number `index` back: the CPU has it, or a device still has it.
    fn put(&mut self, index: usize, buf: Result<CpuBuf, DevBuf>);

    /// Ends a job that was refused, after all of its buffers were put back.
    fn refused(&mut self);
}

/// How a job ended.
#[derive(Clone, Copy, Debug)]
pub enum End {
    /// The device reported the job's end, also of a failed job (`Completion::failed`).
    Reported(Completion),
    /// The device was stopped, by a fault of the channel or because the wait timed out.
    Fault(Error),
    /// The device was stopped for a reason that is not this job's.
    Cancelled,
}

#[derive(Debug)]
struct Ticket<J> {
    /// The job's number; 0: none.
    number: u64,
    end: Option<End>,
    job: J,
}

/// The jobs of one driver. Each has a ticket from its start until its end is taken, so that one
/// job's end is kept while the caller waits for another. No job allocates.
#[derive(Debug)]
pub struct Ledger<J> {
    queue: Queue<AnyDriver>,
    tickets: Tickets<J>,
}

#[derive(Debug)]
struct Tickets<J> {
    tickets: [Ticket<J>; JOBS],
    /// A bit for each ticket in use.
    used: u64,
    /// The tickets of jobs that have ended, in the order of their ends.
    ended: Vec<u8, JOBS>,
}

impl<J: Job> Tickets<J> {
    /// Puts a buffer back that came out of the queue. With `to_cpu` the CPU gets it, if its caches
    /// can be maintained.
    #[inline]
    fn put(&mut self, at: usize, index: usize, buf: DevBuf, to_cpu: bool) {
        match self.tickets.get_mut(at) {
            Some(ticket) if to_cpu => {
                ticket.job.put(index, buf.into_cpu().map_err(Refused::into_returned))
            }
            Some(ticket) => ticket.job.put(index, Err(buf)),
            // Every job in the queue has its ticket, so this does not happen. Leak, never free.
            None => mem::forget(buf),
        }
    }

    #[inline]
    fn end(&mut self, at: usize, end: End) {
        if let Some(ticket) = self.tickets.get_mut(at) {
            ticket.end = Some(end);
            // `ended` has room for every ticket.
            #[allow(clippy::cast_possible_truncation, reason = "below JOBS")]
            let _ = self.ended.push(at as u8);
        }
    }

    /// As [`Ledger::take`].
    #[inline]
    fn take<R>(&mut self, at: usize, act: impl FnOnce(&mut J, End) -> R) -> Option<R> {
        let ticket = self.tickets.get_mut(at)?;
        let result = act(&mut ticket.job, ticket.end?);
        ticket.end = None;
        ticket.number = 0;
        self.used &= !(1 << at);
        // Usually it is the only one.
        if self.ended.last().is_some_and(|ended| usize::from(*ended) == at) {
            let _ = self.ended.pop();
        } else if let Some(place) = self.ended.iter().position(|ended| usize::from(*ended) == at) {
            self.ended.remove(place);
        }
        Some(result)
    }

    /// Refuses the job of ticket `at`: its operands go back.
    #[cold]
    #[inline(never)]
    fn refuse(&mut self, at: usize, operands: &mut Operands) {
        let Some(ticket) = self.tickets.get_mut(at) else { return };
        operands
            .drain(..)
            .enumerate()
            .for_each(|(index, operand)| ticket.job.put(index, operand.into_buf()));
        ticket.job.refused();
        ticket.number = 0;
        self.used &= !(1 << at);
    }
}

/// The operands of a job on their way into the queue.
struct Submission<'t, J: Job> {
    tickets: &'t mut Tickets<J>,
    at: usize,
    operands: &'t mut Operands,
}

impl<J: Job> Drop for Submission<'_, J> {
    /// Operands that are still here when the driver's check panics go back. Once the doorbell may
    /// have been rung, they are in the queue and not here.
    fn drop(&mut self) {
        if !self.operands.is_empty() {
            self.tickets.refuse(self.at, self.operands);
        }
    }
}

impl<J: Job> Ledger<J> {
    /// Makes the ledger in its place: it has some 20 KiB, so it never is on a stack.
    #[allow(unsafe_code, reason = "see above")]
    pub fn new_in(place: &mut MaybeUninit<Self>, queue: Queue<AnyDriver>) -> &mut Self {
        let this = place.as_mut_ptr();
        // SAFETY: every field is written once, inside `place`, which is borrowed exclusively.
        unsafe {
            (&raw mut (*this).queue).write(queue);
            let tickets = (&raw mut (*this).tickets.tickets).cast::<Ticket<J>>();
            (0..JOBS).for_each(|at| {
                tickets.add(at).write(Ticket { number: 0, end: None, job: J::default() })
            });
            (&raw mut (*this).tickets.used).write(0);
            (&raw mut (*this).tickets.ended).write(Vec::new());
            place.assume_init_mut()
        }
    }

    /// Makes the ledger on the heap, for a binding that has one.
    #[must_use]
    pub fn boxed(queue: Queue<AnyDriver>) -> Box<Self> {
        let mut place = Box::new_uninit();
        Self::new_in(&mut place, queue);
        #[allow(unsafe_code, reason = "see below")]
        // SAFETY: `new_in` wrote it.
        unsafe {
            place.assume_init()
        }
    }

    /// The queue of the jobs in flight, to read its driver, its counts and its interrupt. After a
    /// stop, `Queue::is_stopped` is true only if the device did not stop.
    #[must_use]
    pub const fn queue(&self) -> &Queue<AnyDriver> {
        &self.queue
    }

    /// The jobs whose ends were not taken.
    pub fn jobs(&self) -> impl Iterator<Item = &J> {
        self.tickets.tickets.iter().filter(|ticket| ticket.number != 0).map(|ticket| &ticket.job)
    }

    /// The number of tickets in use: jobs in flight, and jobs whose ends were not taken.
    #[must_use]
    pub const fn used(&self) -> u32 {
        self.tickets.used.count_ones()
    }

    /// The number of jobs that have ended, and whose ends were not taken.
    #[must_use]
    pub fn ended(&self) -> usize {
        self.tickets.ended.len()
    }

    /// Takes a free ticket for job `number`, which is not 0. Returns it, the binding's data to be
    /// filled, and the driver's operands. The caller must call [`submit`](Self::submit) or
    /// [`refuse`](Self::refuse) for it next.
    ///
    /// # Errors
    /// [`Error::QueueFull`].
    #[inline]
    pub fn open(&mut self, number: u64) -> Result<(usize, &mut J, &[OperandSpec]), Error> {
        let Self { queue, tickets: Tickets { tickets, used, .. } } = self;
        let at = (!*used).trailing_zeros() as usize;
        let ticket = tickets.get_mut(at).ok_or(Error::QueueFull { depth: JOBS })?;
        *used |= 1 << at;
        ticket.number = number;
        Ok((at, &mut ticket.job, queue.driver().operands()))
    }

    /// Refuses the job of ticket `at` before its start: the operands that it has so far go back.
    pub fn refuse(&mut self, at: usize, operands: &mut Operands) {
        self.tickets.refuse(at, operands);
    }

    /// Submits the job of ticket `at` to the device. If `more` follow at once, it rings no
    /// doorbell: the next job without `more` rings it, or the next look. If the device does not
    /// take a burst then, its jobs have ended, by [`End::Fault`].
    ///
    /// # Errors
    /// As `Queue::submit_list`. If the error has buffers, the operands went back, and the ticket is
    /// free; if the device refused the job, it was stopped, and the other jobs ended as cancelled.
    /// If the error has none, the device did not stop, and keeps this job and the others.
    #[inline]
    pub fn submit(
        &mut self,
        at: usize,
        operands: &mut Operands,
        args: &[u32],
        more: bool,
    ) -> Result<(), JobError<()>> {
        if more {
            self.queue.hold_doorbell();
        }
        let submission = Submission { tickets: &mut self.tickets, at, operands };
        match self.queue.submit_list(submission.operands, args, at) {
            Ok(_) => {
                // The queue has the operands now, and none is left to drop.
                mem::forget(submission);
                if !more && let Err(failed) = self.queue.ring_doorbell() {
                    self.drain(|_, _| End::Fault(failed.cause));
                }
                Ok(())
            }
            Err(refused) => {
                if refused.buffers.is_some() {
                    submission.tickets.refuse(at, submission.operands);
                    drop(submission);
                    self.drain(|_, _| End::Cancelled);
                }
                Err(refused)
            }
        }
    }

    /// Polls for the end of a job, for at most `timeout`. `true`: one has ended, and the CPU has
    /// its buffers if `to_cpu` is true of its ticket. If the device was stopped, it still has them.
    ///
    /// # Errors
    /// The channel failed and was stopped: all jobs have ended, and those that had not ended before
    /// ended by [`End::Fault`]. If the device did not stop (`Queue::is_stopped`), only the jobs
    /// that had ended before have ended.
    #[inline]
    pub fn look(
        &mut self,
        timeout: Duration,
        to_cpu: impl Fn(usize) -> bool,
    ) -> Result<bool, JobError<()>> {
        let Self { queue, tickets } = self;
        let was_stopped = queue.is_stopped();
        match queue.wait_each(timeout, |at, index, buf| tickets.put(at, index, buf, to_cpu(at))) {
            Ok(Some((at, completion))) => {
                tickets.end(at, End::Reported(completion));
                if was_stopped {
                    return Ok(true);
                }
                // A fault that was found beside this end stopped the device.
                match self.drain(|_, cause| cause.map_or(End::Cancelled, End::Fault)) {
                    Some(failed) if self.queue.is_stopped() => Err(failed),
                    _ => Ok(true),
                }
            }
            Ok(None) => Ok(false),
            Err(failed) => {
                self.drain(|_, _| End::Fault(failed.cause));
                Err(failed)
            }
        }
    }

    /// Waits for the end of the job of ticket `at`, for at most `timeout`; `false`: it has not
    /// ended. With `to_cpu`, the CPU has its buffers after the end.
    ///
    /// # Errors
    /// The device did not stop. Jobs that had ended before have ended: the next call returns that.
    #[inline]
    pub fn wait(
        &mut self,
        at: usize,
        timeout: Duration,
        to_cpu: bool,
    ) -> Result<bool, JobError<()>> {
        // With one job in flight, no other job can end before the timeout.
        let started = (self.queue.len() > 1 && timeout != Duration::ZERO).then(Instant::now);
        let mut left = timeout;
        for _ in 0..=JOBS {
            if self.has_ended(at) {
                return Ok(true);
            }
            match self.look(left, |ended| to_cpu && ended == at) {
                Ok(true) => {}
                // Also if this job has ended: the caller gets the error once.
                Err(failed) if self.queue.is_stopped() => return Err(failed),
                Ok(false) | Err(_) => return Ok(self.has_ended(at)),
            }
            if let Some(started) = started {
                left = timeout.saturating_sub(started.elapsed());
            }
        }
        Ok(false)
    }

    /// The ticket of the first job that ended, or else of the next one to end; the CPU has the
    /// buffers of the latter. `None`: no job ended in that time.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    #[inline]
    pub fn first_ended(&mut self, timeout: Duration) -> Result<Option<usize>, JobError<()>> {
        if self.tickets.ended.is_empty()
            && let Err(failed) = self.look(timeout, |_| true)
            && self.queue.is_stopped()
        {
            return Err(failed);
        }
        Ok(self.tickets.ended.first().map(|at| usize::from(*at)))
    }

    /// Stops the device, which ends every job. The job of ticket `waited` ends with `cause`, the
    /// others as cancelled. Jobs that had ended before keep the device's report.
    ///
    /// # Errors
    /// As `Queue::stop`: the device did not stop, and keeps its jobs.
    pub fn stop(&mut self, waited: Option<(usize, Error)>) -> contigo::Result<()> {
        self.queue.stop()?;
        self.drain(|at, _| {
            waited
                .filter(|(waited, _)| *waited == at)
                .map_or(End::Cancelled, |(_, cause)| End::Fault(cause))
        });
        Ok(())
    }

    /// Takes the end of the job of ticket `at`, if it has ended. `act` must leave no job in the
    /// ticket. The ticket is free afterwards, unless `act` panics.
    #[inline]
    pub fn take<R>(&mut self, at: usize, act: impl FnOnce(&mut J, End) -> R) -> Option<R> {
        self.tickets.take(at, act)
    }

    /// Takes the end of the job that ended first.
    pub fn take_first<R>(&mut self, act: impl FnOnce(&mut J, End) -> R) -> Option<R> {
        self.take(usize::from(*self.tickets.ended.first()?), act)
    }

    /// The number of the job of ticket `at`; 0: it has no job.
    #[must_use]
    pub fn number(&self, at: usize) -> u64 {
        self.tickets.tickets.get(at).map_or(0, |ticket| ticket.number)
    }

    fn has_ended(&self, at: usize) -> bool {
        self.tickets.tickets.get(at).is_some_and(|ticket| ticket.end.is_some())
    }

    /// Takes every job out of a stopped queue: those that had ended before, and the others. If the
    /// device did not stop, only those that had ended. `why` gets a job's ticket, and the first
    /// fault that was found beside the ends, which is returned, too.
    fn drain(&mut self, why: impl Fn(usize, Option<Error>) -> End) -> Option<JobError<()>> {
        let Self { queue, tickets } = self;
        if !queue.is_stopped() {
            return None;
        }
        let mut fault = None;
        // One more than jobs: a fault that was found before the stop comes here.
        for _ in 0..=queue.len() {
            match queue
                .wait_each(Duration::ZERO, |at, index, buf| tickets.put(at, index, buf, false))
            {
                Ok(Some((at, completion))) => tickets.end(at, End::Reported(completion)),
                Ok(None) => break,
                // A device that does not stop is asked no more than once again.
                Err(failed) if fault.is_some() && failed.error != failed.cause => break,
                Err(failed) => _ = fault.get_or_insert(failed),
            }
        }
        let cause = fault.as_ref().map(|failed| failed.cause);
        for _ in 0..JOBS {
            match queue.take_back_each(|at, index, buf| tickets.put(at, index, buf, false)) {
                Some(at) => tickets.end(at, why(at, cause)),
                None => break,
            }
        }
        fault
    }
}
