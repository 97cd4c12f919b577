#![allow(unsafe_code, reason = "a buffer is taken out of an operand that is not dropped then")]
//! A buffer on its way into a job.

use super::{Chunk, Cleaning, CpuBuf, DevBuf, DevSlice, hand_over};
use crate::mem::Port;
use crate::mem::span::{Part, Span};
use crate::trace::Site;
use crate::types::{DevAddr, Direction, Error, Refused};
use core::fmt;
#[cfg(target_pointer_width = "64")]
use core::mem;
use core::mem::ManuallyDrop;
use core::ops::RangeBounds;

/// A buffer on its way into a job: which bytes of it, and what the device does with them. It has no
/// view and no address.
///
/// [`Queue::submit`](crate::Queue::submit) checks everything about it, and touches no cache before
/// all operands have passed. Dropping it without a job gives its buffer back.
#[must_use = "an operand does nothing until a job starts"]
pub struct Operand {
    /// A device's buffer from the start, so that a job changes it in place. If it belonged to the
    /// CPU, it is unsent until the job starts.
    buf: ManuallyDrop<DevBuf>,
    /// Which bytes; if they are not all in the buffer, the first and the last one asked for.
    asked: Span,
}

/// A compiler moves this many bytes inline, and more by a call (x86-64, eight registers of 16
/// bytes). Each operand of a job is moved several times.
#[cfg(target_pointer_width = "64")]
const _: () = assert!(mem::size_of::<Operand>() <= 128, "an operand is moved without a call");

impl CpuBuf {
    /// An operand that the device reads: bytes `range` of this buffer are cleaned, no others. The
    /// range is checked when the job starts.
    pub fn to_device(self, range: impl RangeBounds<usize>) -> Operand {
        Operand::from_dev(DevBuf::unsent(self), Part::of(range), Direction::ToDevice)
    }

    /// An operand that the device writes: the lines of `range` are cleaned before the job and
    /// invalidated after it, and no other bytes are lost. Where the CPU has only read the buffer
    /// since a device had it, there is nothing to clean (Linux `core-api/dma-api-howto.rst`).
    pub fn from_device(self, range: impl RangeBounds<usize>) -> Operand {
        Operand::from_dev(DevBuf::unsent(self), Part::of(range), Direction::FromDevice)
    }

    /// An operand that the device reads and writes.
    pub fn in_out(self, range: impl RangeBounds<usize>) -> Operand {
        Operand::from_dev(DevBuf::unsent(self), Part::of(range), Direction::Bidirectional)
    }
}

impl DevBuf {
    /// An operand that the next device reads: `range` of what was handed over first.
    pub fn to_device(self, range: impl RangeBounds<usize>) -> Operand {
        Operand::from_dev(self, Part::of(range), Direction::ToDevice)
    }

    /// An operand that the next device writes.
    pub fn from_device(self, range: impl RangeBounds<usize>) -> Operand {
        Operand::from_dev(self, Part::of(range), Direction::FromDevice)
    }

    /// An operand that the next device reads and writes.
    pub fn in_out(self, range: impl RangeBounds<usize>) -> Operand {
        Operand::from_dev(self, Part::of(range), Direction::Bidirectional)
    }
}

impl Operand {
    #[inline]
    fn from_dev(mut buf: DevBuf, part: Part, direction: Direction) -> Self {
        let (asked, inside) = part.within(buf.span());
        (buf.direction, buf.inside) = (direction, inside);
        Self { buf: ManuallyDrop::new(buf), asked }
    }

    /// All of a buffer whose job the device itself refused: the device may have written it.
    pub(crate) fn refused(buf: DevBuf) -> Self {
        Self::from_dev(buf, Part::of(..), Direction::Bidirectional)
    }

    /// Does the device read it, write it, or both?
    #[must_use]
    #[inline]
    pub(crate) fn direction(&self) -> Direction {
        self.buf.direction
    }

    /// The buffer, back from a job that was refused: `Err` holds one that was a device's already.
    ///
    /// # Errors
    /// None: `Err` is the other kind of buffer.
    pub fn into_buf(self) -> Result<CpuBuf, DevBuf> {
        if self.buf.is_unsent() { Ok(self.reclaim()) } else { Err(self.into_dev()) }
    }

    /// The buffer of a job that was refused or that failed, back on the CPU's side. After a failed
    /// job, what the device wrote is visible.
    ///
    /// # Errors
    /// As [`DevBuf::into_cpu`].
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn into_cpu(self) -> Result<CpuBuf, Refused<DevBuf>> {
        self.into_buf().or_else(DevBuf::into_cpu)
    }

    /// Checks memory against port, and returns where the device will find the bytes. Touches
    /// nothing.
    #[inline]
    pub(crate) fn check(
        &self,
        index: usize,
        port: &Port,
        reach: (u64, u64),
    ) -> Result<DevSlice, Error> {
        if !self.buf.inside {
            let (start, end) = (self.asked.start, self.asked.len);
            return Err(Error::OutOfRange { start, end, len_bytes: self.buf.span().len });
        }
        hand_over::check(self.chunk(), self.asked, self.direction(), index, port, reach)
    }

    /// Checks that the block has the bytes beside `slice` that a device reads in whole words of
    /// `word_bytes`. A block begins and ends with a line, so it has every word of up to a line.
    pub(crate) fn check_words(
        &self,
        index: usize,
        word_bytes: usize,
        slice: &DevSlice,
    ) -> Result<(), Error> {
        let mask = (word_bytes as u64).wrapping_sub(1);
        let (from, last) =
            (slice.addr.0, slice.addr.0.saturating_add(slice.len_bytes as u64).saturating_sub(1));
        let (word_from, word_last) = (from & !mask, last | mask);
        if (word_from, word_last) == (from, last) {
            return Ok(());
        }
        let block_from = from.saturating_sub(self.asked.start as u64);
        let block_last = block_from
            .saturating_add(self.chunk().state().mapping.len_bytes as u64)
            .saturating_sub(1);
        if word_from >= block_from && word_last <= block_last {
            return Ok(());
        }
        Err(Error::ReadsBeside {
            index,
            word_bytes,
            from: word_from,
            last: word_last,
            block_from,
            block_last,
        })
    }

    /// Makes the bytes ready for the device. `check` has passed.
    #[inline(always)]
    pub(crate) fn prepare(&self, port: &Port, cleaning: Cleaning, site: Site) -> Result<(), Error> {
        // The fast path: no line to maintain, or not yet.
        let is_later = port.coherent || cleaning == Cleaning::Later;
        if is_later && self.buf.is_unsent() { Ok(()) } else { self.maintain(port, site) }
    }

    #[inline(never)]
    fn maintain(&self, port: &Port, site: Site) -> Result<(), Error> {
        if self.buf.is_unsent() {
            if self.buf.is_clean() {
                return Ok(());
            }
            hand_over::prepare(self.chunk(), self.asked, self.direction(), port, site)
        } else {
            self.buf.prepare(self.asked, self.direction(), port, site)
        }
    }

    /// Makes it the device's. `prepare` has succeeded, and `addr` is what `check` found.
    #[inline]
    pub(crate) fn give(&mut self, port: &Port, addr: DevAddr, cleaning: Cleaning) {
        let direction = self.direction();
        if self.buf.is_unsent() {
            self.buf.first(self.asked, direction, port, addr, cleaning);
        } else {
            self.buf.again(self.asked, direction, port, addr);
        }
    }

    /// The device's buffer, once it was given.
    #[inline]
    pub(crate) fn given(&self) -> &DevBuf {
        &self.buf
    }

    /// As `given`.
    #[inline]
    pub(crate) fn given_mut(&mut self) -> &mut DevBuf {
        &mut self.buf
    }

    /// The buffer, as a device's.
    #[inline]
    pub(crate) fn into_dev(self) -> DevBuf {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: `this` is not dropped and not used after this, so that the buffer is taken once.
        unsafe { ManuallyDrop::take(&mut this.buf) }
    }

    /// The buffer, as the CPU's: the caller did what `DevBuf::reclaim` asks for.
    #[inline]
    pub(crate) fn reclaim(self) -> CpuBuf {
        self.into_dev().reclaim()
    }

    #[inline]
    fn chunk(&self) -> &Chunk {
        self.buf.chunk()
    }
}

impl Drop for Operand {
    fn drop(&mut self) {
        // SAFETY: `drop` runs once, and the buffer is not used after it.
        let buf = unsafe { ManuallyDrop::take(&mut self.buf) };
        if buf.is_unsent() {
            drop(buf.reclaim());
        }
    }
}

impl fmt::Debug for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operand")
            .field("direction", &self.buf.direction)
            .field("asked", &self.asked)
            .field("inside", &self.buf.inside)
            .finish()
    }
}
