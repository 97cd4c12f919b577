#![allow(unsafe_code, reason = "a driver can be changed behind a queue only by a promise")]
//! The queue over one device, which owns its jobs.
//!
//! | file | what it holds |
//! |---|---|
//! | `mod` | the queue, and how many jobs its driver gets at once |
//! | `jobs` | what a program calls: submit, wait, run with its time limit, stop, take back |
//! | `flight` | a job on its way in: checked, handed over, its doorbell; a stop, a fault |
//! | `ends` | a job on its way out: polled, compared with what it got, its buffers the CPU's |
//! | `burst` | one doorbell and one call for the caches of several jobs; jobs that wait for room |
//! | `stream` | frames of a pool, and how often the device found none |
//! | `done` | what a program gets back |
//! | `list`, `places` | the table of jobs: places, and lists of them |

mod burst;
mod done;
mod ends;
mod flight;
mod jobs;
mod list;
mod places;
mod stream;

pub use done::{Cancelled, Done};
pub use stream::{Frame, Stream};

use super::{Driver, QueueCounts};
use crate::mem::region::{Given, Memory, wherever};
use crate::mem::{Port, WrongAccesses};
use crate::trace::{self, Event, Site};
use crate::types::platform::forward_as_fd;
use crate::types::{Error, Refused, Result};
use core::fmt;
use core::ptr::NonNull;
use flight::State;
use list::{List, Place};
use places::{Places, Plan};

/// How many bytes [`Queue::with_memory`] needs for `jobs` jobs of `operands` operands each,
/// wherever they begin. It can be computed at compile time, for a static.
///
/// # Errors
/// [`Error::Argument`]: no jobs or more than 4,096, or more than 16 operands.
pub const fn queue_bytes(jobs: usize, operands: usize) -> Result<usize> {
    match Plan::new(jobs, operands) {
        Ok(plan) => Ok(wherever(plan.layout())),
        Err(error) => Err(error),
    }
}

/// **Jobs for one device, and their buffers**: as many as the program asked for, whatever the
/// device takes at once.
///
/// [`run`](Self::run) runs one job and waits for it. With [`submit`](Self::submit) and
/// [`wait`](Self::wait) several are in flight: jobs that the device cannot take yet wait in the
/// queue, and `wait` submits them as others end. The queue owns their buffers, so it can live in a
/// structure beside the pool, and move to a thread. It yields only its own jobs.
///
/// A `wait` that finds nothing stops nothing. [`stop`](Self::stop) stops the device: jobs that had
/// ended still come by `wait`, the others by [`take_back`](Self::take_back), and then the queue
/// takes new ones.
///
/// | state | `submit` | `wait` | `take_back` |
/// |---|---|---|---|
/// | at work | one job more; [`Error::QueueFull`] | the next end, or `None` after the timeout | `None` |
/// | stopped, jobs inside | [`Error::QueueStopped`] | ends of before, then `None` | the oldest |
/// | stopped, empty | starts the device | `None` | `None` |
/// | will not stop, or the driver panicked | [`Error::QueueStopped`] | as at work | `None`, until [`stop`](Self::stop) succeeds |
///
/// A fault of the channel stops the device. A device that will not stop keeps its buffers inside:
/// reset it from outside, and call `stop` again. Dropping the queue stops the device and gives the
/// buffers back, or leaks those of a device that does not stop. Forgetting it leaks them.
///
/// The length of an array says how many operands there are, and `wait` takes the number of buffers
/// from its result type:
///
/// ```
/// use contigo::{Align, sim::{SimDevice, zdma::ZdmaModel, SimBoard}, Queue, Region};
/// use core::time::Duration;
/// let board = SimBoard::new(1);
/// let region = Region::new(board.memory(64 * 1024)?)?;
/// let pool = region.pool(8, 1024)?;
/// let channel = SimDevice::<ZdmaModel>::new(&board, board.port());
/// let mut queue = Queue::new(channel.window()?.simple()?, 4)?;
///
/// let [mut from, to] = [pool.take()?, pool.take()?];
/// from.view_mut::<u8>()?.fill(7);
/// let [from, to] = queue.run([from.to_device(..100), to.from_device(..100)], &[], Duration::from_millis(20))?.buffers;
/// assert_eq!(to.view_at::<u8>(..100)?, [7; 100]);
///
/// // Three in flight, on a channel that takes one at a time.
/// for _ in 0..3 {
///     queue.submit([pool.take()?.to_device(..), pool.take()?.from_device(..)], &[])?;
/// }
/// while !queue.is_empty() {
///     let Some(done) = queue.wait(Duration::from_millis(20))? else { break };
///     let [_from, _to] = done.buffers;
/// }
/// # Ok::<(), contigo::Error>(())
/// ```
pub struct Queue<D: Driver> {
    driver: D,
    /// The driver's port, read once: buffers are given back for the port they were checked for.
    port: Port,
    in_order: bool,
    /// The bus addresses that port and driver both reach.
    reach: (u64, u64),
    /// How many slots the driver has.
    slots: usize,
    /// How many jobs the driver is given at once: if they end out of order, a bit of `slots_used`
    /// marks each slot that is in use.
    most_given: usize,
    /// INVARIANT: operands are here while the device may touch them, and are taken out only after
    /// `poll` reported their slot's end, or after `stop`.
    places: Places,
    free: List,
    /// Jobs that the driver has not been given yet, the oldest first.
    waiting: List,
    /// Jobs that the driver has, in the order in which it was given them.
    given: List,
    /// Jobs whose ends the driver has reported, and whose buffers the caller has not taken.
    ended: List,
    /// The slot of the next job, if jobs end in order.
    next: usize,
    /// Bit N: slot N has a job. For the first 64 slots, if jobs end out of order.
    slots_used: u64,
    state: State,
    /// Jobs are submitted without a doorbell, and how many were.
    held: bool,
    owed: usize,
    /// The device was stopped, and its driver may still report earlier ends.
    forget: bool,
    /// The error of a waiting job that the device did not take, or one that was found beside an
    /// end: the next poll returns it, after the ends at hand.
    late: Option<(Error, Error)>,
    /// On a simulated board: the device's wrong accesses when the first of the jobs in flight
    /// began.
    wrong: Result<WrongAccesses>,
    counts: QueueCounts,
}

impl<D: Driver> Queue<D> {
    /// A queue of at most `jobs` jobs, 1 to 4,096, over `driver`. The jobs lie in pages from the
    /// kernel. The device is stopped first: a program that crashed may have left it running.
    ///
    /// # Errors
    /// The driver comes back with [`Error::WillNotStop`]; with [`Error::Argument`] for a count of
    /// jobs that is out of range, or a driver whose jobs have more than 16 operands; or with
    /// [`Error::Os`] or [`Error::Unsupported`] if the kernel has no pages, or there is no kernel.
    pub fn new(mut driver: D, jobs: usize) -> Result<Self, Refused<D>> {
        let made = Plan::new(jobs, driver.operands().len()).and_then(|plan| {
            let memory = Memory::from_kernel(plan.layout())?;
            driver.stop()?;
            Ok((plan, memory))
        });
        match made {
            // SAFETY: the memory is new, and was made for this plan.
            Ok((plan, memory)) => Ok(Self::over(driver, unsafe { Places::write(&plan, memory) })),
            Err(error) => Err(Refused::new(error, driver)),
        }
    }

    /// As [`new`](Self::new), without a kernel: the jobs lie in `memory`, which is given for ever.
    /// [`queue_bytes`] says how much is enough.
    ///
    /// # Errors
    /// As [`new`](Self::new), and the memory comes back with the driver; [`Error::Exhausted`] where
    /// it is too small.
    pub fn with_memory(
        mut driver: D,
        jobs: usize,
        memory: Given,
    ) -> Result<Self, Refused<(D, Given)>> {
        // From here on no use of the reference can invalidate what is made of the memory.
        let mut memory = NonNull::from(memory);
        let made = Plan::new(jobs, driver.operands().len()).and_then(|plan| {
            // SAFETY: `memory` is given for ever, and comes back only if nothing is made of it.
            let given = unsafe { Memory::given(plan.layout(), memory)? };
            driver.stop()?;
            Ok((plan, given))
        });
        match made {
            // SAFETY: `given` was made for this plan, and nothing is in it.
            Ok((plan, given)) => Ok(Self::over(driver, unsafe { Places::write(&plan, given) })),
            // SAFETY: nothing was made of the memory. It is the caller's again, for ever.
            Err(error) => Err(Refused::new(error, (driver, unsafe { memory.as_mut() }))),
        }
    }

    fn over(driver: D, places: Places) -> Self {
        let (in_order, slots) = (driver.in_order(), driver.depth().max(1));
        let mut queue = Self {
            port: *driver.port(),
            in_order,
            reach: driver.port().reach(driver.addr_bits()),
            slots,
            most_given: if in_order { slots } else { slots.min(u64::BITS as usize) },
            driver,
            places,
            free: List::EMPTY,
            waiting: List::EMPTY,
            given: List::EMPTY,
            ended: List::EMPTY,
            next: 0,
            slots_used: 0,
            state: State::AtWork,
            held: false,
            owed: 0,
            forget: true,
            late: None,
            wrong: Ok(WrongAccesses::default()),
            counts: QueueCounts::default(),
        };
        // There are fewer than a `Place` can number.
        let places = (0..queue.places.count()).filter_map(|at| Place::try_from(at).ok());
        places.for_each(|place| queue.free.push(&mut queue.places, place));
        queue
    }

    /// Stops the device and drops every job's buffers, which gives them back to their pools.
    ///
    /// # Errors
    /// As [`stop`](Self::stop).
    pub fn clear(&mut self) -> Result<()> {
        self.stop()?;
        self.drop_jobs();
        Ok(())
    }

    /// The same, of a queue that was stopped.
    pub(super) fn drop_if_stopped(&mut self) {
        if self.state == State::Stopped {
            self.drop_jobs();
        }
    }

    /// Drops the buffers of all jobs, of which the device has none.
    fn drop_jobs(&mut self) {
        while let Some(place) = self.ended.first().or_else(|| self.oldest_to_take_back()) {
            self.hand_out(place, |_, operand| drop(operand.into_dev()));
        }
    }

    /// How many jobs are inside: with the device, waiting for it, and ended.
    pub const fn len(&self) -> usize {
        self.given.len() + self.waiting.len() + self.ended.len()
    }

    /// Is no job inside?
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Would a `submit` be refused for lack of a place?
    pub const fn is_full(&self) -> bool {
        self.free.is_empty()
    }

    /// How many jobs can be inside: what the program asked for.
    pub const fn capacity(&self) -> usize {
        self.places.count()
    }

    /// Does it refuse jobs: is the device stopped with jobs inside, or must it be stopped first?
    pub fn is_stopped(&self) -> bool {
        self.state != State::AtWork
    }

    /// How its jobs ended.
    pub fn counts(&self) -> QueueCounts {
        QueueCounts {
            underruns: self.driver.underruns().unwrap_or(self.counts.underruns),
            ..self.counts
        }
    }

    /// The driver, to read what it reports of itself.
    pub const fn driver(&self) -> &D {
        &self.driver
    }

    /// The driver, for commands of its own.
    ///
    /// # Safety
    /// 1. The driver stays where it is: it is not exchanged for another driver (`mem::swap`, an
    ///    assignment), whose port and device would be others.
    /// 2. No job and no program is submitted through it, unless its end was reported before the
    ///    next job.
    /// 3. Jobs in flight are neither stopped nor polled through it.
    pub const unsafe fn driver_mut(&mut self) -> &mut D {
        &mut self.driver
    }

    /// Arms the interrupt for an event loop: [`Driver::arm_irq`]. Poll after that
    /// ([`try_next`](Self::try_next)), and only then sleep.
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

impl<D: Driver> Drop for Queue<D> {
    /// Stops the device and gives the buffers back, or leaks those that the device may touch.
    fn drop(&mut self) {
        if self.is_empty() {
            return;
        }
        if self.state == State::Stopped || self.stop().is_ok() {
            self.drop_jobs();
            return;
        }
        let given = self.given.iter(&self.places).flat_map(|place| self.places.operands(place));
        let len_bytes = given.map(|operand| operand.given().handed_over_bytes()).sum();
        trace::happened(Event::Leak { len_bytes }, Site::NONE);
        // The device has not got these.
        while let Some(place) = self.ended.first().or_else(|| self.waiting.first()) {
            self.hand_out(place, |_, operand| drop(operand.into_dev()));
        }
    }
}

forward_as_fd!({D: Driver} Queue<D>, driver: D);

impl<D: Driver> fmt::Debug for Queue<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue")
            .field("driver", &self.driver.name())
            .field("port", &self.port.name)
            .field("with_the_device", &self.given.len())
            .field("waiting", &self.waiting.len())
            .field("ended", &self.ended.len())
            .field("capacity", &self.capacity())
            .field("state", &self.state)
            .field("counts", &self.counts())
            .finish()
    }
}
