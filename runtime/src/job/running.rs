#![allow(unsafe_code, reason = "a job's operands lie in its engine, and have their types here")]
//! A job under way.

use super::{
    Completion, Done, JobError, TypedDriver,
    engine::Engine,
    prepare::{at_rest, ended, received},
};
use crate::{
    mem::{CpuBuf, DevBuf, Operand, buf::AnyThread},
    trace::{self, Event, Site},
    types::{Error, barrier, timeout_us},
};
use core::{fmt, marker::PhantomData, mem, time::Duration};

/// A job under way: the device has its buffers, and nobody else.
///
/// Dropping it stops the device and gives the buffers back. Forgetting it leaks them, and leaves
/// the engine busy.
#[must_use = "dropping a running job stops it"]
pub struct Running<'e, 'p, D: TypedDriver<OPERANDS>, const OPERANDS: usize, T = AnyThread> {
    engine: &'e mut Engine<D, OPERANDS>,
    /// Are its operands still there, in the engine's place? They are never dropped by themselves:
    /// only `failed` knows whether the device stopped.
    ///
    /// INVARIANT: then they are of this `'p` and `T`.
    here: bool,
    operands: PhantomData<Operand<'p, T>>,
}

/// A job's buffers in its error, on the device's side.
type Failed<'p, const OPERANDS: usize, T> = JobError<[DevBuf<'p, T>; OPERANDS]>;

/// The result of a look at a job, or of a wait for it.
#[derive(Debug)]
#[must_use = "it holds the job or its buffers"]
pub enum Attempt<'e, 'p, D: TypedDriver<OPERANDS>, const OPERANDS: usize, T = AnyThread, B = CpuBuf<'p, T>> {
    /// It is done: the buffers are the CPU's again, or still the device's after
    /// [`Running::wait_device_for`].
    Done(Done<[B; OPERANDS], D::Report>),
    /// It is not, and goes on.
    Pending(Running<'e, 'p, D, OPERANDS, T>),
}

/// A job's end, with its buffers on the device's side.
type Ended<'p, D, const OPERANDS: usize, T> = Done<[DevBuf<'p, T>; OPERANDS], <D as TypedDriver<OPERANDS>>::Report>;
/// The same, on the CPU's side.
type EndedOnCpu<'p, D, const OPERANDS: usize, T> = Done<[CpuBuf<'p, T>; OPERANDS], <D as TypedDriver<OPERANDS>>::Report>;

impl<'e, 'p, D: TypedDriver<OPERANDS>, const OPERANDS: usize, T> Running<'e, 'p, D, OPERANDS, T> {
    /// The job whose operands are in the engine's place.
    ///
    /// # Safety
    /// They are of this `'p` and `T`.
    #[inline]
    pub(super) const unsafe fn new(engine: &'e mut Engine<D, OPERANDS>) -> Self {
        Self { engine, here: true, operands: PhantomData }
    }

    /// Waits for the end of the job, at most for `timeout`, and gives the buffers back to the CPU:
    /// what the device wrote is visible. A job that takes longer is stopped;
    /// [`wait_for`](Self::wait_for) lets it go on.
    ///
    /// # Errors
    /// [`Error::Timeout`], [`Error::Argument`] where `timeout` is longer than an hour
    /// ([`MAX_TIMEOUT`](crate::MAX_TIMEOUT)) and nothing was waited for, or what the device or the
    /// backend's sync says. The device has been stopped, and the buffers are in the error, still on
    /// the device's side ([`DevBuf::into_cpu`]); with [`Error::WillNotStop`] they are leaked.
    #[inline]
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn wait(mut self, timeout: Duration) -> Result<EndedOnCpu<'p, D, OPERANDS, T>, Failed<'p, OPERANDS, T>> {
        match self.look(timeout, Site::here()) {
            Ok(Some(completion)) => self.reclaim(completion, Site::here()),
            looked => Err(self.failed(looked.err().unwrap_or_else(|| late(timeout)), Site::here())),
        }
    }

    /// Waits as [`wait`](Self::wait) does, and leaves the buffers on the device's side, for the
    /// next job to use with no cache maintenance between.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    #[inline]
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn wait_device(mut self, timeout: Duration) -> Result<Ended<'p, D, OPERANDS, T>, Failed<'p, OPERANDS, T>> {
        match self.look(timeout, Site::here()) {
            Ok(Some(completion)) => self.release(completion),
            looked => Err(self.failed(looked.err().unwrap_or_else(|| late(timeout)), Site::here())),
        }
    }

    /// Waits at most for `timeout`, and gives the job back where it has not ended: nothing is
    /// stopped.
    ///
    /// # Errors
    /// As [`wait`](Self::wait), except for [`Error::Timeout`].
    #[inline]
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn wait_for(mut self, timeout: Duration) -> Result<Attempt<'e, 'p, D, OPERANDS, T>, Failed<'p, OPERANDS, T>> {
        match self.look(timeout, Site::here()) {
            Ok(Some(completion)) => self.reclaim(completion, Site::here()).map(Attempt::Done),
            Ok(None) => Ok(Attempt::Pending(self)),
            Err(error) => Err(self.failed(error, Site::here())),
        }
    }

    /// Waits as [`wait_for`](Self::wait_for) does, and leaves the buffers of a job that is done on
    /// the device's side.
    ///
    /// # Errors
    /// As [`wait_for`](Self::wait_for).
    #[inline]
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn wait_device_for(mut self, timeout: Duration) -> Result<Attempt<'e, 'p, D, OPERANDS, T, DevBuf<'p, T>>, Failed<'p, OPERANDS, T>> {
        match self.look(timeout, Site::here()) {
            Ok(Some(completion)) => self.release(completion).map(Attempt::Done),
            Ok(None) => Ok(Attempt::Pending(self)),
            Err(error) => Err(self.failed(error, Site::here())),
        }
    }

    /// Looks once, without waiting and without a system call: `wait_for(Duration::ZERO)`.
    ///
    /// # Errors
    /// As [`wait_for`](Self::wait_for).
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn try_wait(self) -> Result<Attempt<'e, 'p, D, OPERANDS, T>, Failed<'p, OPERANDS, T>> {
        self.wait_for(Duration::ZERO)
    }

    /// The driver, to read what it reports of a job under way.
    pub fn driver(&self) -> &D {
        &self.engine.driver
    }

    /// One wait of the driver's. `None`: the job goes on. After a completion the device is finished
    /// (`Driver`, 2), and the buffers are still here; after an error the caller stops the device.
    #[inline]
    fn look(&mut self, timeout: Duration, site: Site) -> Result<Option<Completion>, Error> {
        timeout_us(timeout)?;
        let engine = &mut *self.engine;
        let Some(completion) = engine.driver.poll(timeout)? else { return Ok(None) };
        completion.verify(engine.driver.name(), completion.slot == engine.slot, engine.most_bytes)?;
        if engine.port.is_simulated() {
            let mut before = self.engine.wrong;
            ended(&self.engine.driver, self.operands(), completion.failed.is_some(), &mut before)?;
        }
        let engine = &mut *self.engine;
        if let Some(what) = completion.failed {
            return Err(Error::Fault { device: engine.driver.name(), status: completion.status, what });
        }
        barrier::after_completion();
        engine.busy = false;
        engine.slot = if engine.slot + 1 < engine.driver.depth() { engine.slot + 1 } else { 0 };
        engine.jobs.completed += 1;
        trace::happened(Event::Complete { port: engine.port.name, job: engine.jobs.started }, site);
        if let Some(bytes) = completion.bytes {
            received(self.operands_mut(), bytes);
        }
        Ok(Some(completion))
    }

    /// The buffers, still on the device's side. `look` saw the end.
    #[inline]
    fn release(mut self, completion: Completion) -> Result<Ended<'p, D, OPERANDS, T>, Failed<'p, OPERANDS, T>> {
        match self.take(Operand::into_dev) {
            Some(buffers) => Ok(self.engine.done(buffers, completion)),
            None => Err(JobError::leaked(Error::Busy, Error::Busy)),
        }
    }

    /// The CPU's again, all of them or none: a view of a buffer whose caches are stale could change
    /// under its reader. `look` saw the end.
    #[inline]
    fn reclaim(mut self, completion: Completion, site: Site) -> Result<EndedOnCpu<'p, D, OPERANDS, T>, Failed<'p, OPERANDS, T>> {
        if let Err(error) = self.operands().iter().try_for_each(|operand| operand.given().sync_for_cpu(site)) {
            return Err(JobError { error, cause: error, operand: None, buffers: self.take(Operand::into_dev) });
        }
        match self.take(Operand::reclaim) {
            Some(buffers) => Ok(self.engine.done(buffers, completion)),
            None => Err(JobError::leaked(Error::Busy, Error::Busy)),
        }
    }

    /// Its operands; none where they were taken.
    #[inline]
    fn operands(&self) -> &[Operand<'p, T>] {
        // SAFETY: the invariant of `here`.
        if self.here { unsafe { self.engine.place.operands() } } else { &[] }
    }

    /// As `operands`.
    #[inline]
    fn operands_mut(&mut self) -> &mut [Operand<'p, T>] {
        // SAFETY: the invariant of `here`.
        if self.here { unsafe { self.engine.place.operands_mut() } } else { &mut [] }
    }

    /// The values that `each` makes of its operands, once.
    #[inline]
    fn take<B>(&mut self, each: impl Fn(Operand<'p, T>) -> B) -> Option<[B; OPERANDS]> {
        // SAFETY: the invariant of `here`, which says from here on that they were taken.
        mem::take(&mut self.here).then(|| unsafe { self.engine.place.take(each) })
    }

    /// Stops the device; the buffers come back only when it has stopped.
    #[cold]
    fn failed(&mut self, cause: Error, site: Site) -> Failed<'p, OPERANDS, T> {
        let stopped = self.engine.stop();
        trace::happened(Event::Stop { port: self.engine.port.name, job: self.engine.jobs.started }, site);
        match stopped {
            Ok(()) => {
                at_rest(self.operands());
                JobError { error: cause, cause, operand: None, buffers: self.take(Operand::into_dev) }
            }
            Err(error) => {
                // The device may still write: leak, never free.
                let len_bytes = self.operands().iter().map(|operand| operand.given().handed_over_bytes()).sum();
                trace::happened(Event::Leak { len_bytes }, site);
                self.here = false;
                JobError::leaked(error, cause)
            }
        }
    }
}

/// A job that did not end within `timeout`, which `look` found short enough.
#[cold]
fn late(timeout: Duration) -> Error {
    timeout_us(timeout).map_or_else(|error| error, |timeout_us| Error::Timeout { timeout_us })
}

impl<D: TypedDriver<OPERANDS>, const OPERANDS: usize, T> Drop for Running<'_, '_, D, OPERANDS, T> {
    fn drop(&mut self) {
        if self.here {
            drop(self.failed(Error::Busy, Site::NONE));
        }
    }
}

impl<D: TypedDriver<OPERANDS>, const OPERANDS: usize, T> fmt::Debug for Running<'_, '_, D, OPERANDS, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("engine", &self.engine).field("operands", &self.operands()).finish()
    }
}
