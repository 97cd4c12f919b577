//! Jobs in, and jobs out.

use super::flight::State;
use super::list::Place;
use super::places::argument;
use super::{Cancelled, Done, Queue};
use crate::job::{Completion, Driver, JobError};
use crate::mem::{CpuBuf, DevBuf, Operand};
use crate::trace::Site;
use crate::types::{Error, Result, timeout_us};
use core::time::Duration;
use heapless::Vec;

impl<D: Driver> Queue<D> {
    /// Runs one job: checks every operand and the argument words, maps the bytes for the device,
    /// rings the doorbell, waits at most for `timeout`, and gives the buffers back to the CPU. A
    /// job that takes longer is stopped.
    ///
    /// The queue must have no other job, because a timeout stops the device, and with it all jobs.
    ///
    /// # Errors
    /// The operands come back ([`Operand::into_cpu`]; those of a job that began cannot be submitted
    /// again as they are) with:
    /// - [`Error::Busy`]: jobs are in the queue. [`Error::Argument`]: `timeout` is longer than an
    ///   hour ([`MAX_TIMEOUT`](crate::types::MAX_TIMEOUT)). An error of [`submit`](Self::submit).
    ///   Nothing was done.
    /// - [`Error::Timeout`], or the fault of the channel: the device has been stopped.
    /// - [`Error::Fault`], if this job failed alone, or the error of the backend's sync.
    ///
    /// With [`Error::WillNotStop`] the operands do not come back: they are in the queue until
    /// [`stop`](Self::stop) succeeds.
    #[inline]
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn run<const N: usize>(
        &mut self,
        operands: [Operand; N],
        words: &[u32],
        timeout: Duration,
    ) -> Result<Done<[CpuBuf; N]>, JobError<[Operand; N]>> {
        let site = Site::here();
        let timeout_us = match timeout_us(timeout) {
            Ok(_) if !self.is_empty() => return Err(JobError::gave_back(Error::Busy, operands)),
            Err(error) => return Err(JobError::gave_back(error, operands)),
            Ok(timeout_us) => timeout_us,
        };
        let mut list = Vec::from_array(operands);
        let place = match self.enter(&mut list, words, 0, site) {
            Ok((place, _)) => place,
            Err(failed) => return Err(in_array(failed, list)),
        };
        let mut end = Completion::of(0);
        let failed = match self.ended(timeout, &mut end, site) {
            Ok(Some(place)) => match self
                .succeeded(place, &end, site)
                .and_then(|()| self.out(place, &end, Operand::reclaim))
            {
                Ok(done) => return Ok(done),
                Err(error) => JobError::without_buffers(error, error),
            },
            Ok(None) => self.channel_failed(Error::Timeout { timeout_us }, site),
            Err(failed) => failed,
        };
        Err(self.run_failed(place, failed))
    }

    /// Takes out the queue's only job, which did not end well, unless the device has it.
    #[cold]
    fn run_failed<const N: usize>(
        &mut self,
        place: Place,
        failed: JobError<()>,
    ) -> JobError<[Operand; N]> {
        let JobError { error, cause, operand, .. } = failed;
        if self.state == State::MustStop {
            return JobError::without_buffers(error, cause);
        }
        if self.state == State::Stopped {
            self.counts.cancelled += 1;
        }
        let mut back = Vec::<_, N>::new();
        self.hand_out(place, |_, buf| drop(back.push(Operand::refused(buf.into_dev()))));
        JobError { error, cause, operand, buffers: back.into_array().ok() }
    }

    /// Puts one more job into the queue: all the checks of [`run`](Self::run), its cache
    /// maintenance, and the doorbell, if the device can take the job now. Returns the job's number,
    /// which its [`Done`] has.
    ///
    /// # Errors
    /// The operands come back with [`Error::QueueFull`], [`Error::QueueStopped`],
    /// [`Error::WrongDirection`], [`Error::OutOfRange`], [`Error::BufferSize`] (also for no bytes),
    /// [`Error::OperandTooLong`], [`Error::BufferAlign`], [`Error::WrongBus`],
    /// [`Error::CoherencyMismatch`], [`Error::CannotSync`], [`Error::WholeBlock`],
    /// [`Error::SharedLine`], [`Error::Unreachable`], [`Error::Argument`] for another count of
    /// operands or more than 64 words, or what the driver's `check` says. Every check is done
    /// before anything is touched. If the device itself did not take the job, it was stopped
    /// ([`counts`](Self::counts)), and the earlier jobs must be taken back. With
    /// [`Error::WillNotStop`] these operands stay inside too.
    #[inline]
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn submit<const N: usize>(
        &mut self,
        operands: [Operand; N],
        words: &[u32],
    ) -> Result<u64, JobError<[Operand; N]>> {
        let mut list = Vec::from_array(operands);
        match self.enter(&mut list, words, 0, Site::here()) {
            Ok((_, number)) => Ok(number),
            Err(failed) => Err(in_array(failed, list)),
        }
    }

    /// As [`submit`](Self::submit), for a caller that knows the count of operands only at run time.
    /// The job's end has its `tag` ([`wait_each`](Self::wait_each)).
    ///
    /// # Errors
    /// As [`submit`](Self::submit). If the error has buffers, all operands are in the list
    /// again.
    #[inline]
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn submit_list<const N: usize>(
        &mut self,
        operands: &mut Vec<Operand, N>,
        words: &[u32],
        tag: usize,
    ) -> Result<u64, JobError<()>> {
        self.enter(operands, words, tag, Site::here()).map(|(_, number)| number)
    }

    /// Begins a burst: until [`ring_doorbell`](Self::ring_doorbell) or the next wait, jobs are
    /// submitted without a doorbell, where the driver can do that ([`Driver::submit_more`]): those
    /// with descriptors ring one for all of them. Ring it before an event loop sleeps. The caches
    /// of what was submitted are maintained at the doorbell, by one call where the memory has one
    /// for many ranges.
    ///
    /// ```
    /// use contigo::{Driver, Pool, Queue, Result};
    /// /// Gives a receiver all buffers of its pool, with one doorbell.
    /// fn fill(receiver: &mut Queue<impl Driver>, pool: &Pool) -> Result<()> {
    ///     receiver.hold_doorbell();
    ///     while let (false, Ok(buf)) = (receiver.is_full(), pool.take()) {
    ///         receiver.submit([buf.from_device(..)], &[])?;
    ///     }
    ///     receiver.ring_doorbell()?;
    ///     Ok(())
    /// }
    /// ```
    pub const fn hold_doorbell(&mut self) {
        self.held = true;
    }

    /// Ends a burst: rings the doorbell, if jobs were submitted without one. A wait does so too.
    ///
    /// # Errors
    /// The device did not take the jobs, or their caches could not be cleaned: as
    /// [`wait`](Self::wait), for the channel as a whole.
    /// [`Error::QueueStopped`]: the device would not stop, or its driver panicked. Nothing was
    /// rung; [`stop`](Self::stop) it.
    #[inline]
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn ring_doorbell(&mut self) -> Result<(), JobError<()>> {
        self.ring(Site::here())
    }

    /// The next job that ended, with its buffers on the CPU's side. Waits at most for `timeout`.
    /// `None`: none has ended, and nothing is stopped; or none is in flight, and it did not wait.
    ///
    /// # Errors
    /// - Buffers in the error: this job failed alone ([`Error::Fault`]), or its caches could not be
    ///   maintained. The others go on.
    /// - No buffers: the channel failed and was stopped; the jobs are inside, to be taken back.
    ///   Ends that were found before come first, from the queue that is stopped then.
    ///   With [`Error::WillNotStop`] it was not stopped.
    /// - [`Error::Argument`] without buffers: `timeout` is longer than an hour
    ///   ([`MAX_TIMEOUT`](crate::types::MAX_TIMEOUT)), or jobs have another count of buffers than
    ///   `N`. Nothing was polled, and all jobs go on.
    #[inline]
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn wait<const N: usize>(
        &mut self,
        timeout: Duration,
    ) -> Result<Option<Done<[CpuBuf; N]>>, JobError<[DevBuf; N]>> {
        let site = Site::here();
        self.wait_for(timeout, site, |queue, place, end| {
            queue.succeeded(place, end, site)?;
            queue.out(place, end, Operand::reclaim)
        })
    }

    /// As [`wait`](Self::wait), and the buffers stay on the device's side: for the next device,
    /// with no cache maintenance between.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    #[inline]
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn wait_device<const N: usize>(
        &mut self,
        timeout: Duration,
    ) -> Result<Option<Done<[DevBuf; N]>>, JobError<[DevBuf; N]>> {
        let site = Site::here();
        self.wait_for(timeout, site, |queue, place, end| {
            queue.no_fault(end)?;
            queue.out(place, end, Operand::into_dev)
        })
    }

    /// As [`wait`](Self::wait) with a timeout of zero: one poll, without a system call.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    #[inline]
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn try_next<const N: usize>(
        &mut self,
    ) -> Result<Option<Done<[CpuBuf; N]>>, JobError<[DevBuf; N]>> {
        self.wait(Duration::ZERO)
    }

    #[inline]
    fn wait_for<const N: usize, B>(
        &mut self,
        timeout: Duration,
        site: Site,
        out: impl FnOnce(&mut Self, Place, &Completion) -> Result<Done<[B; N]>, Error>,
    ) -> Result<Option<Done<[B; N]>>, JobError<[DevBuf; N]>> {
        if let Err(error) = self.is_count(N) {
            return Err(JobError::without_buffers(error, error));
        }
        let mut completion = Completion::of(0);
        let place = match self.ended(timeout, &mut completion, site) {
            Ok(Some(place)) => place,
            Ok(None) => return Ok(None),
            Err(JobError { error, cause, .. }) => {
                return Err(JobError::without_buffers(error, cause));
            }
        };
        self.taken(place, site, |queue, place| out(queue, place, &completion))
    }

    /// As [`wait_device`](Self::wait_device), for a stream. While ends are at hand, a doorbell that
    /// is owed waits; and one call makes the buffers of all of them ready for the CPU, if it can.
    #[inline]
    pub(super) fn wait_frame(
        &mut self,
        timeout: Duration,
        site: Site,
    ) -> Result<Option<Done<[DevBuf; 1]>>, JobError<[DevBuf; 1]>> {
        let mut completion = Completion::of(0);
        let place = match self.at_hand(&mut completion) {
            Some(place) => Some(place),
            None => match self.ended(timeout, &mut completion, site) {
                Ok(place) => place,
                Err(JobError { error, cause, .. }) => {
                    return Err(JobError::without_buffers(error, cause));
                }
            },
        };
        let Some(place) = place else { return Ok(None) };
        let out = |queue: &mut Self, place| {
            queue.no_fault(&completion)?;
            queue.sync_ended(site);
            queue.out(place, &completion, Operand::into_dev)
        };
        self.taken(place, site, out)
    }

    /// Takes the job at `place`, which has ended, out of the queue.
    #[inline]
    fn taken<const N: usize, B>(
        &mut self,
        place: Place,
        site: Site,
        out: impl FnOnce(&mut Self, Place) -> Result<Done<[B; N]>, Error>,
    ) -> Result<Option<Done<[B; N]>>, JobError<[DevBuf; N]>> {
        let done = match out(self, place) {
            Ok(done) => done,
            Err(error) => return Err(self.failed_alone(place, error, site)),
        };
        self.feed(site);
        Ok(Some(done))
    }

    /// As [`wait_device`](Self::wait_device), for any number of buffers: each goes from its place
    /// to `each`, with its job's tag and its index. Returns the tag and what the device reported;
    /// if a job failed alone, its `failed` says why. If several jobs have ended, the caches of all
    /// their buffers are invalidated by one call, so that [`DevBuf::into_cpu`] makes none.
    ///
    /// # Errors
    /// As [`wait`](Self::wait), for the channel as a whole.
    #[inline]
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn wait_each(
        &mut self,
        timeout: Duration,
        mut each: impl FnMut(usize, usize, DevBuf),
    ) -> Result<Option<(usize, Completion)>, JobError<()>> {
        let site = Site::here();
        let mut completion = Completion::of(0);
        let Some(place) = self.ended(timeout, &mut completion, site)? else { return Ok(None) };
        self.sync_ended(site);
        let tag = self.places.job(place).map_or(0, |job| job.tag);
        self.hand_out(place, |index, operand| each(tag, index, operand.into_dev()));
        self.feed(site);
        Ok(Some((tag, completion)))
    }

    /// Takes back the oldest job that a stopped device has not ended, with its buffers still on the
    /// device's side. `None`: there is none, or the device is at work.
    ///
    /// # Errors
    /// [`Error::Argument`]: jobs have another count of buffers than `N`.
    pub fn take_back<const N: usize>(&mut self) -> Result<Option<Cancelled<[DevBuf; N]>>> {
        self.is_count(N)?;
        let Some(place) = self.oldest_to_take_back() else { return Ok(None) };
        let taken = self.hand_out_array(place, Operand::into_dev);
        Ok(taken.map(|(job, buffers)| Cancelled { buffers, job }))
    }

    /// As [`take_back`](Self::take_back): each buffer goes from its place to `each`, with its job's
    /// tag and its index. Returns the tag.
    pub fn take_back_each(&mut self, mut each: impl FnMut(usize, usize, DevBuf)) -> Option<usize> {
        let place = self.oldest_to_take_back()?;
        let tag = self.places.job(place).map_or(0, |job| job.tag);
        self.hand_out(place, |index, operand| each(tag, index, operand.into_dev()));
        Some(tag)
    }

    /// Checks that jobs have `count` buffers.
    #[inline]
    fn is_count(&self, count: usize) -> Result<()> {
        let each = self.places.operands_each();
        if count == each {
            return Ok(());
        }
        Err(argument("the count of a job's buffers", count, each, each))
    }

    /// Returns the error of a job that failed alone.
    #[inline]
    fn no_fault(&self, end: &Completion) -> Result<()> {
        match end.failed {
            None => Ok(()),
            Some(what) => {
                Err(Error::Fault { device: self.driver.name(), status: end.status, what })
            }
        }
    }

    /// The same, and makes the buffers at `place` ready for the CPU: all of them or none, because a
    /// view of a buffer whose caches are stale could change under its reader.
    #[inline]
    fn succeeded(&mut self, place: Place, end: &Completion, site: Site) -> Result<()> {
        self.no_fault(end)?;
        // Its operands were given to this port: nothing to invalidate, nor to wait for.
        if self.port.coherent {
            return Ok(());
        }
        self.sync_ended(site);
        self.places
            .operands(place)
            .iter()
            .try_for_each(|operand| operand.given().sync_for_cpu(site))
    }

    /// A job's end, with what `each` makes of its `N` operands at `place`.
    #[inline]
    fn out<const N: usize, B>(
        &mut self,
        place: Place,
        end: &Completion,
        each: impl Fn(Operand) -> B,
    ) -> Result<Done<[B; N]>> {
        let (number, buffers) = self.hand_out_array(place, each).ok_or(Error::Busy)?;
        Ok(Done::new(buffers, number, end))
    }

    /// One job's error, with its buffers taken out of their place.
    #[cold]
    fn failed_alone<const N: usize>(
        &mut self,
        place: Place,
        error: Error,
        site: Site,
    ) -> JobError<[DevBuf; N]> {
        let mut buffers = Vec::<_, N>::new();
        // There is room for each: a job has `N`.
        self.hand_out(place, |_, operand| drop(buffers.push(operand.into_dev())));
        self.feed(site);
        JobError { error, cause: error, operand: None, buffers: buffers.into_array().ok() }
    }
}

/// Converts the error of a list that was made of an array.
#[cold]
fn in_array<const N: usize>(failed: JobError<()>, list: Vec<Operand, N>) -> JobError<[Operand; N]> {
    let JobError { error, cause, operand, buffers } = failed;
    // The list has as many operands as the array had.
    JobError { error, cause, operand, buffers: buffers.and_then(|()| list.into_array().ok()) }
}
