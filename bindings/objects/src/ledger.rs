//! The jobs of one driver: those in flight, and those that ended and whose end was not taken.

use contigo::{
    Completion, CpuBuf, DevBuf, Driver, Error, JobError, Operand, OperandSpec, Queue,
    job::{AnyDriver, MAX_OPERANDS},
    types::Refused,
};
use core::{
    mem::{self, MaybeUninit},
    time::Duration,
};
use heapless::Vec;
use std::time::Instant;

/// Jobs of one ledger at once: as many as a descriptor ring of the fabric takes, and a bit each.
pub const JOBS: usize = 64;

const _: () = assert!(JOBS == u64::BITS as usize, "`used` has a bit for each");

/// The operands of a job on their way to the device.
pub type Operands = Vec<Operand, MAX_OPERANDS>;

/// What a binding keeps of a job: the objects whose buffers the device has. Its default is that of
/// no job. It stays in its ticket, so that no job moves it.
pub trait Job: Default {
    /// Buffer number `index` comes back: the CPU's, or still a device's.
    fn put(&mut self, index: usize, buf: Result<CpuBuf, DevBuf>);

    /// All buffers of a job that was refused came back: it is no job any more.
    fn refused(&mut self);
}

/// How a job ended.
#[derive(Clone, Copy, Debug)]
pub enum End {
    /// The device reported its end, of a failed one too (`Completion::failed`).
    Reported(Completion),
    /// The device was stopped: by a fault of the channel, or because the time of the wait was over.
    Fault(Error),
    /// The device was stopped for another reason than this job.
    Cancelled,
}

#[derive(Debug)]
struct Ticket<J> {
    /// Which job; 0: none.
    number: u64,
    end: Option<End>,
    job: J,
}

/// The jobs of one driver, each with a ticket from its start until its end is taken. One job's end
/// is kept while another one is waited for. No job allocates.
#[derive(Debug)]
pub struct Ledger<J> {
    queue: Queue<AnyDriver>,
    tickets: Tickets<J>,
}

#[derive(Debug)]
struct Tickets<J> {
    tickets: [Ticket<J>; JOBS],
    /// A bit for each that is in use.
    used: u64,
    /// Those that have ended, in that order.
    ended: Vec<u8, JOBS>,
}

impl<J: Job> Tickets<J> {
    /// A buffer came out of the queue. With `to_cpu` it is the CPU's, where its caches could be
    /// maintained.
    #[inline]
    fn put(&mut self, at: usize, index: usize, buf: DevBuf, to_cpu: bool) {
        match self.tickets.get_mut(at) {
            Some(ticket) if to_cpu => {
                ticket.job.put(index, buf.into_cpu().map_err(Refused::into_returned))
            }
            Some(ticket) => ticket.job.put(index, Err(buf)),
            // Every job in the queue has its ticket. Leak, never free.
            None => mem::forget(buf),
        }
    }

    #[inline]
    fn end(&mut self, at: usize, end: End) {
        if let Some(ticket) = self.tickets.get_mut(at) {
            ticket.end = Some(end);
            // There is room for each.
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
        // Mostly it is the only one.
        if self.ended.last().is_some_and(|ended| usize::from(*ended) == at) {
            let _ = self.ended.pop();
        } else if let Some(place) = self.ended.iter().position(|ended| usize::from(*ended) == at) {
            self.ended.remove(place);
        }
        Some(result)
    }

    /// The job of ticket `at` was refused: its operands go back.
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
    /// Those that are still here when the driver's check panics go back. Once the doorbell may have
    /// been rung they are in the queue, and none is here.
    fn drop(&mut self) {
        if !self.operands.is_empty() {
            self.tickets.refuse(self.at, self.operands);
        }
    }
}

impl<J: Job> Ledger<J> {
    /// Makes it where it will be: it has some 20 KiB, and no stack holds it.
    #[allow(unsafe_code, reason = "see above")]
    pub fn new_in(place: &mut MaybeUninit<Self>, queue: Queue<AnyDriver>) -> &mut Self {
        let this = place.as_mut_ptr();
        // SAFETY: every field is written once, inside `place`, which is borrowed alone.
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

    /// The same on the heap, for a binding that has one.
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

    /// The queue of those in flight, to look at: its driver, its counts, its interrupt. It is
    /// stopped after a stop only where the device would not stop.
    #[must_use]
    pub const fn queue(&self) -> &Queue<AnyDriver> {
        &self.queue
    }

    /// Those whose end was not taken.
    pub fn jobs(&self) -> impl Iterator<Item = &J> {
        self.tickets.tickets.iter().filter(|ticket| ticket.number != 0).map(|ticket| &ticket.job)
    }

    /// How many jobs have a ticket: those in flight, and those whose end was not taken.
    #[must_use]
    pub const fn used(&self) -> u32 {
        self.tickets.used.count_ones()
    }

    /// How many jobs have ended, and their end was not taken.
    #[must_use]
    pub fn ended(&self) -> usize {
        self.tickets.ended.len()
    }

    /// A free ticket, for job number `number`, which is not 0; what the binding keeps of the job,
    /// to be filled; and the driver's operands. [`submit`](Self::submit) or
    /// [`refuse`](Self::refuse) is called for it next.
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

    /// The job of ticket `at` is not started: its operands, as many as there are already, go back.
    pub fn refuse(&mut self, at: usize, operands: &mut Operands) {
        self.tickets.refuse(at, operands);
    }

    /// Gives the device the job of ticket `at`.
    ///
    /// # Errors
    /// As `Queue::submit_list`. Where the error has buffers, the operands went back, and the ticket
    /// is free; where the device itself refused the job, it was stopped, and the others ended as
    /// cancelled. Where it has none, the device would not stop, and has this job with the others.
    #[inline]
    pub fn submit(
        &mut self,
        at: usize,
        operands: &mut Operands,
        args: &[u32],
    ) -> Result<(), JobError<()>> {
        let submission = Submission { tickets: &mut self.tickets, at, operands };
        match self.queue.submit_list(submission.operands, args, at) {
            Ok(_) => {
                // They are in the queue, and none is left to drop.
                mem::forget(submission);
                Ok(())
            }
            Err(refused) => {
                if refused.buffers.is_some() {
                    submission.tickets.refuse(at, submission.operands);
                    drop(submission);
                    self.drain(|_| End::Cancelled);
                }
                Err(refused)
            }
        }
    }

    /// Looks for the end of a job, at most for `timeout`. `true`: one has ended, and its buffers
    /// are the CPU's where `to_cpu` is true of its ticket. Those of a device that was stopped are
    /// still a device's.
    ///
    /// # Errors
    /// The channel failed, and was stopped: all jobs have ended, by [`End::Fault`] those that had
    /// not before. Where it would not stop (`Queue::is_stopped`), those that had ended before
    /// have.
    #[inline]
    pub fn look(
        &mut self,
        timeout: Duration,
        to_cpu: impl Fn(usize) -> bool,
    ) -> Result<bool, JobError<()>> {
        let Self { queue, tickets } = self;
        match queue.wait_each(timeout, |at, index, buf| tickets.put(at, index, buf, to_cpu(at))) {
            Ok(Some((at, completion))) => {
                tickets.end(at, End::Reported(completion));
                Ok(true)
            }
            Ok(None) => Ok(false),
            Err(failed) => {
                self.drain(|_| End::Fault(failed.cause));
                Err(failed)
            }
        }
    }

    /// Waits for the end of the job of ticket `at`, at most for `timeout`; `false`: it has not
    /// ended. With `to_cpu` its buffers are the CPU's then.
    ///
    /// # Errors
    /// The device would not stop. The jobs that had ended before have: the next call answers that.
    #[inline]
    pub fn wait(
        &mut self,
        at: usize,
        timeout: Duration,
        to_cpu: bool,
    ) -> Result<bool, JobError<()>> {
        // With one job in flight no other's end can come before the time is over.
        let started = (self.queue.len() > 1 && timeout != Duration::ZERO).then(Instant::now);
        let mut left = timeout;
        for _ in 0..=JOBS {
            if self.has_ended(at) {
                return Ok(true);
            }
            match self.look(left, |ended| to_cpu && ended == at) {
                Ok(true) => {}
                // Also where this one has ended: the caller hears of it once.
                Err(failed) if self.queue.is_stopped() => return Err(failed),
                Ok(false) | Err(_) => return Ok(self.has_ended(at)),
            }
            if let Some(started) = started {
                left = timeout.saturating_sub(started.elapsed());
            }
        }
        Ok(false)
    }

    /// The ticket of the first job that ended, or of the next one to end, whose buffers are the
    /// CPU's then. `None`: none has in that time.
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

    /// Stops the device, which ends every job. That of ticket `waited` ends with `cause`, the
    /// others as cancelled; and those that had ended before as the device reports.
    ///
    /// # Errors
    /// As `Queue::stop`: the device would not stop, and keeps its jobs.
    pub fn stop(&mut self, waited: Option<(usize, Error)>) -> contigo::Result<()> {
        self.queue.stop()?;
        self.drain(|at| {
            waited
                .filter(|(waited, _)| *waited == at)
                .map_or(End::Cancelled, |(_, cause)| End::Fault(cause))
        });
        Ok(())
    }

    /// Takes the end of the job of ticket `at`, where it has ended. `act` leaves no job in the
    /// ticket, which is free then: not where `act` panics.
    #[inline]
    pub fn take<R>(&mut self, at: usize, act: impl FnOnce(&mut J, End) -> R) -> Option<R> {
        self.tickets.take(at, act)
    }

    /// The same of the job that ended first.
    pub fn take_first<R>(&mut self, act: impl FnOnce(&mut J, End) -> R) -> Option<R> {
        self.take(usize::from(*self.tickets.ended.first()?), act)
    }

    /// The number of ticket `at`'s job; 0: it has none.
    #[must_use]
    pub fn number(&self, at: usize) -> u64 {
        self.tickets.tickets.get(at).map_or(0, |ticket| ticket.number)
    }

    fn has_ended(&self, at: usize) -> bool {
        self.tickets.tickets.get(at).is_some_and(|ticket| ticket.end.is_some())
    }

    /// Takes every job out of a stopped queue: those that had ended before, and the others. Of a
    /// device that would not stop, those that had ended.
    fn drain(&mut self, why: impl Fn(usize) -> End) {
        let Self { queue, tickets } = self;
        if !queue.is_stopped() {
            return;
        }
        for _ in 0..JOBS {
            match queue
                .wait_each(Duration::ZERO, |at, index, buf| tickets.put(at, index, buf, false))
            {
                Ok(Some((at, completion))) => tickets.end(at, End::Reported(completion)),
                // A fault that comes now leaves the rest to be taken back.
                Ok(None) | Err(_) => break,
            }
        }
        for _ in 0..JOBS {
            match queue.take_back_each(|at, index, buf| tickets.put(at, index, buf, false)) {
                Some(at) => tickets.end(at, why(at)),
                None => break,
            }
        }
    }
}
