#![allow(unsafe_code, reason = "an engine is made where it will be; whose guard stops the device is the C program's promise")]
//! One engine: a queue of jobs over any driver, and what it stands on.

use super::{
    MAX_OPERANDS, Part, Parts,
    tickets::{Ended, Tickets},
};
use crate::{
    fault::{Fault, Misuse},
    handle::Kind,
    limits::{ENGINES as COUNT, JOBS},
    object::{
        buf::{BUFS, Buf},
        device::UsedDevice,
        gpu::ModuleLease,
        region::Region,
    },
    table::{Claimed, JobHold, Lease, Object, Table},
};
use contigo::{
    Direction, Driver, Error, JobError, Operand, Queue,
    job::{AnyDriver, QueueCounts},
};
use core::{
    ffi::c_int,
    mem::{self, MaybeUninit},
    sync::atomic::{AtomicU64, Ordering},
};
use heapless::Vec;
use std::time::{Duration, Instant};

/// Engines.
pub(crate) static ENGINES: Table<Engine, COUNT> = Table::new();

/// How many jobs were started on each entry of `ENGINES`, in all of its lives: no handle names two.
static STARTED: [AtomicU64; COUNT] = [const { AtomicU64::new(0) }; COUNT];

/// One engine. The fields are dropped in this order.
pub(crate) struct Engine {
    queue: Queue<AnyDriver>,
    tickets: Tickets,
    parents: Parents,
}

/// The objects that a driver is of, which are not closed while there is its engine.
#[derive(Default)]
pub(super) struct Parents {
    pub(super) device: Option<UsedDevice>,
    pub(super) _gate: Option<UsedDevice>,
    pub(super) _module: Option<ModuleLease>,
    pub(super) _region: Option<Lease<Region>>,
}

impl Object for Engine {
    const KIND: Kind = Kind::Engine;
}

impl Engine {
    /// Puts an engine over `driver` into its entry. `driver` is dropped before `parents`.
    pub(super) fn put(mut claimed: Claimed<Self>, driver: AnyDriver, parents: Parents) -> Result<u64, Fault> {
        // As many jobs as the device takes, and as a ticket can be had for.
        let jobs = driver.depth().clamp(1, JOBS);
        let queue = Queue::new(driver, jobs)?;
        let make = |place: &mut MaybeUninit<Self>| {
            let engine = place.as_mut_ptr();
            // SAFETY: every field is written once, inside `place`, which is borrowed alone.
            unsafe {
                (&raw mut (*engine).queue).write(queue);
                Tickets::new_in(&mut *(&raw mut (*engine).tickets).cast());
                (&raw mut (*engine).parents).write(parents);
            }
        };
        // SAFETY: `make` wrote every field.
        unsafe { claimed.locked.make(make) };
        Ok(claimed.raw())
    }

    /// Starts a job on the engine in entry `index`. The answer is its ticket and its number, of a
    /// job that was refused too where the device would not stop, which has its buffers then.
    #[inline]
    pub(super) fn start(&mut self, index: usize, parts: impl Parts, args: &[u32], job: &mut Option<(usize, u64)>) -> Result<(), Fault> {
        let Self { queue, tickets, .. } = self;
        let specs = queue.driver().operands();
        if parts.len() != specs.len() {
            let (value, n) = (parts.len() as u64, specs.len() as u64);
            return Err(Error::Argument { name: "the count of operands", value, min: n, max: n, multiple_of: 1 }.into());
        }
        let at = tickets.free().ok_or(Error::QueueFull { depth: JOBS })?;
        let started = STARTED.get(index).map_or(0, |started| {
            // Only here, with the engine's entry locked.
            let number = started.load(Ordering::Relaxed) + 1;
            started.store(number, Ordering::Relaxed);
            number
        });
        // Before the doorbell: whatever happens then, the job is known.
        let mut submission = Submission { tickets, at, operands: Vec::new() };
        let Submission { tickets, operands, .. } = &mut submission;
        let holds = tickets.open(at, started).ok_or(Misuse::Stale { kind: Kind::Engine })?;
        for (index, (part, spec)) in parts.clone().zip(specs).enumerate() {
            if let Err(fault) = hold(&part, spec.direction, holds, operands) {
                tickets.refuse(at, operands);
                return Err(same_buffer(parts.clone(), index).unwrap_or(fault));
            }
        }
        holds.iter().for_each(JobHold::begin);
        *job = Some((at, started));
        match queue.submit_list(operands, args, at) {
            Ok(_) => {
                // They are in the queue, and none is left to drop.
                mem::forget(submission);
                Ok(())
            }
            Err(refused) => {
                if refused.buffers.is_some() {
                    tickets.refuse(at, operands);
                    drop(submission);
                    *job = None;
                    // Where the device itself refused it, it was stopped.
                    self.drain(|_| Ended::Cancelled);
                }
                Err(job_fault(&refused))
            }
        }
    }

    /// Waits for the end of a job, at most for `timeout`; `false`: it has not ended. Its buffers
    /// are the CPU's then where `to_cpu` says so. Ends of other jobs are kept.
    #[inline]
    pub(super) fn wait(&mut self, at: usize, timeout: Duration, to_cpu: bool) -> Result<bool, Fault> {
        // With one job in flight no other's end can come before the time is over.
        let started = (self.queue.len() > 1 && timeout != Duration::ZERO).then(Instant::now);
        let mut left = timeout;
        for _ in 0..=JOBS {
            if self.tickets.has_ended(at) {
                return Ok(true);
            }
            if !self.look(left, |ended| to_cpu && ended == at)? && !self.tickets.has_ended(at) {
                return Ok(false);
            }
            if let Some(started) = started {
                left = timeout.saturating_sub(started.elapsed());
            }
        }
        Ok(self.tickets.has_ended(at))
    }

    /// The first job that ended, or the next one to end, whose buffers are the CPU's then; `None`:
    /// none has.
    #[inline]
    pub(super) fn first_ended(&mut self, timeout: Duration) -> Result<Option<usize>, Fault> {
        if self.tickets.first_ended().is_none() {
            self.look(timeout, |_| true)?;
        }
        Ok(self.tickets.first_ended())
    }

    /// One look of the queue's: `true`, a job has ended, and its buffers are the CPU's where
    /// `to_cpu` says so of its ticket. A channel that fails ends all of its jobs.
    #[inline]
    fn look(&mut self, timeout: Duration, to_cpu: impl Fn(usize) -> bool) -> Result<bool, Fault> {
        let Self { queue, tickets, .. } = self;
        match queue.wait_each(timeout, |at, index, buf| tickets.put(at, index, buf, to_cpu(at))) {
            Ok(Some((at, completion))) => {
                tickets.end(at, Ended::Told(completion));
                Ok(true)
            }
            Ok(None) => Ok(false),
            Err(failed) => {
                self.drain(|_| Ended::Fault(failed.cause));
                // A device that would not stop keeps its jobs.
                if self.queue.is_empty() { Ok(false) } else { Err(job_fault(&failed)) }
            }
        }
    }

    /// Stops the device, which ends every job. That of ticket `waited` ends with `cause`, unless it
    /// ended well while the device was being stopped.
    pub(super) fn stop_for(&mut self, waited: usize, cause: Option<Error>) -> Result<(), Fault> {
        if let Err(error) = self.queue.stop() {
            return Err(Fault::Job { error, cause: cause.unwrap_or(error), operand: None });
        }
        self.drain(|at| cause.filter(|_| at == waited).map_or(Ended::Cancelled, Ended::Fault));
        Ok(())
    }

    /// Stops the device, which ends every job.
    pub(crate) fn stop(&mut self) -> Result<(), Fault> {
        self.stop_for(JOBS, None)
    }

    /// Takes every job out of a stopped queue: those that had ended before, and the others.
    fn drain(&mut self, why: impl Fn(usize) -> Ended) {
        let Self { queue, tickets, .. } = self;
        if !queue.is_stopped() {
            return;
        }
        for _ in 0..JOBS {
            match queue.wait_each(Duration::ZERO, |at, index, buf| tickets.put(at, index, buf, false)) {
                Ok(Some((at, completion))) => tickets.end(at, Ended::Told(completion)),
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

    pub(super) const fn tickets(&mut self) -> &mut Tickets {
        &mut self.tickets
    }

    /// Its driver's name, for messages.
    pub(super) fn name(&self) -> &'static str {
        self.queue.driver().name()
    }

    /// Its driver.
    pub(crate) const fn driver(&self) -> &AnyDriver {
        self.queue.driver()
    }

    /// What became of its jobs; how many can be in flight, are in flight, and have ended with
    /// nobody having taken them; is it stopped?
    pub(crate) fn counts(&self) -> (QueueCounts, usize, usize, usize, bool) {
        (self.queue.counts(), self.queue.capacity(), self.queue.len(), self.tickets.ended(), self.queue.is_stopped())
    }

    /// Readies the interrupt for an event loop, and says its descriptor.
    pub(crate) fn arm_irq(&self) -> Result<c_int, Fault> {
        self.queue.arm_irq()?.ok_or_else(|| Misuse::NoInterrupt.into())
    }

    /// Leaves what stops the device with the kernel.
    ///
    /// # Safety
    /// As `Queue::arm`.
    pub(crate) unsafe fn arm(&mut self, window: u32) -> Result<(), Fault> {
        let guard = self.parents.device.as_ref().and_then(|held| held.guard()).ok_or(Misuse::NoGuard)?;
        // SAFETY: the caller's promise; `close` drops the queue before what holds the device.
        unsafe { self.queue.arm(guard, window)? };
        Ok(())
    }

    /// Closes an engine. Refused while it has jobs, and where its device does not stop: it may use
    /// what would be given back.
    pub(crate) fn close(raw: u64) -> Result<(), Fault> {
        let mut locked = ENGINES.lock(raw)?;
        let engine = locked.value().ok_or(Misuse::Stale { kind: Kind::Engine })?;
        match engine.tickets.used() {
            0 => engine.stop()?,
            jobs => return Err(Misuse::HasJob { jobs }.into()),
        }
        locked.clear();
        Ok(())
    }
}

/// The operands of a job on their way into the queue.
struct Submission<'t> {
    tickets: &'t mut Tickets,
    at: usize,
    operands: Vec<Operand, MAX_OPERANDS>,
}

impl Drop for Submission<'_> {
    /// Those that are still here when the driver's check panics go back into their entries. Once
    /// the doorbell may have been rung they are in the queue, and none is here.
    fn drop(&mut self) {
        if !self.operands.is_empty() {
            self.tickets.refuse(self.at, &mut self.operands);
        }
    }
}

/// A hold on one buffer's entry, and its operand. Both lists have room for as many as operands.
#[inline]
fn hold(
    part: &Part,
    direction: Direction,
    holds: &mut Vec<JobHold<Buf>, MAX_OPERANDS>,
    operands: &mut Vec<Operand, MAX_OPERANDS>,
) -> Result<(), Fault> {
    let mut hold = BUFS.hold(part.buf)?;
    match part.of(hold.value(), direction) {
        Ok(operand) => {
            drop(operands.push(operand));
            drop(holds.push(hold));
            Ok(())
        }
        Err(fault) => {
            hold.back();
            Err(fault)
        }
    }
}

/// Is operand `second` refused because an operand before it has the same buffer?
#[cold]
fn same_buffer(mut parts: impl Parts, second: usize) -> Option<Fault> {
    let buf = parts.clone().nth(second)?.buf;
    let first = parts.position(|part| part.buf == buf).filter(|first| *first < second)?;
    Some(Misuse::SameBuffer { first, second }.into())
}

fn job_fault<B>(failed: &JobError<B>) -> Fault {
    Fault::Job { error: failed.error, cause: failed.cause, operand: failed.operand }
}
