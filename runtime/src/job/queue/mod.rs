#![allow(unsafe_code, reason = "doorbells are rung here, for operands that were just handed over")]
//! Several jobs in flight.

mod counts;
mod flight;
mod words;

pub use counts::{Cancelled, QueueCounts};

use super::{
    Completion, Done, Driver, JobError, TypedDriver,
    prepare::{at_rest, forget_ends},
};
use crate::{
    mem::{AnyThread, CpuBuf, DevBuf, Operand, Port, WrongAccesses},
    trace::{self, Event, Site},
    types::platform::forward_as_fd,
    types::{Error, Refused, Result, barrier},
};
use core::{
    fmt,
    mem::{ManuallyDrop, MaybeUninit},
    time::Duration,
};
use flight::{Buffers, InFlight, Look, State, buffers};

/// **It owns the buffers of its jobs in flight**: up to `SLOTS` of them, and no more than the
/// device takes at once.
///
/// Nothing borrows the queue for a job, so it can live in a structure. [`push`](Self::push) gives
/// the device a job, [`next`](Self::next) brings back one that ended. A wait that finds nothing
/// stops nothing. [`stop`](Self::stop) stops the device; jobs that had ended come out by `next`,
/// the others by [`take_back`](Self::take_back), and then the queue takes new ones.
///
/// | state | `push` | `next` | `take_back` |
/// |---|---|---|---|
/// | at work | a job more; [`Error::QueueFull`] | the next end, or `None` after the timeout | `None` |
/// | stopped, jobs inside | [`Error::QueueStopped`] | ends of before, then `None` | the oldest |
/// | stopped, empty | starts the device | `None` | `None` |
/// | will not stop, or the driver panicked | [`Error::QueueStopped`] | as at work | `None`, until [`stop`](Self::stop) succeeds |
///
/// A fault of the channel stops the device. A device that will not stop keeps its buffers inside:
/// reset it from outside, and call `stop` again. Dropping the queue stops the device and gives the
/// buffers back, or leaks them where it does not stop. Forgetting it leaks them.
///
/// ```
/// use contigo::{Align, Pool, Queue, Region, drivers::zdma::{SimZdma, Zdma}, sim::SimBoard};
/// use core::time::Duration;
/// let board = SimBoard::new(1);
/// let region = Region::new(board.memory(64 * 1024)?)?;
/// let pool = Pool::<8>::new(region.carve(8 * 1024, Align::LINE)?, 1024)?;
/// let channel = SimZdma::new(&board, board.port());
/// // `SLOTS` is capacity; this channel takes one job at a time.
/// let mut queue: Queue<'_, _, 4, 2> = Queue::new(Zdma::simple_simulated(channel.window()?)?)?;
///
/// let [mut from, to] = [pool.take()?, pool.take()?];
/// from.view_mut::<u8>()?.fill(7);
/// queue.push([from.to_device(..100), to.from_device(..100)], &())?;
/// let mut looks = 0;
/// let done = loop {
///     looks += 1;
///     match queue.next(Duration::from_millis(1))? {
///         Some(done) => break done,
///         None if looks < 20 => {} // nothing came, and nothing was stopped
///         None => return Err(contigo::Error::Timeout { timeout_us: 20_000 }),
///     }
/// };
/// let [_, to] = done.buffers;
/// assert_eq!(to.view_at::<u8>(..100)?, [7; 100]);
/// # Ok::<(), contigo::Error>(())
/// ```
pub struct Queue<'p, D: Driver, const SLOTS: usize, const OPERANDS: usize = 1, T = AnyThread> {
    driver: D,
    /// The driver's, read once: what the buffers were checked for is what they are given back for.
    port: Port,
    /// In order: a circle that begins at `oldest`. Otherwise: a job's place is its slot.
    ///
    /// INVARIANT: a buffer is here while its device may touch it, and is taken out only after
    /// `poll` told its slot's end, or after `stop`.
    places: ManuallyDrop<[Option<InFlight<'p, OPERANDS, T>>; SLOTS]>,
    in_order: bool,
    /// How many jobs at most: the smaller of `SLOTS` and what the device takes.
    depth: usize,
    /// How many slots the driver numbers.
    slots: usize,
    /// The place of the oldest job, where they end in order.
    oldest: usize,
    /// How many are in flight.
    len: usize,
    /// The slot of the next job, where they end in order; otherwise where the search for one
    /// begins.
    next_slot: usize,
    state: State,
    /// On a simulated board: what the device had touched wrongly when the first of the jobs in
    /// flight began.
    wrong: Result<WrongAccesses>,
    counts: QueueCounts,
}

impl<'p, D: TypedDriver<OPERANDS>, const SLOTS: usize, const OPERANDS: usize, T> Queue<'p, D, SLOTS, OPERANDS, T> {
    /// Gives the device one job more: all the checks of [`Engine::start`](crate::Engine::start),
    /// its cache maintenance, and the doorbell. Returns the job's slot.
    ///
    /// # Errors
    /// The operands come back with [`Error::QueueFull`], [`Error::QueueStopped`], or what
    /// [`Engine::start`](crate::Engine::start) says. Where the device itself did not take the job,
    /// it was stopped, and the jobs before are to be taken back. Where it would not stop
    /// ([`Error::WillNotStop`]), these operands stay inside too.
    #[inline]
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn push(&mut self, operands: [Operand<'p, T>; OPERANDS], args: &D::Args) -> Result<usize, JobError<[Operand<'p, T>; OPERANDS]>> {
        self.push_words(operands, D::words(args).as_ref())
    }

    /// The next job that ended, with its buffers on the CPU's side: waits at most for `timeout`.
    /// `None`: none has ended, and nothing is stopped; or none is in flight, and it did not wait.
    ///
    /// # Errors
    /// - Buffers in the error: this job failed alone ([`Error::Fault`]), or its caches could not be
    ///   maintained. The others go on.
    /// - No buffers: the channel failed and was stopped; the jobs are inside, to be taken back.
    ///   With [`Error::WillNotStop`] it was not stopped.
    /// - [`Error::Argument`] without buffers: `timeout` is longer than an hour
    ///   ([`MAX_TIMEOUT`](crate::MAX_TIMEOUT)). Nothing was looked at, and all jobs go on.
    #[inline]
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn next(&mut self, timeout: Duration) -> Look<'p, Done<[CpuBuf<'p, T>; OPERANDS], D::Report>, T, OPERANDS> {
        let Some((place, completion)) = self.ended_well(timeout, Site::here())? else { return Ok(None) };
        let mut operands = self.places.get(place).into_iter().flatten().flat_map(|job| &job.operands);
        if let Err(error) = operands.try_for_each(|operand| operand.given().sync_for_cpu(Site::here())) {
            return Err(self.failed_alone(place, error));
        }
        self.done(place, Operand::reclaim, completion)
    }

    /// As [`next`](Self::next), and the buffers stay on the device's side: for the next device,
    /// with no cache maintenance between.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    #[inline]
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn next_device(&mut self, timeout: Duration) -> Look<'p, Done<[DevBuf<'p, T>; OPERANDS], D::Report>, T, OPERANDS> {
        let Some((place, completion)) = self.ended_well(timeout, Site::here())? else { return Ok(None) };
        self.done(place, Operand::into_dev, completion)
    }

    /// A job's end, with what `each` makes of its operands at `place`.
    #[inline]
    fn done<B>(
        &mut self,
        place: usize,
        each: impl Fn(Operand<'p, T>) -> B,
        completion: Completion,
    ) -> Look<'p, Done<[B; OPERANDS], D::Report>, T, OPERANDS> {
        match self.take_out(place, each) {
            Some(buffers) => Ok(Some(Done { buffers, report: self.driver.report(&completion), completion })),
            // `prepare` compared their count with the driver's, which never changes.
            None => Err(self.failed_alone(place, Error::Busy)),
        }
    }
}

impl<'p, D: Driver, const SLOTS: usize, const OPERANDS: usize, T> Queue<'p, D, SLOTS, OPERANDS, T> {
    /// A queue over `driver`. The device is stopped first: a program that crashed may have left it
    /// running.
    ///
    /// # Errors
    /// The driver comes back with [`Error::WillNotStop`], or [`Error::Argument`] where its jobs
    /// have more than `OPERANDS` operands.
    pub fn new(driver: D) -> Result<Self, Refused<D>> {
        let mut place = MaybeUninit::uninit();
        Self::new_in(&mut place, driver)?;
        // SAFETY: `new_in` made it.
        Ok(unsafe { place.assume_init() })
    }

    /// As [`new`](Self::new), in the caller's memory: for a deep queue, which no stack holds. The
    /// caller drops it there (`assume_init_drop`), or forgets it, which leaks its buffers.
    ///
    /// # Errors
    /// As [`new`](Self::new); there is no queue in `place` then.
    pub fn new_in(place: &mut MaybeUninit<Self>, mut driver: D) -> Result<&mut Self, Refused<D>> {
        const { assert!(1 <= SLOTS, "a queue has a place at least") };
        const { assert!(1 <= OPERANDS && OPERANDS <= super::MAX_OPERANDS, "a job has 1 to 16 operands") };
        let (value, max) = (driver.operands().len() as u64, OPERANDS as u64);
        // A kernel of streams or numbers has none.
        if value > max {
            return Err(Refused::new(Error::Argument { name: "the count of operands", value, min: 0, max, multiple_of: 1 }, driver));
        }
        if let Err(error) = driver.stop() {
            return Err(Refused::new(error, driver));
        }
        forget_ends(&mut driver);
        let slots = driver.depth().max(1);
        let (port, in_order) = (*driver.port(), driver.in_order());
        let queue = place.as_mut_ptr();
        // SAFETY: every field is written once, and none is read; `queue` is `place`, which is
        // borrowed alone. A place is written as none, one after the other.
        unsafe {
            (&raw mut (*queue).port).write(port);
            (&raw mut (*queue).in_order).write(in_order);
            (&raw mut (*queue).depth).write(slots.min(SLOTS));
            (&raw mut (*queue).slots).write(slots);
            (&raw mut (*queue).driver).write(driver);
            let places = (&raw mut (*queue).places).cast::<Option<InFlight<'p, OPERANDS, T>>>();
            (0..SLOTS).for_each(|at| places.add(at).write(None));
            (&raw mut (*queue).oldest).write(0);
            (&raw mut (*queue).len).write(0);
            (&raw mut (*queue).next_slot).write(0);
            (&raw mut (*queue).state).write(State::AtWork);
            (&raw mut (*queue).wrong).write(Ok(WrongAccesses::default()));
            (&raw mut (*queue).counts).write(QueueCounts::default());
            Ok(place.assume_init_mut())
        }
    }

    /// Stops the device, whatever it is doing. Jobs that had ended still come out by
    /// [`next`](Self::next); the others by [`take_back`](Self::take_back).
    ///
    /// # Errors
    /// [`Error::WillNotStop`]: the jobs stay inside. Reset the device from outside, and call it
    /// again.
    pub fn stop(&mut self) -> Result<()> {
        self.counts.stopped += 1;
        self.state = State::MustStop;
        self.driver.stop()?;
        barrier::after_completion();
        self.state = State::Stopped;
        if self.port.is_simulated() {
            self.places.iter().flatten().for_each(|job| at_rest(&job.operands));
        }
        self.begin_anew_if_empty();
        Ok(())
    }

    /// The oldest job that a stopped device has not ended, with its buffers still on the device's
    /// side. `None`: there is none, or the device is at work.
    pub fn take_back(&mut self) -> Option<Cancelled<Buffers<'p, T, OPERANDS>>> {
        let place = self.oldest_to_take_back()?;
        let InFlight { operands, slot, .. } = self.places.get_mut(place).and_then(Option::take)?;
        self.came_out(place);
        self.counts.cancelled += 1;
        Some(Cancelled { slot, buffers: buffers(operands) })
    }

    /// Stops the device and drops every job's buffers, which gives them back to their pools.
    ///
    /// # Errors
    /// As [`stop`](Self::stop).
    pub fn clear(&mut self) -> Result<()> {
        self.stop()?;
        for _ in 0..SLOTS {
            drop(self.take_back());
        }
        Ok(())
    }

    /// How many jobs are in flight.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Is none in flight?
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Would a push be refused for want of a place?
    pub const fn is_full(&self) -> bool {
        self.len == self.depth
    }

    /// How many jobs can be in flight: the smaller of `SLOTS` and what the device takes.
    pub const fn depth(&self) -> usize {
        self.depth
    }

    /// Does it take no job: is the device stopped with jobs inside, or is it to be stopped first?
    pub fn is_stopped(&self) -> bool {
        self.state != State::AtWork
    }

    /// How its jobs ended.
    pub fn counts(&self) -> QueueCounts {
        QueueCounts { ran_dry: self.driver.ran_dry().unwrap_or(self.counts.ran_dry), ..self.counts }
    }

    /// How often the device was stopped.
    pub(in crate::job) const fn stops(&self) -> u64 {
        self.counts.stopped
    }

    /// The driver, to read what it reports of itself.
    pub const fn driver(&self) -> &D {
        &self.driver
    }

    /// The driver, for commands of its own.
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

    /// Readies the interrupt for an event loop: [`Driver::arm_irq`]. Then look
    /// ([`next`](Self::next) with [`Duration::ZERO`]), and only then sleep.
    ///
    /// # Errors
    /// The error of the interrupt's file.
    pub fn arm_irq(&self) -> Result<Option<i32>> {
        self.driver.arm_irq()
    }

    /// The port.
    pub const fn port(&self) -> &Port {
        &self.port
    }
}

impl<D: Driver, const SLOTS: usize, const OPERANDS: usize, T> Drop for Queue<'_, D, SLOTS, OPERANDS, T> {
    /// Stops the device and gives the buffers back, or leaks them.
    fn drop(&mut self) {
        if self.len == 0 {
            return;
        }
        if self.state == State::Stopped || self.stop().is_ok() {
            // SAFETY: `drop` runs once, and the device is stopped.
            unsafe { ManuallyDrop::drop(&mut self.places) }
        } else {
            let all = self.places.iter().flatten().flat_map(|job| &job.operands);
            let len_bytes = all.map(|operand| operand.given().handed_over_bytes()).sum();
            trace::happened(Event::Leak { len_bytes }, Site::NONE);
        }
    }
}

forward_as_fd!({'p, D: Driver, const SLOTS: usize, const OPERANDS: usize, T} Queue<'p, D, SLOTS, OPERANDS, T>, driver: D);

impl<D: Driver, const SLOTS: usize, const OPERANDS: usize, T> fmt::Debug for Queue<'_, D, SLOTS, OPERANDS, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue")
            .field("driver", &self.driver.name())
            .field("port", &self.port.name)
            .field("in_flight", &self.len)
            .field("depth", &self.depth)
            .field("state", &self.state)
            .field("counts", &self.counts())
            .finish()
    }
}
