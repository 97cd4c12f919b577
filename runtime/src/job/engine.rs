#![allow(unsafe_code, reason = "the doorbell is rung here, for operands that were just handed over")]
//! One accelerator and its job.

use super::{
    Done, Driver, JobError, Running, TypedDriver,
    job_place::JobPlace,
    prepare::{OperandError, Slices, forget_ends, prepare, tell_given},
};
use crate::{
    mem::{Operand, Port, WrongAccesses},
    trace::{self, Event, Site},
    types::platform::forward_as_fd,
    types::{Error, Refused, Result, barrier},
};
use core::fmt;

/// One device behind one port, with one job at a time, typed by its driver. A
/// [`Queue`](crate::Queue) keeps several in flight.
///
/// A job that is forgotten (`mem::forget`) leaves the engine busy, its buffers claimed and their
/// memory mapped: the device may be using them. [`recover`](Self::recover) makes the engine usable
/// again; the buffers stay leaked.
///
/// ```
/// use contigo::{Align, Engine, Pool, Region, drivers::zdma::{SimZdma, Zdma}, sim::SimBoard};
/// use core::time::Duration;
/// let board = SimBoard::new(1);
/// let region = Region::new(board.memory(64 * 1024)?)?;
/// let pool = Pool::<2>::new(region.carve(2 * 1024, Align::LINE)?, 1024)?;
/// let device = SimZdma::new(&board, board.port());
/// let mut engine = Engine::new(Zdma::simple_simulated(device.window()?)?)?;
///
/// let [mut from, to] = [pool.take()?, pool.take()?];
/// from.view_mut::<u8>()?.fill(7);
/// let job = engine.start([from.to_device(..100), to.from_device(..100)], &())?;
/// let [_, to] = job.wait(Duration::from_millis(20))?.buffers;
/// assert_eq!(to.view_at::<u8>(..100)?, [7; 100]);
/// # Ok::<(), contigo::Error>(())
/// ```
pub struct Engine<D, const OPERANDS: usize> {
    pub(super) driver: D,
    /// The driver's, read once: what the buffers of a job were checked for is what they are given
    /// back for.
    pub(super) port: Port,
    pub(super) busy: bool,
    /// How many bytes the job under way may write.
    pub(super) most_bytes: usize,
    /// The slot of the job under way, or else of the next one: in a circle, from 0 after a stop.
    pub(super) slot: usize,
    /// On a simulated board: what the device had touched wrongly when the job under way began.
    pub(super) wrong: Result<WrongAccesses>,
    /// The device was stopped, and its driver may keep ends of before.
    forget: bool,
    pub(super) jobs: JobCounts,
    /// The operands of the job under way.
    pub(super) place: JobPlace<OPERANDS>,
}

/// How an engine's jobs ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct JobCounts {
    /// Jobs whose doorbell was rung.
    pub started: u64,
    /// Jobs whose result came back.
    pub completed: u64,
    /// Jobs that timed out, failed, or were dropped.
    pub stopped: u64,
}

impl<D: TypedDriver<OPERANDS>, const OPERANDS: usize> Engine<D, OPERANDS> {
    /// An engine over `driver`. The device is stopped first: a program that crashed may have left
    /// it running.
    ///
    /// # Errors
    /// [`Error::WillNotStop`], with the driver back.
    pub fn new(mut driver: D) -> Result<Self, Refused<D>> {
        const { assert!(1 <= OPERANDS && OPERANDS <= super::MAX_OPERANDS, "a job has 1 to 16 operands") };
        match driver.stop() {
            Ok(()) => Ok(Self {
                port: *driver.port(),
                driver,
                busy: false,
                most_bytes: 0,
                slot: 0,
                wrong: Ok(WrongAccesses::default()),
                forget: true,
                jobs: JobCounts::default(),
                place: JobPlace::new(),
            }),
            Err(error) => Err(Refused::new(error, driver)),
        }
    }

    /// Starts one job: checks every operand against the port and the driver, hands the caches over,
    /// and rings the doorbell.
    ///
    /// The operands are the device's until [`Running::wait`] gives them back. Every check is done
    /// before anything is touched, so a refused job leaves its buffers as they were.
    ///
    /// # Errors
    /// The operands come back with [`Error::Busy`], [`Error::WrongDirection`],
    /// [`Error::OutOfRange`], [`Error::BufferSize`] (also for no bytes), [`Error::OperandTooLong`],
    /// [`Error::BufferAlign`], [`Error::WrongBus`], [`Error::CoherencyMismatch`],
    /// [`Error::CannotSync`], [`Error::WholeBlock`], [`Error::SharedLine`] or
    /// [`Error::Unreachable`]. They also come back with the error of the driver's `check` or of the
    /// backend's sync. Where the device itself fails to start, they come back on the device's side,
    /// because it may have written them; with [`Error::WillNotStop`] they do not come back.
    #[inline]
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn start<'e, 'p, T>(
        &'e mut self,
        mut operands: [Operand<'p, T>; OPERANDS],
        args: &D::Args,
    ) -> Result<Running<'e, 'p, D, OPERANDS, T>, JobError<[Operand<'p, T>; OPERANDS]>> {
        let (site, words) = (Site::here(), D::words(args));
        // Once: `check` and `submit` see the same words.
        let args = words.as_ref();
        let mut slices = Slices::new();
        match self.prepare(&operands, &mut slices, args, site) {
            Ok(most_bytes) => self.most_bytes = most_bytes,
            Err((operand, error)) => return Err(JobError { operand, ..JobError::gave_back(error, operands) }),
        }
        barrier::before_doorbell();
        // From here on the device may have the addresses: nothing is given back, not even by a
        // panic in the driver, before it has been stopped.
        for (operand, slice) in operands.iter_mut().zip(&slices) {
            operand.give(&self.port, slice.addr);
        }
        if self.port.is_simulated() {
            self.wrong = tell_given(&self.driver, &self.port, &operands);
        }
        self.place.put(operands);
        self.busy = true;
        self.jobs.started += 1;
        // SAFETY: 1. `prepare` ran `check` on these slices and arguments. 2. The engine was not
        // busy, so that no job is in flight. 4. `slot` counts in the circle of `depth`, from 0
        // after a stop (`Running::look`, `was_stopped`). 3. The operands lie in their place, which
        // does not drop them. No view of them exists, and their region keeps them mapped while they
        // are not dropped. They come out only in `Running`, after `poll` or `stop`, or below, after
        // `stop`.
        let started = unsafe { self.driver.submit(self.slot, &slices, args) };
        if let Err(cause) = started {
            return Err(self.not_started(cause, site));
        }
        trace::happened(Event::Submit { port: self.port.name, job: self.jobs.started }, site);
        // SAFETY: `put` put operands of this `'p` and `T` there.
        Ok(unsafe { Running::new(self) })
    }

    /// The device did not take the job whose operands are in their place: it is stopped, and they
    /// come back, or they are leaked.
    #[cold]
    fn not_started<'p, T>(&mut self, cause: Error, site: Site) -> JobError<[Operand<'p, T>; OPERANDS]> {
        let stopped = self.stop();
        trace::happened(Event::Stop { port: self.port.name, job: self.jobs.started }, site);
        // SAFETY: `start` put operands of this `'p` and `T` there, and takes them nowhere else.
        let operands = unsafe { self.place.operands::<T>() };
        if let Err(error) = stopped {
            let len_bytes = operands.iter().map(|operand| operand.given().handed_over_bytes()).sum();
            trace::happened(Event::Leak { len_bytes }, site);
            return JobError::leaked(error, cause);
        }
        operands.iter().for_each(|operand| operand.given().at_rest());
        // SAFETY: as above.
        JobError::gave_back(cause, unsafe { self.place.take(|operand| Operand::refused(operand.into_dev())) })
    }

    /// Everything that can be refused, then the caches. An error says which operand it is about.
    #[inline]
    fn prepare<T>(
        &mut self,
        operands: &[Operand<'_, T>; OPERANDS],
        slices: &mut Slices<OPERANDS>,
        args: &[u32],
        site: Site,
    ) -> Result<usize, OperandError> {
        if self.busy {
            return Err((None, Error::Busy));
        }
        if self.forget {
            forget_ends(&mut self.driver);
            self.forget = false;
        }
        prepare(&self.driver, &self.port, operands, slices, args, site)
    }

    /// A job's end, with the driver's report.
    pub(super) fn done<B>(&self, buffers: B, completion: super::Completion) -> Done<B, D::Report> {
        Done { buffers, report: self.driver.report(&completion), completion }
    }
}

impl<D: Driver, const OPERANDS: usize> Engine<D, OPERANDS> {
    /// Stops the device after a job was forgotten, or after it would not stop and was reset from
    /// outside. The buffers of that job stay leaked.
    ///
    /// # Errors
    /// [`Error::WillNotStop`]: the engine stays busy.
    pub fn recover(&mut self) -> Result<()> {
        self.driver.stop()?;
        self.was_stopped();
        Ok(())
    }

    fn was_stopped(&mut self) {
        (self.busy, self.slot, self.forget) = (false, 0, true);
    }

    /// Stops the device after a job went wrong. Nothing that follows is done before the look that
    /// saw its end.
    pub(super) fn stop(&mut self) -> Result<()> {
        self.jobs.stopped += 1;
        self.driver.stop()?;
        barrier::after_completion();
        self.was_stopped();
        Ok(())
    }
}

impl<D, const OPERANDS: usize> Engine<D, OPERANDS> {
    /// Is a job running, or was one forgotten?
    pub const fn is_busy(&self) -> bool {
        self.busy
    }

    /// How this engine's jobs ended.
    pub const fn jobs(&self) -> JobCounts {
        self.jobs
    }

    /// The driver, to read what it reports of itself.
    pub const fn driver(&self) -> &D {
        &self.driver
    }

    /// The driver, for commands of its own between two jobs.
    ///
    /// # Safety
    /// 1. It stays where it is: it is not exchanged for another driver (`mem::swap`, an
    ///    assignment), whose port and device would be others.
    /// 2. No job and no program is submitted through it, unless its end was told before the next
    ///    job.
    /// 3. Jobs in flight are neither stopped nor looked for through it.
    pub const unsafe fn driver_mut(&mut self) -> &mut D {
        &mut self.driver
    }

    /// The driver, to make another engine or a queue of it. The next one stops the device first.
    pub fn into_driver(self) -> D {
        self.driver
    }

    /// The port.
    pub const fn port(&self) -> &Port {
        &self.port
    }
}

forward_as_fd!({D, const OPERANDS: usize} Engine<D, OPERANDS>, driver: D);

impl<D, const OPERANDS: usize> fmt::Debug for Engine<D, OPERANDS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("port", &self.port.name).field("busy", &self.busy).field("jobs", &self.jobs).finish()
    }
}
