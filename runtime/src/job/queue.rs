#![allow(unsafe_code, reason = "doorbells are rung here, for operands that were just handed over")]
//! Several jobs in flight.

use super::{
    Completion, Done, Driver, JobError, TypedDriver,
    prepare::{at_rest, prepare, received, tell_given},
};
use crate::{
    mem::{AnyThread, CpuBuf, DevBuf, DevSlice, Operand, Port},
    trace::{self, Event, Site},
    types::platform::forward_as_fd,
    types::{Error, Refused, Result, Timeout, barrier},
};
use core::{
    fmt,
    mem::{ManuallyDrop, MaybeUninit},
};
use heapless::Vec;

/// The buffers of one job, on the device's side.
type Buffers<'p, T, const OPERANDS: usize> = Vec<DevBuf<'p, T>, OPERANDS>;
/// The same in flight.
type Given<'p, T, const OPERANDS: usize> = Vec<Operand<'p, T>, OPERANDS>;

/// **It owns the buffers of its jobs in flight**: up to `SLOTS` of them, and no more than the device
/// takes at once.
///
/// Nothing borrows the queue for a job, so it can live in a structure. [`push`](Self::push) gives
/// the device a job, [`next`](Self::next) brings back one that ended. A wait that finds nothing stops
/// nothing. [`stop`](Self::stop) stops the device; jobs that had ended come out by `next`, the others
/// by [`take_back`](Self::take_back), and then the queue takes new ones.
///
/// | state | `push` | `next` | `take_back` |
/// |---|---|---|---|
/// | at work | a job more; [`Error::QueueFull`] | the next end, or `None` after the timeout | `None` |
/// | stopped, jobs inside | [`Error::QueueStopped`] | what had ended before, then `None` | the oldest |
/// | stopped, empty | starts the device | `None` | `None` |
/// | will not stop, or the driver panicked | [`Error::QueueStopped`] | as at work | `None`, until [`stop`](Self::stop) succeeds |
///
/// A fault of the channel stops the device. What will not stop keeps its buffers inside: reset it
/// from outside, and call `stop` again. Dropping the queue stops the device and gives the buffers
/// back, or leaks them where it does not stop. Forgetting it leaks them.
///
/// ```
/// use contigo::{Align, Pool, Queue, Region, Timeout, drivers::zdma::{SimZdma, Zdma}, sim::SimBoard};
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
///     match queue.next(Timeout::ms(1))? {
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
    /// INVARIANT: a buffer is here while its device may touch it, and is taken out only after `poll`
    /// told its slot's end, or after `stop`.
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
    /// The slot of the next job, where they end in order; otherwise where the search for one begins.
    next_slot: usize,
    state: State,
    counts: QueueCounts,
}

struct InFlight<'p, const OPERANDS: usize, T> {
    /// Given to the device.
    operands: Given<'p, T, OPERANDS>,
    slot: usize,
    /// What the caller calls it.
    tag: usize,
    /// Which push it was, to take jobs back in their order.
    serial: u64,
    /// What the device may write.
    most_bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    AtWork,
    Stopped,
    /// It would not stop; or its driver panicked where it starts or stops, and nobody knows what the
    /// device does. `stop` comes first.
    MustStop,
}

/// What became of a queue's jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct QueueCounts {
    /// Jobs that the device was given.
    pub pushed: u64,
    /// Jobs that ended well.
    pub completed: u64,
    /// Jobs that failed alone, while the others went on.
    pub failed: u64,
    /// Jobs that were taken back after a stop.
    pub cancelled: u64,
    /// How often the device was stopped: by a fault, or by [`Queue::stop`].
    pub stopped: u64,
    /// How often the device was left without a job: for a stream, loss. The hardware's own count
    /// where it has one ([`Driver::ran_dry`]); otherwise how often the last job ended before the
    /// next one was pushed.
    pub ran_dry: u64,
}

/// A job that had not ended when the device was stopped.
#[derive(Debug)]
#[must_use = "it holds the job's buffers"]
pub struct Cancelled<B> {
    /// Which slot it was in.
    pub slot: usize,
    /// Its buffers: the device may have written them in part.
    pub buffers: B,
}

impl<'p, D: TypedDriver<OPERANDS>, const SLOTS: usize, const OPERANDS: usize, T> Queue<'p, D, SLOTS, OPERANDS, T> {
    /// Gives the device one job more: all the checks of [`Engine::start`](crate::Engine::start), its
    /// cache maintenance, and the doorbell. Returns the job's slot.
    ///
    /// # Errors
    /// The operands come back with [`Error::QueueFull`], [`Error::QueueStopped`], or what
    /// [`Engine::start`](crate::Engine::start) says. Where the device itself did not take the job,
    /// it was stopped, and the jobs before are to be taken back; where it would not stop
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
    /// - No buffers: the channel failed and was stopped; the jobs are inside, to be taken back. With
    ///   [`Error::WillNotStop`] it was not stopped.
    #[inline]
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn next(
        &mut self,
        timeout: Timeout,
    ) -> Result<Option<Done<[CpuBuf<'p, T>; OPERANDS], D::Report>>, JobError<Buffers<'p, T, OPERANDS>>> {
        let Some((operands, completion)) = self.end(timeout, Site::here())? else { return Ok(None) };
        let mut synced = Ok(());
        for operand in &operands {
            synced = synced.and_then(|()| operand.given().sync_for_cpu(Site::here()));
        }
        match (synced, operands.into_array()) {
            (Ok(()), Ok(operands)) => Ok(Some(self.done(operands.map(|operand: Operand<'p, T>| operand.into_dev().reclaim()), completion))),
            (synced, operands) => {
                let operands = operands.map_or_else(|operands| operands, Vec::from_array);
                Err(JobError::gave_back(synced.err().unwrap_or(Error::Busy), buffers(operands)))
            }
        }
    }

    /// As [`next`](Self::next), and the buffers stay on the device's side: for the next device, with
    /// no cache maintenance between.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    #[inline]
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn next_device(
        &mut self,
        timeout: Timeout,
    ) -> Result<Option<Done<[DevBuf<'p, T>; OPERANDS], D::Report>>, JobError<Buffers<'p, T, OPERANDS>>> {
        let Some((operands, completion)) = self.end(timeout, Site::here())? else { return Ok(None) };
        match operands.into_array() {
            Ok(operands) => Ok(Some(self.done(operands.map(Operand::into_dev), completion))),
            // `prepare` compared the count with the driver's, which never changes.
            Err(operands) => Err(JobError::gave_back(Error::Busy, buffers(operands))),
        }
    }

    fn done<B>(&self, buffers: B, completion: Completion) -> Done<B, D::Report> {
        Done { buffers, report: self.driver.report(&completion), completion }
    }
}

impl<'p, D: Driver, const SLOTS: usize, const OPERANDS: usize, T> Queue<'p, D, SLOTS, OPERANDS, T> {
    /// A queue over `driver`. The device is stopped first: a program that crashed may have left it
    /// running.
    ///
    /// # Errors
    /// The driver comes back with [`Error::WillNotStop`], or [`Error::Argument`] where its jobs have
    /// more than `OPERANDS` operands.
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
        if !(1..=max).contains(&value) {
            return Err(Refused::new(Error::Argument { name: "the count of operands", value, min: 1, max, multiple_of: 1 }, driver));
        }
        if let Err(error) = driver.stop() {
            return Err(Refused::new(error, driver));
        }
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
            (&raw mut (*queue).counts).write(QueueCounts::default());
            Ok(place.assume_init_mut())
        }
    }

    /// As [`push`](Self::push), with the words that the driver's documentation names: for a driver
    /// without types, such as `&mut dyn Driver`.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    #[inline]
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn push_words(
        &mut self,
        operands: [Operand<'p, T>; OPERANDS],
        args: &[u32],
    ) -> Result<usize, JobError<[Operand<'p, T>; OPERANDS]>> {
        self.push_vec(Vec::from_array(operands), args).map_err(|failed| {
            // They are as many as they were.
            let buffers = failed.buffers.and_then(|operands| operands.into_array().ok());
            JobError { error: failed.error, cause: failed.cause, operand: failed.operand, buffers }
        })
    }

    /// As [`push_words`](Self::push_words), with as many operands as the driver's jobs have, for a
    /// caller that knows their count only at run time.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn push_vec(
        &mut self,
        mut operands: Vec<Operand<'p, T>, OPERANDS>,
        args: &[u32],
    ) -> Result<usize, JobError<Vec<Operand<'p, T>, OPERANDS>>> {
        let site = Site::here();
        let mut slices = [DevSlice::EMPTY; OPERANDS];
        let (slices, _) = slices.split_at_mut(operands.len().min(OPERANDS));
        match self.ready(&mut operands, slices, args, site) {
            Ok(most_bytes) => {
                let launched = self.launch(|there| *there = operands, 0, most_bytes, slices, args, site);
                launched.map_err(|refused| {
                    refused.map(|job| job.operands.into_iter().map(|operand| Operand::refused(operand.into_dev())).collect())
                })
            }
            Err((operand, error)) => Err(JobError { operand, ..JobError::gave_back(error, operands) }),
        }
    }

    /// As [`push_vec`](Self::push_vec), and no more is moved than the operands that there are: from
    /// the caller's list into their place. The job's end has its `tag`
    /// ([`next_each`](Self::next_each)), by which a caller finds what it keeps for the job.
    ///
    /// # Errors
    /// As [`push`](Self::push). Where the error has buffers, all operands are in the list again.
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn push_list(&mut self, operands: &mut Vec<Operand<'p, T>, OPERANDS>, args: &[u32], tag: usize) -> Result<usize, JobError<()>> {
        let site = Site::here();
        let mut slices = [DevSlice::EMPTY; OPERANDS];
        let (slices, _) = slices.split_at_mut(operands.len().min(OPERANDS));
        let most_bytes = match self.ready(operands, slices, args, site) {
            Ok(most_bytes) => most_bytes,
            Err((operand, error)) => return Err(JobError { operand, ..JobError::gave_back(error, ()) }),
        };
        // There is room for `OPERANDS` on both sides.
        let fill = |there: &mut Given<'p, T, OPERANDS>| operands.drain(..).for_each(|operand| drop(there.push(operand)));
        self.launch(fill, tag, most_bytes, slices, args, site).map_err(|refused| {
            refused.map(|job| {
                let back = job.operands.into_iter().map(|operand| Operand::refused(operand.into_dev()));
                back.for_each(|operand| drop(operands.push(operand)));
            })
        })
    }

    /// As [`next_device`](Self::next_device), with what the device said as it is.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    #[inline]
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn next_words(&mut self, timeout: Timeout) -> Result<Option<Done<Buffers<'p, T, OPERANDS>>>, JobError<Buffers<'p, T, OPERANDS>>> {
        let Some((operands, completion)) = self.end(timeout, Site::here())? else { return Ok(None) };
        Ok(Some(Done { buffers: buffers(operands), report: completion, completion }))
    }

    /// As [`next_words`](Self::next_words), and each buffer goes from its place to `each`, with its
    /// job's tag and its number. The answer is the tag and what the device said; a job that failed
    /// alone is one whose `failed` says why.
    ///
    /// # Errors
    /// As [`next`](Self::next), for the channel as a whole.
    #[inline]
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn next_each(
        &mut self,
        timeout: Timeout,
        each: impl FnMut(usize, usize, DevBuf<'p, T>),
    ) -> Result<Option<(usize, Completion)>, JobError<()>> {
        match self.ended(timeout, Site::here()) {
            Ok(Some((place, completion))) => Ok(self.hand_out(place, each).map(|tag| (tag, completion))),
            Ok(None) => Ok(None),
            Err(failed) => Err(failed.map(drop)),
        }
    }

    /// The next job that ended.
    #[inline]
    fn end(
        &mut self,
        timeout: Timeout,
        site: Site,
    ) -> Result<Option<(Given<'p, T, OPERANDS>, Completion)>, JobError<Buffers<'p, T, OPERANDS>>> {
        let Some((place, completion)) = self.ended(timeout, site)? else { return Ok(None) };
        let Some(InFlight { operands, .. }) = self.places.get_mut(place).and_then(Option::take) else { return Ok(None) };
        self.is_out(place);
        if let Some(what) = completion.failed {
            let device = self.driver.name();
            return Err(JobError::gave_back(Error::Fault { device, status: completion.status, what }, buffers(operands)));
        }
        Ok(Some((operands, completion)))
    }

    /// A job's end, and the place where its operands still are.
    #[inline]
    fn ended(&mut self, timeout: Timeout, site: Site) -> Result<Option<(usize, Completion)>, JobError<Buffers<'p, T, OPERANDS>>> {
        if self.len == 0 {
            return Ok(None);
        }
        let timeout = if self.state == State::Stopped { Timeout::NOW } else { timeout };
        let completion = match self.driver.poll(timeout) {
            Ok(Some(completion)) => completion,
            Ok(None) => return Ok(None),
            Err(error) => return Err(self.fault(error, site)),
        };
        let place = if self.in_order { self.oldest } else { completion.slot };
        let job = self.places.get_mut(place).and_then(Option::as_mut).filter(|job| job.slot == completion.slot);
        let most_bytes = job.as_ref().map(|job| job.most_bytes);
        if let Err(error) = completion.distrust(self.driver.name(), most_bytes.is_some(), most_bytes.unwrap_or(0)) {
            return Err(self.fault(error, site));
        }
        barrier::after_completion();
        let Some(InFlight { operands, .. }) = job else { return Ok(None) };
        if self.port.is_simulated() {
            at_rest(operands);
        }
        // The last one, and no other was given: where that is a stop's doing, nothing is lost.
        if self.len == 1 && self.state != State::Stopped {
            self.counts.ran_dry += 1;
        }
        trace::happened(Event::Complete { port: self.port.name, job: self.counts.pushed }, site);
        if let Some(bytes) = completion.bytes {
            received(operands, bytes);
        }
        match completion.failed {
            Some(_) => self.counts.failed += 1,
            None => self.counts.completed += 1,
        }
        Ok(Some((place, completion)))
    }

    /// Gives the buffers at `place` to `each`; the job's tag. The device does not have them.
    #[inline]
    fn hand_out(&mut self, place: usize, mut each: impl FnMut(usize, usize, DevBuf<'p, T>)) -> Option<usize> {
        let there = self.places.get_mut(place)?;
        let InFlight { operands, tag, .. } = there.as_mut()?;
        let tag = *tag;
        operands.drain(..).enumerate().for_each(|(index, operand)| each(tag, index, operand.into_dev()));
        *there = None;
        self.is_out(place);
        Some(tag)
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
        self.begin_anew();
        Ok(())
    }

    /// The oldest job that a stopped device has not ended, with its buffers still on the device's
    /// side. `None`: there is none, or the device is at work.
    pub fn take_back(&mut self) -> Option<Cancelled<Buffers<'p, T, OPERANDS>>> {
        let place = self.to_take_back()?;
        let InFlight { operands, slot, .. } = self.places.get_mut(place).and_then(Option::take)?;
        self.is_out(place);
        self.counts.cancelled += 1;
        Some(Cancelled { slot, buffers: buffers(operands) })
    }

    /// As [`take_back`](Self::take_back), and each buffer goes from its place to `each`. The answer
    /// is the job's tag.
    pub fn take_back_each(&mut self, each: impl FnMut(usize, usize, DevBuf<'p, T>)) -> Option<usize> {
        let place = self.to_take_back()?;
        self.counts.cancelled += 1;
        self.hand_out(place, each)
    }

    /// The place of the oldest job that a stopped device has not ended.
    fn to_take_back(&self) -> Option<usize> {
        if self.state != State::Stopped {
            return None;
        }
        let jobs = self.places.iter().enumerate().filter_map(|(place, job)| job.as_ref().map(|job| (job.serial, place)));
        jobs.min().map(|(_, place)| place)
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

    /// Is the device stopped, with jobs inside?
    pub fn is_stopped(&self) -> bool {
        self.state != State::AtWork
    }

    /// What became of its jobs.
    pub fn counts(&self) -> QueueCounts {
        QueueCounts { ran_dry: self.driver.ran_dry().unwrap_or(self.counts.ran_dry), ..self.counts }
    }

    /// How often the device was stopped.
    pub(super) const fn stops(&self) -> u64 {
        self.counts.stopped
    }

    /// The driver, to read what it reports of itself.
    pub const fn driver(&self) -> &D {
        &self.driver
    }

    /// The driver, for commands of its own.
    ///
    /// # Safety
    /// It stays where it is: it is not exchanged for another driver (`mem::swap`, an assignment),
    /// whose port and device would be others.
    pub const unsafe fn driver_mut(&mut self) -> &mut D {
        &mut self.driver
    }

    /// Readies the interrupt for an event loop: [`Driver::arm_irq`]. Then look ([`next`](Self::next) with
    /// [`Timeout::NOW`]), and only then sleep.
    ///
    /// # Errors
    /// What the interrupt's file says.
    pub fn arm_irq(&self) -> Result<Option<i32>> {
        self.driver.arm_irq()
    }

    /// The port.
    pub const fn port(&self) -> &Port {
        &self.port
    }

    /// Everything that can be refused, then the caches and the barrier before the doorbell. The
    /// operands are the device's then.
    #[inline]
    fn ready(
        &self,
        operands: &mut [Operand<'_, T>],
        slices: &mut [DevSlice],
        args: &[u32],
        site: Site,
    ) -> Result<usize, super::prepare::About> {
        if self.state != State::AtWork {
            return Err((None, Error::QueueStopped { in_flight: self.len }));
        }
        if self.is_full() {
            return Err((None, Error::QueueFull { depth: self.depth }));
        }
        let most_bytes = prepare(&self.driver, &self.port, operands, slices, args, site)?;
        barrier::before_doorbell();
        for (operand, slice) in operands.iter_mut().zip(&*slices) {
            operand.give(&self.port, slice.addr);
        }
        Ok(most_bytes)
    }

    /// Puts a job into its place by `fill`, and rings the doorbell. `ready` succeeded. Where the
    /// device did not take it and was stopped, the job is in the error.
    #[inline]
    fn launch(
        &mut self,
        fill: impl FnOnce(&mut Given<'p, T, OPERANDS>),
        tag: usize,
        most_bytes: usize,
        slices: &[DevSlice],
        args: &[u32],
        site: Site,
    ) -> Result<usize, JobError<InFlight<'p, OPERANDS, T>>> {
        let (place, slot) = self.free();
        // `free` found it, empty: the queue was not full.
        let Some(there) = self.places.get_mut(place) else { return Err(JobError::leaked(Error::Busy, Error::Busy)) };
        // From here on the device may have the addresses: the buffers are in their place, also when
        // the driver panics.
        let job = there.insert(InFlight { operands: Vec::new(), slot, tag, serial: self.counts.pushed, most_bytes });
        fill(&mut job.operands);
        if self.port.is_simulated() {
            tell_given(&self.port, &job.operands);
        }
        self.len += 1;
        self.counts.pushed += 1;
        // A driver that panics leaves the slot in use, and `next_slot` at it.
        self.state = State::MustStop;
        // SAFETY: 1. `ready` ran `check` on these slices and arguments. 2. `slot` is free and below
        // the driver's depth (`free`). 3. The buffers are `DevBuf`s in their place: no view of them
        // exists, their region keeps them mapped while they are not dropped, and they come out only
        // after `poll` told this slot's end, or after `stop`.
        let submitted = unsafe { self.driver.submit(slot, slices, args) };
        self.state = State::AtWork;
        if let Err(cause) = submitted {
            return Err(self.not_launched(place, cause, site));
        }
        self.next_slot = if slot + 1 >= self.slots { 0 } else { slot + 1 };
        trace::happened(Event::Submit { port: self.port.name, job: self.counts.pushed }, site);
        Ok(slot)
    }

    /// The device did not take the job at `place`: it is stopped, or the job stays inside.
    #[cold]
    fn not_launched(&mut self, place: usize, cause: Error, site: Site) -> JobError<InFlight<'p, OPERANDS, T>> {
        let stopped = self.stop();
        trace::happened(Event::Stop { port: self.port.name, job: self.counts.pushed }, site);
        if let Err(error) = stopped {
            return JobError::leaked(error, cause);
        }
        match self.places.get_mut(place).and_then(Option::take) {
            Some(job) => {
                self.len -= 1;
                self.counts.pushed -= 1;
                self.begin_anew();
                JobError::gave_back(cause, job)
            }
            None => JobError::leaked(cause, cause),
        }
    }

    /// A free place and its slot. The queue is not full.
    #[inline]
    fn free(&self) -> (usize, usize) {
        if self.in_order {
            let place = self.oldest + self.len;
            return (if place >= SLOTS { place - SLOTS } else { place }, self.next_slot);
        }
        let is_free = |slot: &usize| self.places.get(*slot).is_some_and(Option::is_none);
        let slot = (self.next_slot..self.depth).chain(0..self.next_slot.min(self.depth)).find(is_free).unwrap_or(SLOTS);
        (slot, slot)
    }

    /// The job at `place` came out.
    #[inline]
    fn is_out(&mut self, place: usize) {
        self.len -= 1;
        if place == self.oldest {
            self.oldest = if place + 1 >= SLOTS { 0 } else { place + 1 };
        }
        self.begin_anew();
    }

    /// A stopped queue that is empty starts from slot 0 (`Driver`, 11).
    #[inline]
    fn begin_anew(&mut self) {
        if self.state == State::Stopped && self.len == 0 {
            (self.state, self.oldest, self.next_slot) = (State::AtWork, 0, 0);
        }
    }

    /// The channel cannot go on: it is stopped, and the jobs stay inside.
    #[cold]
    fn fault(&mut self, cause: Error, site: Site) -> JobError<Buffers<'p, T, OPERANDS>> {
        let stopped = if self.state == State::Stopped { Ok(()) } else { self.stop() };
        trace::happened(Event::Stop { port: self.port.name, job: self.counts.pushed }, site);
        JobError::leaked(stopped.err().unwrap_or(cause), cause)
    }
}

/// The buffers of a job, still on the device's side.
#[inline]
fn buffers<'p, T, const OPERANDS: usize>(operands: Given<'p, T, OPERANDS>) -> Buffers<'p, T, OPERANDS> {
    operands.into_iter().map(Operand::into_dev).collect()
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
