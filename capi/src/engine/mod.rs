//! Engines and their jobs: any driver, by its name or written in C, with several jobs in flight.
//!
//! ```text
//!   job.rs      a job's handle names its engine and its ticket; here calls find both
//!      │
//!   queue.rs    Engine: Queue<AnyDriver>, its tickets, and the objects that it is of
//!      │        opening.rs makes one
//!      │
//!   tickets.rs  Ticket: a hold on each buffer's entry, and how the job ended
//!
//!   driver_ops.rs   a driver whose methods are C functions
//! ```
//!
//! A job's buffers go from their entries into the queue, and from the queue back into the entries
//! when the job ends. The entries stay the job's until somebody takes its end: so a completion of
//! another job is kept while one is waited for.

mod driver_ops;
mod job;
mod opening;
mod queue;
mod tickets;

#[cfg(test)]
mod tests;

pub(crate) use driver_ops::{DriverOps, Functions, MAX_OPERANDS};
pub(crate) use job::{Outcome, Wait, end, next, start};
pub(crate) use opening::{EngineOptions, Gate};
pub(crate) use queue::{ENGINES, Engine};

use crate::{fault::Fault, object::buf::Buf};
use contigo::{Direction, Operand};

/// Which bytes of which buffer.
#[derive(Clone, Copy)]
pub(crate) struct Part {
    pub(crate) buf: u64,
    pub(crate) offset_bytes: usize,
    pub(crate) len_bytes: usize,
}

/// The operands of a job.
pub(crate) trait Parts: ExactSizeIterator<Item = Part> + Clone {}
impl<P: ExactSizeIterator<Item = Part> + Clone> Parts for P {}

impl Part {
    /// That part of a buffer that nobody looks at, as an operand. The caller puts something back.
    #[inline]
    fn of(&self, buf: &mut Buf, direction: Direction) -> Result<Operand, Fault> {
        // A sum past the end of all memory is past the end of the buffer, which is checked.
        let range = self.offset_bytes..self.offset_bytes.saturating_add(self.len_bytes);
        buf.leave(
            |buf| match direction {
                Direction::ToDevice => buf.to_device(range.clone()),
                Direction::FromDevice => buf.from_device(range.clone()),
                Direction::Bidirectional => buf.in_out(range.clone()),
            },
            |buf| match direction {
                Direction::ToDevice => buf.to_device(range.clone()),
                Direction::FromDevice => buf.from_device(range.clone()),
                Direction::Bidirectional => buf.in_out(range.clone()),
            },
        )
    }
}
