//! Frames that a device writes one after the other.

use super::{Cancelled, Completion, Driver, Queue, QueueCounts, TypedDriver};
use crate::{
    mem::{AnyThread, CpuBuf, DevBuf, LocalPool, OneThread, Pool},
    trace::Site,
    types::platform::forward_as_fd,
    types::{Direction, Error, Refused, Result, timeout_us},
};
use core::{fmt, time::Duration};
use heapless::Vec;

/// The most argument words that a stream repeats for each frame.
const MAX_ARGS: usize = 16;

/// The pool that a stream's buffers come from: `&Pool`, `&LocalPool`, or one of your own.
pub trait Frames<'p> {
    /// [`AnyThread`] or [`OneThread`].
    type Thread;

    /// A free buffer. Dropping it gives it back.
    ///
    /// # Errors
    /// [`Error::NoSlots`].
    fn take(&self) -> Result<CpuBuf<'p, Self::Thread>>;
}

impl<'p, const SLOTS: usize> Frames<'p> for &'p Pool<'_, SLOTS> {
    type Thread = AnyThread;
    #[inline]
    fn take(&self) -> Result<CpuBuf<'p>> {
        Pool::take(self)
    }
}

impl<'p, const SLOTS: usize> Frames<'p> for &'p LocalPool<'_, SLOTS> {
    type Thread = OneThread;
    #[inline]
    fn take(&self) -> Result<CpuBuf<'p, OneThread>> {
        LocalPool::take(self)
    }
}

/// **It owns the buffers that its device fills**, and keeps as many of them with the device as the
/// queue below has places: a camera, a converter, a network port.
///
/// [`next`](Self::next) gives the oldest frame that arrived; its view shows exactly the bytes
/// received, and no others were invalidated. [`give_back`](Self::give_back) gives the buffer to the
/// device again. A frame that is dropped goes back to its pool, and the next `next` fetches it from
/// there. With more buffers in the pool than places, the device is never without one while frames
/// are out.
///
/// **Loss is counted**: [`counts`](Self::counts) says how often the device ran dry, how many frames
/// failed, and how many were cancelled. The cyclic mode of some hardware, which overwrites frames
/// that the CPU reads, is not used.
///
/// A fault of the channel stops the stream: the frames before it come first, then the error, and
/// [`start`](Self::start) begins anew. Nothing that comes late stops it: `next` answers `None`, and
/// the frame comes later.
///
/// Nothing borrows the stream for a frame, so it can live in a structure; with `&'static` set-up,
/// in one that has no lifetime.
///
/// ```
/// use contigo::{Frames, Result, Stream, TypedDriver};
/// use core::time::Duration;
/// /// The mean of 1,000 frames' first bytes, of any camera.
/// fn mean<'p, D: TypedDriver<1>, P: Frames<'p>>(camera: &mut Stream<'p, D, P, 8>) -> Result<u32> {
///     let (mut sum, mut frames) = (0, 0);
///     camera.start()?;
///     for _ in 0..10_000 {
///         let Some(frame) = camera.next(Duration::from_millis(100))? else { continue }; // late: it goes on
///         sum += frame.buf.view::<u8>()?.first().map_or(0, |&byte| u32::from(byte));
///         camera.give_back(frame.buf)?;
///         frames += 1;
///         if frames == 1_000 {
///             break;
///         }
///     }
///     camera.stop()?;
///     assert_eq!(camera.counts().ran_dry, 0, "frames were lost");
///     Ok(sum / 1_000)
/// }
/// ```
pub struct Stream<'p, D: Driver, P: Frames<'p>, const SLOTS: usize> {
    queue: Queue<'p, D, SLOTS, 1, P::Thread>,
    pool: P,
    /// The arguments of each job, beside its buffer.
    args: Vec<u32, MAX_ARGS>,
    /// As much of a buffer as the device takes.
    max_bytes: usize,
    /// Between `start` and a stop.
    running: bool,
    /// A frame that has arrived, and that the last call could not take back from the device.
    arrived: Option<Arrived<'p, P::Thread>>,
}

/// A frame on the device's side.
type Arrived<'p, T> = (DevBuf<'p, T>, Completion);

/// One frame: its bytes, on the CPU's side, and what the device said.
#[derive(Debug)]
#[must_use = "dropping it gives its buffer back to the pool"]
pub struct Frame<'p, R, T = AnyThread> {
    /// Its view shows the bytes received. [`CpuBuf::whole`] shows the rest of the buffer too, in
    /// which nothing new is.
    pub buf: CpuBuf<'p, T>,
    /// The driver's report, made from the completion.
    pub report: R,
    /// The device's own words.
    pub completion: Completion,
}

impl<'p, D: TypedDriver<1>, P: Frames<'p>, const SLOTS: usize> Stream<'p, D, P, SLOTS> {
    /// A stream over `driver`, whose jobs have one operand, which the device writes, and buffers of
    /// `pool`. The device is stopped; [`start`](Self::start) starts it.
    ///
    /// # Errors
    /// As [`with_words`](Self::with_words).
    pub fn new(driver: D, pool: P, args: &D::Args) -> Result<Self, Refused<D>> {
        Self::with_words(driver, pool, D::words(args).as_ref())
    }

    /// The oldest frame that arrived: waits at most for `timeout`. `None`: none did, and nothing is
    /// stopped. After a [`stop`](Self::stop): the frames that had arrived before, then `None`.
    ///
    /// First it gives the device whatever the pool has, where there are places.
    ///
    /// # Errors
    /// This frame failed alone ([`Error::Fault`]) and is counted: the stream goes on. Its caches
    /// could not be maintained: the next call tries again with this frame. The channel failed: it
    /// is stopped ([`is_running`](Self::is_running)). [`Error::NoSlots`]: the device has no buffer
    /// and the pool has none, so that nothing can come. [`Error::Argument`]: `timeout` is longer
    /// than an hour ([`MAX_TIMEOUT`](crate::MAX_TIMEOUT)), and nothing was done.
    #[inline]
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn next(&mut self, timeout: Duration) -> Result<Option<Frame<'p, D::Report, P::Thread>>> {
        Ok(self.next_words(timeout)?.map(|Frame { buf, completion, .. }| {
            let report = self.queue.driver().report(&completion);
            Frame { buf, report, completion }
        }))
    }
}

impl<'p, D: Driver, P: Frames<'p>, const SLOTS: usize> Stream<'p, D, P, SLOTS> {
    /// As [`new`](Self::new), with the words that the driver's documentation names, for a driver
    /// without types.
    ///
    /// # Errors
    /// The driver comes back with [`Error::Argument`] where its jobs have not one operand or `args`
    /// are more than 16 words. It comes back with [`Error::WrongDirection`] where the device does
    /// more or less than to write the operand, or with [`Error::WillNotStop`].
    pub fn with_words(driver: D, pool: P, args: &[u32]) -> Result<Self, Refused<D>> {
        let args = Vec::from_slice(args).map_err(|_| {
            let (value, max) = (args.len() as u64, MAX_ARGS as u64);
            Error::Argument { name: "argument words of a stream", value, min: 0, max, multiple_of: 1 }
        });
        match (args, driver.operands().first()) {
            (Err(error), _) => Err(Refused::new(error, driver)),
            (_, Some(spec)) if spec.direction != Direction::FromDevice => {
                Err(Refused::new(Error::WrongDirection { index: 0, expected: Direction::FromDevice }, driver))
            }
            (Ok(args), spec) => {
                let max_bytes = spec.map_or(0, |spec| spec.max_bytes);
                Ok(Self { queue: Queue::new(driver)?, pool, args, max_bytes, running: false, arrived: None })
            }
        }
    }

    /// Gives the device a buffer for each place, and so starts it; after a stop or a fault, anew.
    /// Frames that were not fetched by then are cancelled. Returns how many buffers the device has:
    /// fewer than places where the pool has no more.
    ///
    /// # Errors
    /// [`Error::NoSlots`] where the pool has none, [`Error::QueueStopped`] where the device has not
    /// stopped, or what [`Queue::push`] says.
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn start(&mut self) -> Result<usize> {
        if !self.running {
            self.arrived = None;
            for _ in 0..SLOTS {
                drop(self.queue.take_back());
            }
        }
        if self.queue.is_stopped() {
            return Err(Error::QueueStopped { in_flight: self.queue.len() });
        }
        self.running = true;
        let armed = self.arm();
        self.running &= armed.is_ok();
        armed
    }

    /// As [`next`](Self::next), with what the device said as it is.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    #[inline]
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn next_words(&mut self, timeout: Duration) -> Result<Option<Frame<'p, (), P::Thread>>> {
        timeout_us(timeout)?;
        let (buf, completion) = if self.arrived.is_some() {
            // Before anything else: it may have the pool's last buffer.
            let Some(arrived) = self.arrived.take() else { return Ok(None) };
            arrived
        } else {
            if self.running {
                self.arm()?;
            }
            let stops = self.queue.stops();
            let ended = self.queue.next_words(timeout);
            self.running &= self.queue.stops() == stops;
            let Some(mut done) = ended? else { return Ok(None) };
            let Some(buf) = done.buffers.pop() else { return Ok(None) };
            (buf, done.completion)
        };
        if let Err(error) = buf.sync_for_cpu(Site::here()) {
            self.arrived = Some((buf, completion));
            return Err(error);
        }
        let buf = buf.reclaim();
        let bytes = completion.bytes.unwrap_or(self.max_bytes).min(buf.len_bytes());
        let buf = buf.slice(..bytes).unwrap_or_else(|refused| refused.returned);
        Ok(Some(Frame { buf, report: (), completion }))
    }

    /// Gives the device a frame's buffer again, all of it. Where it has one in every place, or is
    /// stopped, the buffer goes back to its pool.
    ///
    /// # Errors
    /// The error of [`Queue::push`]; the buffer is in its pool.
    #[inline]
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn give_back(&mut self, buf: CpuBuf<'p, P::Thread>) -> Result<()> {
        if !self.running || self.queue.is_full() {
            return Ok(());
        }
        let (stops, buf) = (self.queue.stops(), buf.whole());
        let range = ..buf.len_bytes().min(self.max_bytes);
        let pushed = self.queue.push_words([buf.from_device(range)], &self.args);
        self.running &= self.queue.stops() == stops;
        pushed?;
        Ok(())
    }

    /// Stops the device. Frames that had arrived still come out by [`next`](Self::next); the other
    /// buffers by [`take_back`](Self::take_back), or stay for the next [`start`](Self::start).
    ///
    /// # Errors
    /// [`Error::WillNotStop`]: the buffers stay inside. Reset the device from outside, and call it
    /// again.
    pub fn stop(&mut self) -> Result<()> {
        self.running = false;
        self.queue.stop()
    }

    /// The oldest buffer that a stopped device has not filled.
    pub fn take_back(&mut self) -> Option<Cancelled<DevBuf<'p, P::Thread>>> {
        let Cancelled { slot, mut buffers } = self.queue.take_back()?;
        Some(Cancelled { slot, buffers: buffers.pop()? })
    }

    /// Is it between [`start`](Self::start) and a stop or a fault?
    pub const fn is_running(&self) -> bool {
        self.running
    }

    /// How its frames ended, and how often the device ran dry.
    pub fn counts(&self) -> QueueCounts {
        self.queue.counts()
    }

    /// The queue below, to look at.
    pub const fn queue(&self) -> &Queue<'p, D, SLOTS, 1, P::Thread> {
        &self.queue
    }

    /// Readies the interrupt for an event loop: as [`Queue::arm_irq`].
    ///
    /// # Errors
    /// The error of the interrupt's file.
    pub fn arm_irq(&mut self) -> Result<Option<i32>> {
        self.queue.arm_irq()
    }

    /// A buffer into each free place, while the pool has any. Returns how many the device has.
    #[inline]
    #[cfg_attr(feature = "audit", track_caller)]
    fn arm(&mut self) -> Result<usize> {
        for _ in self.queue.len()..self.queue.depth() {
            match self.pool.take() {
                Ok(buf) => self.give_back(buf)?,
                Err(_) if !self.queue.is_empty() => break,
                Err(error) => return Err(error),
            }
        }
        Ok(self.queue.len())
    }
}

forward_as_fd!({'p, D: Driver, P: Frames<'p>, const SLOTS: usize} Stream<'p, D, P, SLOTS>, queue: D);

impl<'p, D: Driver, P: Frames<'p>, const SLOTS: usize> fmt::Debug for Stream<'p, D, P, SLOTS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("running", &self.running).field("queue", &self.queue).finish_non_exhaustive()
    }
}
