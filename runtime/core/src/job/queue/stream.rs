//! Frames that a device writes one after the other.

use super::places::{MAX_WORDS, argument};
use super::{Cancelled, Done, Queue};
use crate::job::{Driver, QueueCounts};
use crate::mem::{CpuBuf, DevBuf, Pool};
use crate::trace::Site;
use crate::types::platform::forward_as_fd;
use crate::types::{Direction, Error, Refused, Result, timeout_us};
use core::fmt;
use core::time::Duration;
use heapless::Vec;

/// **A stream owns the buffers that its device fills**, and keeps as many of them with the device
/// as the program asks for: a camera, a converter, a network port.
///
/// [`next`](Self::next) gives the oldest frame that arrived; its view shows exactly the bytes
/// received, and no others were invalidated. [`give_back`](Self::give_back) gives the buffer to the
/// device again. A dropped frame goes back to its pool, and the next `next` fetches it from there.
/// If the pool has more buffers than the device has at once, the device is never without one while
/// frames are out.
///
/// **Loss is counted**: [`counts`](Self::counts) has the number of underruns, of frames that
/// failed, and of frames that were cancelled. The cyclic mode of some hardware, which overwrites
/// frames that the CPU reads, is not used.
///
/// A fault of the channel stops the stream: the frames before it come first, then the error, and
/// [`start`](Self::start) begins anew. A frame that comes late stops nothing: `next` answers
/// `None`, and the frame comes later.
///
/// ```
/// use contigo::{Driver, Result, Stream};
/// use core::time::Duration;
/// /// The mean of 1,000 frames' first bytes, of any camera.
/// fn mean(camera: &mut Stream<impl Driver>) -> Result<u32> {
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
///     assert_eq!(camera.counts().underruns, 0, "frames were lost");
///     Ok(sum / 1_000)
/// }
/// ```
pub struct Stream<D: Driver> {
    queue: Queue<D>,
    pool: Pool,
    /// The argument words of each job.
    words: Vec<u32, MAX_WORDS>,
    /// The most bytes of a buffer that the device takes.
    max_bytes: usize,
    /// Between `start` and a stop.
    running: bool,
    /// A frame that has arrived, and that the last call could not take back from the device.
    arrived: Option<Done<DevBuf>>,
}

/// One frame: its bytes, on the CPU's side, and what the device said.
#[derive(Debug)]
#[must_use = "dropping it gives its buffer back to the pool"]
pub struct Frame {
    /// Its view shows the bytes received. [`CpuBuf::whole`] shows the rest of the buffer too, which
    /// has nothing new.
    pub buf: CpuBuf,
    /// The device's status for this frame, as the driver's documentation has it; 0 if it has
    /// none.
    pub status: u32,
    /// What else the device reports, as the driver's documentation has it.
    pub words: [u32; 4],
    /// Is the packet's end in the buffer? `None`: the device receives no packets.
    pub last: Option<bool>,
}

impl<D: Driver> Stream<D> {
    /// A stream over `driver`, whose jobs have one operand, which the device writes. The device has
    /// at most `in_flight` buffers of `pool` at once. Each job has the argument words `words`. The
    /// device is stopped; [`start`](Self::start) starts it.
    ///
    /// # Errors
    /// The driver comes back with [`Error::Argument`] if its jobs do not have one operand or
    /// `words` are more than 64. It comes back with [`Error::WrongDirection`] if the device does
    /// anything but write the operand, or with an error of [`Queue::new`].
    pub fn new(driver: D, pool: Pool, in_flight: usize, words: &[u32]) -> Result<Self, Refused<D>> {
        let [spec] = driver.operands() else {
            let error = argument("the count of a stream's operands", driver.operands().len(), 1, 1);
            return Err(Refused::new(error, driver));
        };
        let max_bytes = spec.max_bytes;
        if spec.direction != Direction::FromDevice {
            return Err(Refused::new(
                Error::WrongDirection { index: 0, expected: Direction::FromDevice },
                driver,
            ));
        }
        let Ok(words) = Vec::from_slice(words) else {
            return Err(Refused::new(
                argument("the count of argument words", words.len(), 0, MAX_WORDS),
                driver,
            ));
        };
        Ok(Self {
            queue: Queue::new(driver, in_flight)?,
            pool,
            words,
            max_bytes,
            running: false,
            arrived: None,
        })
    }

    /// Gives the device a buffer for each place, which starts it, also after a stop or a fault.
    /// Frames that were not fetched by then are dropped. Returns how many buffers the device has:
    /// fewer than places if the pool has no more.
    ///
    /// # Errors
    /// [`Error::NoSlots`] if the pool has none, [`Error::QueueStopped`] if the device has not
    /// stopped, or an error of [`Queue::submit`].
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn start(&mut self) -> Result<usize> {
        if !self.running {
            self.arrived = None;
            // Frames that had arrived too: nothing fetched them.
            self.queue.drop_if_stopped();
        }
        if self.queue.is_stopped() {
            return Err(Error::QueueStopped { in_flight: self.queue.len() });
        }
        self.running = true;
        let given = self.give_all();
        self.running &= given.is_ok();
        given
    }

    /// The oldest frame that arrived. Waits at most for `timeout`. `None`: none did, and nothing is
    /// stopped. After a [`stop`](Self::stop): the frames that had arrived before, then `None`.
    ///
    /// First it gives the device the buffers that the pool has, for the places that are free. If
    /// several frames have arrived, they are made ready for the CPU together, and the buffers that
    /// come back meanwhile are given to the device together: never more of them wait for that than
    /// the device has.
    ///
    /// # Errors
    /// This frame failed alone ([`Error::Fault`]) and is counted: the stream goes on. Its caches
    /// could not be maintained: the next call tries again with this frame. The channel failed: it
    /// is stopped ([`is_running`](Self::is_running)). [`Error::NoSlots`]: the device has no buffer
    /// and the pool has none, so that nothing can come. [`Error::Argument`]: `timeout` is longer
    /// than an hour ([`MAX_TIMEOUT`](crate::types::MAX_TIMEOUT)), and nothing was done.
    #[inline]
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn next(&mut self, timeout: Duration) -> Result<Option<Frame>> {
        timeout_us(timeout)?;
        // Before anything else: this frame may have the pool's last buffer.
        let arrived = match self.arrived.take() {
            Some(arrived) => arrived,
            None => {
                if self.running {
                    self.give_all()?;
                }
                let stops = self.queue.counts.stopped;
                let ended = self.queue.wait_frame(timeout, Site::here());
                self.running &= self.queue.counts.stopped == stops;
                let Some(Done { buffers: [buffers], job, bytes, status, words, last }) = ended?
                else {
                    return Ok(None);
                };
                Done { buffers, job, bytes, status, words, last }
            }
        };
        if let Err(error) = arrived.buffers.sync_for_cpu(Site::here()) {
            self.arrived = Some(arrived);
            return Err(error);
        }
        let Done { buffers, bytes, status, words, last, .. } = arrived;
        let buf = buffers.reclaim();
        let bytes = bytes.unwrap_or(self.max_bytes).min(buf.len_bytes());
        let buf = buf.slice(..bytes).unwrap_or_else(|refused| refused.into_returned());
        Ok(Some(Frame { buf, status, words, last }))
    }

    /// Gives all of a frame's buffer to the device again. If the device has a buffer in every
    /// place, or is stopped, the buffer goes back to its pool.
    ///
    /// # Errors
    /// The error of [`Queue::submit`]; the buffer is in its pool. Or that of
    /// [`Queue::ring_doorbell`]: the device was stopped, and the buffer is inside.
    #[inline]
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn give_back(&mut self, buf: CpuBuf) -> Result<()> {
        self.give(buf)?;
        self.ring(Site::here())
    }

    fn ring(&mut self, site: Site) -> Result<()> {
        let stops = self.queue.counts.stopped;
        let rung = self.queue.ring_unless_few(site);
        self.running &= self.queue.counts.stopped == stops;
        Ok(rung?)
    }

    /// The same, without a doorbell.
    #[inline]
    #[cfg_attr(feature = "audit", track_caller)]
    fn give(&mut self, buf: CpuBuf) -> Result<()> {
        if !self.running || self.queue.is_full() {
            return Ok(());
        }
        let (stops, buf) = (self.queue.counts.stopped, buf.whole());
        let range = ..buf.len_bytes().min(self.max_bytes);
        self.queue.hold_doorbell();
        let submitted = self.queue.submit([buf.from_device(range)], &self.words);
        self.running &= self.queue.counts.stopped == stops;
        submitted?;
        Ok(())
    }

    /// Stops the device. Frames that had arrived still come out by [`next`](Self::next); the other
    /// buffers by [`take_back`](Self::take_back), or stay for the next [`start`](Self::start).
    ///
    /// # Errors
    /// [`Error::WillNotStop`]: the buffers stay inside. Reset the device from outside, and call
    /// `stop` again.
    pub fn stop(&mut self) -> Result<()> {
        self.running = false;
        self.queue.stop()
    }

    /// The oldest buffer that a stopped device has not filled.
    pub fn take_back(&mut self) -> Option<DevBuf> {
        // Its jobs have one buffer.
        let Cancelled { buffers: [buf], .. } = self.queue.take_back().ok()??;
        Some(buf)
    }

    /// Is the stream between [`start`](Self::start) and a stop or a fault?
    pub const fn is_running(&self) -> bool {
        self.running
    }

    /// How its frames ended, and how often the device underran.
    pub fn counts(&self) -> QueueCounts {
        self.queue.counts()
    }

    /// The queue below, for reading its state.
    pub const fn queue(&self) -> &Queue<D> {
        &self.queue
    }

    /// Puts a buffer into each free place, while the pool has any. Returns how many the device has.
    #[inline]
    #[cfg_attr(feature = "audit", track_caller)]
    fn give_all(&mut self) -> Result<usize> {
        let mut given = Ok(());
        for _ in self.queue.len()..self.queue.capacity() {
            match self.pool.take() {
                Ok(buf) => given = self.give(buf),
                Err(_) if !self.queue.is_empty() => break,
                Err(error) => return Err(error),
            }
            if given.is_err() {
                break;
            }
        }
        // Also after an error: those before it are the device's.
        let rung = self.ring(Site::here());
        given?;
        rung?;
        Ok(self.queue.len())
    }
}

forward_as_fd!({D: Driver} Stream<D>, queue: D);

impl<D: Driver> fmt::Debug for Stream<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream")
            .field("running", &self.running)
            .field("queue", &self.queue)
            .finish_non_exhaustive()
    }
}
