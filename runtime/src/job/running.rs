//! A job under way.

use super::{Completion, Done, JobError, TypedDriver, engine::Engine};
use crate::{
    mem::{CpuBuf, DevBuf, buf::AnyThread},
    trace::{self, Event, Site},
    types::{Error, Timeout, barrier},
};
use core::{
    fmt,
    mem::{self, ManuallyDrop},
};

/// A job under way: the device has its buffers, and nobody else.
///
/// Dropping it stops the device and gives the buffers back. Forgetting it leaks them, and leaves the engine busy.
#[must_use = "dropping a running job stops it"]
pub struct Running<'e, 'p, D: TypedDriver<OPERANDS>, const OPERANDS: usize, T = AnyThread> {
    engine: &'e mut Engine<D, OPERANDS>,
    /// `None` only while the job is being consumed. Never dropped by itself: only `failed` knows whether the device stopped.
    buffers: ManuallyDrop<Option<[DevBuf<'p, T>; OPERANDS]>>,
}

/// A job's buffers in its error, on the device's side.
type Failed<'p, const OPERANDS: usize, T> = JobError<[DevBuf<'p, T>; OPERANDS]>;

/// What a look at a job, or a wait for it, found.
#[derive(Debug)]
#[must_use = "it holds the job or its buffers"]
pub enum Attempt<'e, 'p, D: TypedDriver<OPERANDS>, const OPERANDS: usize, T = AnyThread, B = CpuBuf<'p, T>> {
    /// It is done: the buffers are the CPU's again, or still the device's after [`Running::wait_device_for`].
    Done(Done<[B; OPERANDS], D::Report>),
    /// It is not, and goes on.
    Pending(Running<'e, 'p, D, OPERANDS, T>),
}

/// A job's end, with its buffers on the device's side.
type Ended<'p, D, const OPERANDS: usize, T> = Done<[DevBuf<'p, T>; OPERANDS], <D as TypedDriver<OPERANDS>>::Report>;
/// The same, on the CPU's side.
type EndedOnCpu<'p, D, const OPERANDS: usize, T> = Done<[CpuBuf<'p, T>; OPERANDS], <D as TypedDriver<OPERANDS>>::Report>;

impl<'e, 'p, D: TypedDriver<OPERANDS>, const OPERANDS: usize, T> Running<'e, 'p, D, OPERANDS, T> {
    pub(super) fn new(engine: &'e mut Engine<D, OPERANDS>, buffers: [DevBuf<'p, T>; OPERANDS]) -> Self {
        Self { engine, buffers: ManuallyDrop::new(Some(buffers)) }
    }

    /// Waits for the end of the job, at most for `timeout`, and gives the buffers back to the CPU: what the device wrote is
    /// visible. A job that takes longer is stopped; [`wait_for`](Self::wait_for) lets it go on.
    ///
    /// # Errors
    /// [`Error::Timeout`], or what the device or the backend's sync says. The device has been stopped, and the buffers are
    /// in the error, still on the device's side ([`DevBuf::into_cpu`]); with [`Error::WillNotStop`] they are leaked.
    #[inline]
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn wait(self, timeout: Timeout) -> Result<EndedOnCpu<'p, D, OPERANDS, T>, Failed<'p, OPERANDS, T>> {
        reclaim(self.wait_device(timeout)?, Site::here())
    }

    /// Waits as [`wait`](Self::wait) does, and leaves the buffers on the device's side, for the next job to use with no cache
    /// maintenance between.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    #[inline]
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn wait_device(mut self, timeout: Timeout) -> Result<Ended<'p, D, OPERANDS, T>, Failed<'p, OPERANDS, T>> {
        match self.look(timeout, Site::here())? {
            Some(ended) => Ok(ended),
            None => Err(self.failed(Error::Timeout { timeout_us: timeout.as_us() }, Site::here())),
        }
    }

    /// Waits at most for `timeout`, and gives the job back where it has not ended: nothing is
    /// stopped.
    ///
    /// # Errors
    /// As [`wait`](Self::wait), except for [`Error::Timeout`].
    #[inline]
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn wait_for(mut self, timeout: Timeout) -> Result<Attempt<'e, 'p, D, OPERANDS, T>, Failed<'p, OPERANDS, T>> {
        match self.look(timeout, Site::here())? {
            Some(ended) => reclaim(ended, Site::here()).map(Attempt::Done),
            None => Ok(Attempt::Pending(self)),
        }
    }

    /// Waits as [`wait_for`](Self::wait_for) does, and leaves the buffers of a job that is done on the device's side.
    ///
    /// # Errors
    /// As [`wait_for`](Self::wait_for).
    #[inline]
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn wait_device_for(mut self, timeout: Timeout) -> Result<Attempt<'e, 'p, D, OPERANDS, T, DevBuf<'p, T>>, Failed<'p, OPERANDS, T>> {
        Ok(match self.look(timeout, Site::here())? {
            Some(ended) => Attempt::Done(ended),
            None => Attempt::Pending(self),
        })
    }

    /// Looks once, without waiting and without a system call: `wait_for(Timeout::NOW)`.
    ///
    /// # Errors
    /// As [`wait_for`](Self::wait_for).
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn try_wait(self) -> Result<Attempt<'e, 'p, D, OPERANDS, T>, Failed<'p, OPERANDS, T>> {
        self.wait_for(Timeout::NOW)
    }

    /// The driver, to read what it reports of a job under way.
    pub fn driver(&self) -> &D {
        &self.engine.driver
    }

    /// One wait of the driver's. `None`: the job goes on.
    #[inline]
    fn look(&mut self, timeout: Timeout, site: Site) -> Result<Option<Ended<'p, D, OPERANDS, T>>, Failed<'p, OPERANDS, T>> {
        let completion = match self.engine.driver.poll(timeout) {
            Ok(Some(completion)) => completion,
            Ok(None) => return Ok(None),
            Err(error) => return Err(self.failed(error, site)),
        };
        let name = self.engine.driver.name();
        if let Err(error) = completion.distrust(name, completion.slot == 0, self.engine.most_bytes) {
            return Err(self.failed(error, site));
        }
        if let Some(what) = completion.failed {
            return Err(self.failed(Error::Fault { device: name, status: completion.status, what }, site));
        }
        let buffers = self.completed(&completion, site)?;
        Ok(Some(self.engine.done(buffers, completion)))
    }

    /// The device said that it is finished (`Driver`, 2).
    #[inline]
    fn completed(&mut self, completion: &Completion, site: Site) -> Result<[DevBuf<'p, T>; OPERANDS], Failed<'p, OPERANDS, T>> {
        barrier::after_completion();
        self.engine.busy = false;
        self.engine.jobs.completed += 1;
        trace::happened(Event::Complete { port: self.engine.port.name, job: self.engine.jobs.started }, site);
        if self.engine.port.is_simulated() {
            self.at_rest();
        }
        let mut buffers = self.buffers.take().ok_or_else(|| JobError::leaked(Error::Busy, Error::Busy))?;
        if let Some(bytes) = completion.bytes {
            super::prepare::received(self.engine.driver.operands(), &mut buffers, bytes);
        }
        Ok(buffers)
    }

    /// A simulated board hears that no device has the buffers any more. Apart from the fast path.
    #[cold]
    #[inline(never)]
    fn at_rest(&self) {
        self.buffers.iter().flatten().for_each(DevBuf::at_rest);
    }

    /// Stops the device; the buffers come back only when it has stopped.
    fn failed(&mut self, cause: Error, site: Site) -> Failed<'p, OPERANDS, T> {
        let stopped = self.engine.stop();
        trace::happened(Event::Stop { port: self.engine.port.name, job: self.engine.jobs.started }, site);
        match stopped {
            Ok(()) => {
                self.at_rest();
                JobError { error: cause, cause, operand: None, buffers: self.buffers.take() }
            }
            Err(error) => {
                // The device may still write: leak, never free.
                let len_bytes = self.buffers.iter().flatten().map(DevBuf::handed_over_bytes).sum();
                trace::happened(Event::Leak { len_bytes }, site);
                mem::forget(self.buffers.take());
                JobError::leaked(error, cause)
            }
        }
    }
}

/// The CPU's again, all of them or none: a view of a buffer whose caches are stale could change under its reader.
#[inline]
fn reclaim<R, const OPERANDS: usize, T>(
    ended: Done<[DevBuf<'_, T>; OPERANDS], R>,
    site: Site,
) -> Result<Done<[CpuBuf<'_, T>; OPERANDS], R>, Failed<'_, OPERANDS, T>> {
    match ended.buffers.iter().try_for_each(|buf| buf.sync_for_cpu(site)) {
        Ok(()) => Ok(ended.map(|buffers| buffers.map(DevBuf::reclaim))),
        Err(error) => Err(JobError::gave_back(error, ended.buffers)),
    }
}

impl<D: TypedDriver<OPERANDS>, const OPERANDS: usize, T> Drop for Running<'_, '_, D, OPERANDS, T> {
    fn drop(&mut self) {
        if self.buffers.is_some() {
            drop(self.failed(Error::Busy, Site::NONE));
        }
    }
}

impl<D: TypedDriver<OPERANDS>, const OPERANDS: usize, T> fmt::Debug for Running<'_, '_, D, OPERANDS, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("engine", &self.engine).field("buffers", &self.buffers).finish()
    }
}
