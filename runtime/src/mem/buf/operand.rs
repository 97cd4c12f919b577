//! A buffer on its way into a job.

use super::{AnyThread, Chunk, CpuBuf, DevBuf, DevSlice, hand_over::check};
use crate::{
    mem::{
        Port,
        span::{Part, Span},
    },
    trace::Site,
    types::{DevAddr, Direction, Error},
};
use core::fmt;

/// A buffer on its way into a job: which bytes of it, and what the device does with them. It has no view and no address.
///
/// Everything about it is checked by [`Engine::start`](crate::Engine::start), and nothing is done to the caches before all
/// operands have passed. Dropped without a job, it gives its buffer back.
#[must_use = "an operand does nothing until a job starts"]
pub struct Operand<'p, T = AnyThread> {
    held: Held<'p, T>,
    part: Part,
    direction: Direction,
}

enum Held<'p, T> {
    /// The CPU's until now: its caches need maintenance.
    Cpu(CpuBuf<'p, T>),
    /// A device's already.
    Dev(DevBuf<'p, T>),
}

impl<'p, T> Operand<'p, T> {
    pub(super) fn from_cpu(buf: CpuBuf<'p, T>, part: Part, direction: Direction) -> Self {
        Self { held: Held::Cpu(buf), part, direction }
    }

    pub(super) fn from_dev(buf: DevBuf<'p, T>, part: Part, direction: Direction) -> Self {
        Self { held: Held::Dev(buf), part, direction }
    }

    /// All of a buffer whose job was refused by the device itself: it may have been written.
    pub(crate) fn refused(buf: DevBuf<'p, T>) -> Self {
        Self::from_dev(buf, Part::of(..), Direction::Bidirectional)
    }

    /// What the device does with it.
    #[must_use]
    pub const fn direction(&self) -> Direction {
        self.direction
    }

    /// The buffer, back from a job that was refused: `Err` holds one that was a device's already.
    ///
    /// # Errors
    /// None: `Err` is the other kind of buffer.
    pub fn into_buf(self) -> Result<CpuBuf<'p, T>, DevBuf<'p, T>> {
        match self.held {
            Held::Cpu(buf) => Ok(buf),
            Held::Dev(buf) => Err(buf),
        }
    }

    /// Every check of memory against port, and where the device will find the bytes. Touches nothing.
    #[inline]
    pub(crate) fn check(&self, index: usize, port: &Port, addr_bits: u32) -> Result<DevSlice, Error> {
        check(self.chunk(), self.span()?, self.direction, index, port, addr_bits)
    }

    /// Makes the bytes ready for the device. `check` passed.
    #[inline(always)]
    pub(crate) fn prepare(&self, port: &Port, site: Site) -> Result<(), Error> {
        // The fast path: no line to maintain.
        if port.coherent && matches!(self.held, Held::Cpu(_)) { Ok(()) } else { self.maintain(port, site) }
    }

    fn maintain(&self, port: &Port, site: Site) -> Result<(), Error> {
        match &self.held {
            Held::Cpu(buf) => buf.prepare(self.span()?, self.direction, port, site),
            Held::Dev(buf) => buf.prepare(self.span()?, self.direction, port, site),
        }
    }

    /// The device's now. `prepare` succeeded, and `addr` is what `check` found.
    #[inline]
    pub(crate) fn into_dev(self, port: &Port, addr: DevAddr) -> DevBuf<'p, T> {
        // `check` passed, so the part lies inside; were it not so, all of the buffer would count as the device's.
        let span = self.span().unwrap_or(self.chunk().extent);
        match self.held {
            Held::Cpu(buf) => DevBuf::new(buf, span, self.direction, port, addr),
            Held::Dev(buf) => buf.again(span, self.direction, port, addr),
        }
    }

    fn span(&self) -> Result<Span, Error> {
        match &self.held {
            Held::Cpu(buf) => buf.span().part(self.part),
            Held::Dev(buf) => buf.span().part(self.part),
        }
    }

    fn chunk(&self) -> &Chunk<'p> {
        match &self.held {
            Held::Cpu(buf) => buf.chunk(),
            Held::Dev(buf) => buf.chunk(),
        }
    }
}

impl<T> fmt::Debug for Operand<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operand").field("direction", &self.direction).field("span", &self.span()).finish()
    }
}
