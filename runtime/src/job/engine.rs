#![allow(unsafe_code, reason = "the doorbell is rung here, for operands that were just handed over")]
//! One accelerator and its job.

use super::{Accelerator, JobError, Running};
use crate::{
    mem::{DevBuf, DevSlice, Operand, Port},
    trace::{self, Event, Site},
    types::{Error, Refused, Result, barrier},
};
use core::{fmt, mem::ManuallyDrop};

/// The most operands a job can have: an `s_axilite` block of 4 KiB holds more pointers than that, and a driver that needs
/// more wants a descriptor ring.
const MAX_BUFFERS: usize = 16;

/// One accelerator behind one port, with at most one job at a time.
///
/// A job that is forgotten (`mem::forget`) leaves the engine busy, its buffers claimed and their memory mapped: the device
/// may be using them. [`recover`](Self::recover) makes the engine usable again; the buffers stay leaked.
///
/// ```
/// use contigo::{Align, Engine, Pool, Region, Timeout, drivers::zdma::{SimZdma, Zdma}, sim::SimBoard};
/// let board = SimBoard::new(1);
/// let region = Region::new(board.memory(64 * 1024)?)?;
/// let pool = Pool::<2>::new(region.carve(2 * 1024, Align::LINE)?, 1024)?;
/// let device = SimZdma::new(&board, board.port());
/// let mut engine = Engine::new(Zdma::simple_simulated(device.window()?)?)?;
///
/// let [mut from, to] = [pool.take()?, pool.take()?];
/// from.view_mut::<u8>()?.fill(7);
/// let job = engine.start([from.to_device(..100), to.from_device(..100)], &())?;
/// let [_, to] = job.wait(Timeout::ms(20))?;
/// assert_eq!(to.view_at::<u8>(..100)?, [7; 100]);
/// # Ok::<(), contigo::Error>(())
/// ```
pub struct Engine<A, const BUFFERS: usize> {
    pub(super) accelerator: A,
    /// The accelerator's, read once: what the buffers of a job were checked for is what they are given back for.
    pub(super) port: Port,
    pub(super) busy: bool,
    pub(super) jobs: JobCounts,
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

impl<A: Accelerator<BUFFERS>, const BUFFERS: usize> Engine<A, BUFFERS> {
    /// An engine over `accelerator`. The device is stopped first: a program that crashed may have left it running.
    ///
    /// # Errors
    /// [`Error::WillNotStop`], with the accelerator back.
    pub fn new(mut accelerator: A) -> Result<Self, Refused<A>> {
        const { assert!(1 <= BUFFERS && BUFFERS <= MAX_BUFFERS, "a job has 1 to 16 operands") };
        match accelerator.quiesce() {
            Ok(()) => Ok(Self { port: *accelerator.port(), accelerator, busy: false, jobs: JobCounts::default() }),
            Err(error) => Err(Refused::new(error, accelerator)),
        }
    }

    /// Starts one job: checks every operand against the port, hands the caches over, and rings the doorbell.
    ///
    /// The operands are the device's until [`Running::wait`] gives them back. Every check is done before anything is
    /// touched, so a refused job leaves its buffers as they were.
    ///
    /// # Errors
    /// The operands come back with [`Error::Busy`], [`Error::WrongDirection`], [`Error::OutOfRange`],
    /// [`Error::BufferSize`], [`Error::WrongBus`], [`Error::CoherencyMismatch`], [`Error::CannotSync`],
    /// [`Error::WholeBlock`], [`Error::SharedLine`], [`Error::Unreachable`], what the accelerator's `check` says, or what
    /// the backend's sync says. Where the accelerator itself fails to start, they come back on the device's side, because it may
    /// have written them; with [`Error::WillNotStop`] they do not come back.
    #[inline]
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn start<'e, 'p, T>(
        &'e mut self,
        operands: [Operand<'p, T>; BUFFERS],
        args: &A::Args,
    ) -> Result<Running<'e, 'p, A, BUFFERS, T>, JobError<[Operand<'p, T>; BUFFERS]>> {
        let site = Site::here();
        let slices = match self.prepare(&operands, args, site) {
            Ok(slices) => slices,
            Err((operand, error)) => return Err(JobError { operand, ..JobError::gave_back(error, operands) }),
        };
        barrier::before_doorbell();
        // From here on the device may have the addresses: nothing is given back, not even by a panic in the driver,
        // before it has been stopped.
        let mut addrs = slices.iter().map(|slice| slice.addr);
        let port = self.port;
        let buffers = operands.map(|operand| operand.into_dev(&port, addrs.next().unwrap_or(DevSlice::EMPTY.addr)));
        let buffers = ManuallyDrop::new(buffers);
        if port.is_simulated() {
            self.tell_given(&buffers);
        }
        self.busy = true;
        self.jobs.started += 1;
        // SAFETY: `prepare` ran `check` on these slices and arguments. The operands are `DevBuf`s inside a `ManuallyDrop`: no
        // view of them exists, their region keeps them mapped while they are not dropped, and they come out only in
        // `Running`, after `poll` or `quiesce`, or below, after `quiesce`.
        let started = unsafe { self.accelerator.start(&slices, args) };
        if let Err(cause) = started {
            let stopped = self.stop();
            trace::happened(Event::Stop { port: self.port.name, job: self.jobs.started }, site);
            return Err(match stopped {
                Ok(()) => {
                    buffers.iter().for_each(DevBuf::at_rest);
                    JobError::gave_back(cause, ManuallyDrop::into_inner(buffers).map(Operand::refused))
                }
                Err(error) => {
                    let len_bytes = buffers.iter().map(DevBuf::handed_over_bytes).sum();
                    trace::happened(Event::Leak { len_bytes }, site);
                    JobError::leaked(error, cause)
                }
            });
        }
        trace::happened(Event::Submit { port: self.port.name, job: self.jobs.started }, site);
        Ok(Running::new(self, ManuallyDrop::into_inner(buffers)))
    }

    /// Stops the device after a job was forgotten, or after it would not stop and was reset from outside. The buffers of
    /// that job stay leaked.
    ///
    /// # Errors
    /// [`Error::WillNotStop`]: the engine stays busy.
    pub fn recover(&mut self) -> Result<()> {
        self.accelerator.quiesce()?;
        self.busy = false;
        Ok(())
    }

    /// Is a job running, or was one forgotten?
    pub const fn is_busy(&self) -> bool {
        self.busy
    }

    /// How this engine's jobs ended.
    pub const fn jobs(&self) -> JobCounts {
        self.jobs
    }

    /// The accelerator, to read what it reports of itself.
    pub const fn accelerator(&self) -> &A {
        &self.accelerator
    }

    /// The port.
    pub const fn port(&self) -> &Port {
        &self.port
    }

    /// Everything that can be refused, then the caches. An error says which operand it is about.
    fn prepare<T>(
        &self,
        operands: &[Operand<'_, T>; BUFFERS],
        args: &A::Args,
        site: Site,
    ) -> Result<[DevSlice; BUFFERS], (Option<usize>, Error)> {
        if self.busy {
            return Err((None, Error::Busy));
        }
        let mut slices = [DevSlice::EMPTY; BUFFERS];
        for (index, ((operand, slice), direction)) in operands.iter().zip(&mut slices).zip(A::DIRECTIONS).enumerate() {
            if operand.direction() != direction {
                return Err((Some(index), Error::WrongDirection { index, expected: direction }));
            }
            *slice = operand.check(index, &self.port, A::ADDR_BITS).map_err(|error| (Some(index), error))?;
        }
        self.accelerator.check(&slices, args).map_err(|error| (None, error))?;
        for (index, operand) in operands.iter().enumerate() {
            operand.prepare(&self.port, site).map_err(|error| (Some(index), error))?;
        }
        Ok(slices)
    }

    /// A simulated board hears what the device is given. Apart from the fast path.
    #[cold]
    #[inline(never)]
    fn tell_given<T>(&self, buffers: &[DevBuf<'_, T>; BUFFERS]) {
        buffers.iter().zip(A::DIRECTIONS).for_each(|(buf, direction)| buf.is_given(&self.port, direction));
    }

    /// Stops the device after a job went wrong. Nothing that follows is done before the look that
    /// saw its end.
    pub(super) fn stop(&mut self) -> Result<()> {
        self.jobs.stopped += 1;
        self.accelerator.quiesce()?;
        barrier::after_completion();
        self.busy = false;
        Ok(())
    }
}

impl<A, const BUFFERS: usize> fmt::Debug for Engine<A, BUFFERS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("port", &self.port.name).field("busy", &self.busy).field("jobs", &self.jobs).finish()
    }
}
