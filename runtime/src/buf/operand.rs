//! A buffer on its way into a job.

use super::{AnyThread, Chunk, CpuBuf, DevBuf, DevSlice};
use crate::{
    DevAddr, Direction, Error, Port, SyncScope,
    audit::Site,
    span::{Part, Span, before_device},
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
    pub(crate) fn check(&self, index: usize, expected: Direction, port: &Port, addr_bits: u32) -> Result<DevSlice, Error> {
        if self.direction != expected {
            return Err(Error::WrongDirection { index, expected });
        }
        let span = self.span()?;
        if span.len == 0 {
            return Err(Error::BufferSize { index, need_bytes: 1, have_bytes: 0 });
        }
        let chunk = self.chunk();
        let (state, mapping) = (chunk.state(), &chunk.state().mapping);
        if mapping.bus != port.bus {
            return Err(Error::WrongBus { port: port.name, memory: mapping.bus });
        }
        match mapping.coherent {
            Some(memory_coherent) if memory_coherent != port.coherent => {
                return Err(Error::CoherencyMismatch { port: port.name, memory_coherent });
            }
            _ => {}
        }
        if !port.coherent {
            match mapping.scope {
                SyncScope::Coherent => return Err(Error::CoherencyMismatch { port: port.name, memory_coherent: true }),
                SyncScope::None { install } => return Err(Error::CannotSync { port: port.name, install }),
                SyncScope::Whole => state.shared_with_others(chunk.extent).map_or(Ok(()), Err)?,
                SyncScope::Range { .. } => {}
            }
            before_device(span, self.direction, chunk.extent, chunk.line())?;
        }
        let addr = port.dev_addr_within(mapping.base.plus(span.start), span.len, addr_bits)?;
        Ok(DevSlice { addr, offset_bytes: 0, len_bytes: span.len })
    }

    /// Makes the bytes ready for the device. `check` passed.
    #[inline]
    pub(crate) fn hand_over(&self, port: &Port, site: Site) -> Result<(), Error> {
        match &self.held {
            Held::Dev(buf) if buf.coherent() != port.coherent => buf.change_port(self.direction, port, site),
            Held::Dev(buf) if self.direction.device_writes() && !port.coherent => buf.before_writing(self.span()?, site),
            Held::Dev(_) => Ok(()),
            Held::Cpu(_) if port.coherent => Ok(()),
            Held::Cpu(buf) => {
                let (chunk, state) = (buf.chunk(), buf.chunk().state());
                let what = before_device(self.span()?, self.direction, chunk.extent, state.line)?;
                state.sync_for_device(chunk.backend(), &what, site)
            }
        }
    }

    /// The device's now. `hand_over` succeeded, and `addr` is what `check` found.
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
