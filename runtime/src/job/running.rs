//! A job under way.

use super::{Accelerator, JobError, engine::Engine};
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
pub struct Running<'e, 'p, A: Accelerator<BUFFERS>, const BUFFERS: usize, T = AnyThread> {
    engine: &'e mut Engine<A, BUFFERS>,
    /// `None` only while the job is being consumed. Never dropped by itself: only `failed` knows whether the device stopped.
    buffers: ManuallyDrop<Option<[DevBuf<'p, T>; BUFFERS]>>,
}

/// A job's buffers in its error, on the device's side.
type Failed<'p, const BUFFERS: usize, T> = JobError<[DevBuf<'p, T>; BUFFERS]>;

/// What one look at a job found.
#[derive(Debug)]
#[must_use = "it holds the job or its buffers"]
pub enum Attempt<'e, 'p, A: Accelerator<BUFFERS>, const BUFFERS: usize, T = AnyThread, B = CpuBuf<'p, T>> {
    /// It is done: the buffers are the CPU's again, or still the device's after [`Running::try_wait_device`].
    Done([B; BUFFERS]),
    /// It is not.
    Pending(Running<'e, 'p, A, BUFFERS, T>),
}

impl<'e, 'p, A: Accelerator<BUFFERS>, const BUFFERS: usize, T> Running<'e, 'p, A, BUFFERS, T> {
    pub(super) fn new(engine: &'e mut Engine<A, BUFFERS>, buffers: [DevBuf<'p, T>; BUFFERS]) -> Self {
        Self { engine, buffers: ManuallyDrop::new(Some(buffers)) }
    }

    /// Waits for the end of the job, at most for `timeout`, and gives the buffers back to the CPU: what the device wrote is
    /// visible.
    ///
    /// # Errors
    /// [`Error::Timeout`], or what the device or the backend's sync says. The device has been stopped, and the buffers are
    /// in the error, still on the device's side ([`DevBuf::into_cpu`]); with [`Error::WillNotStop`] they are leaked.
    #[inline]
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn wait(self, timeout: Timeout) -> Result<[CpuBuf<'p, T>; BUFFERS], Failed<'p, BUFFERS, T>> {
        reclaim(self.wait_device(timeout)?, Site::here())
    }

    /// Waits as [`wait`](Self::wait) does, and leaves the buffers on the device's side, for the next job to use with no cache
    /// maintenance between.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    #[inline]
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn wait_device(mut self, timeout: Timeout) -> Result<[DevBuf<'p, T>; BUFFERS], Failed<'p, BUFFERS, T>> {
        match self.engine.accelerator.poll(timeout) {
            Ok(true) => Ok(self.completed(Site::here())?),
            Ok(false) => Err(self.failed(Error::Timeout { timeout_us: timeout.as_us() }, Site::here())),
            Err(error) => Err(self.failed(error, Site::here())),
        }
    }

    /// Looks once, without waiting and without a system call.
    ///
    /// # Errors
    /// As [`wait`](Self::wait), but for [`Error::Timeout`].
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn try_wait(mut self) -> Result<Attempt<'e, 'p, A, BUFFERS, T>, Failed<'p, BUFFERS, T>> {
        match self.engine.accelerator.poll(Timeout::NOW) {
            Ok(true) => reclaim(self.completed(Site::here())?, Site::here()).map(Attempt::Done),
            Ok(false) => Ok(Attempt::Pending(self)),
            Err(error) => Err(self.failed(error, Site::here())),
        }
    }

    /// Looks once, as [`try_wait`](Self::try_wait) does, and leaves the buffers of a job that is done on the device's side.
    ///
    /// # Errors
    /// As [`try_wait`](Self::try_wait).
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn try_wait_device(mut self) -> Result<Attempt<'e, 'p, A, BUFFERS, T, DevBuf<'p, T>>, Failed<'p, BUFFERS, T>> {
        match self.engine.accelerator.poll(Timeout::NOW) {
            Ok(true) => self.completed(Site::here()).map(Attempt::Done),
            Ok(false) => Ok(Attempt::Pending(self)),
            Err(error) => Err(self.failed(error, Site::here())),
        }
    }

    /// The accelerator, to read what it reports of a job under way.
    pub fn accelerator(&self) -> &A {
        &self.engine.accelerator
    }

    /// The device said that it is finished (`Accelerator`, 2).
    #[inline]
    fn completed(&mut self, site: Site) -> Result<[DevBuf<'p, T>; BUFFERS], Failed<'p, BUFFERS, T>> {
        barrier::after_completion();
        self.engine.busy = false;
        self.engine.jobs.completed += 1;
        trace::happened(Event::Complete { port: self.engine.port.name, job: self.engine.jobs.started }, site);
        if self.engine.port.is_simulated() {
            self.at_rest();
        }
        self.buffers.take().ok_or_else(|| JobError::leaked(Error::Busy, Error::Busy))
    }

    /// A simulated board hears that no device has the buffers any more. Apart from the fast path.
    #[cold]
    #[inline(never)]
    fn at_rest(&self) {
        self.buffers.iter().flatten().for_each(DevBuf::at_rest);
    }

    /// Stops the device; the buffers come back only when it has stopped.
    fn failed(&mut self, cause: Error, site: Site) -> Failed<'p, BUFFERS, T> {
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
fn reclaim<const BUFFERS: usize, T>(
    buffers: [DevBuf<'_, T>; BUFFERS],
    site: Site,
) -> Result<[CpuBuf<'_, T>; BUFFERS], Failed<'_, BUFFERS, T>> {
    match buffers.iter().try_for_each(|buf| buf.sync_for_cpu(site)) {
        Ok(()) => Ok(buffers.map(DevBuf::reclaim)),
        Err(error) => Err(JobError::gave_back(error, buffers)),
    }
}

impl<A: Accelerator<BUFFERS>, const BUFFERS: usize, T> Drop for Running<'_, '_, A, BUFFERS, T> {
    fn drop(&mut self) {
        if self.buffers.is_some() {
            drop(self.failed(Error::Busy, Site::NONE));
        }
    }
}

impl<A: Accelerator<BUFFERS>, const BUFFERS: usize, T> fmt::Debug for Running<'_, '_, A, BUFFERS, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("engine", &self.engine).field("buffers", &self.buffers).finish()
    }
}
