//! Engines and their jobs: any driver, by its name or written in C, with several jobs in flight.
//!
//! ```text
//!   job.rs      a job's handle names its engine and its ticket; here calls find both
//!      │
//!   queue.rs    Engine: Queue<AnyDriver>, its tickets, and what it borrows from
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
mod queue;
mod tickets;

#[cfg(test)]
mod tests;

pub(crate) use driver_ops::{DriverOps, Functions, MAX_OPERANDS};
pub(crate) use job::{Outcome, Wait, end, next, start};
pub(crate) use queue::{ENGINES, Engine, Opening};

use crate::object::buf::Held;
use contigo::{Direction, Operand};

/// Which bytes of which buffer.
#[derive(Clone, Copy)]
pub(crate) struct Part {
    pub(crate) buf: u64,
    pub(crate) offset_bytes: usize,
    pub(crate) len_bytes: usize,
}

impl Part {
    /// That part of `held`, as an operand; `None` where nobody here has it.
    fn of(&self, held: Held, direction: Direction) -> Option<Operand<'static>> {
        // A sum past the end of all memory is past the end of the buffer, which is checked.
        let range = self.offset_bytes..self.offset_bytes.saturating_add(self.len_bytes);
        Some(match (held, direction) {
            (Held::Cpu(buf), Direction::ToDevice) => buf.to_device(range),
            (Held::Cpu(buf), Direction::FromDevice) => buf.from_device(range),
            (Held::Cpu(buf), Direction::Bidirectional) => buf.in_out(range),
            (Held::Dev(buf), Direction::ToDevice) => buf.to_device(range),
            (Held::Dev(buf), Direction::FromDevice) => buf.from_device(range),
            (Held::Dev(buf), Direction::Bidirectional) => buf.in_out(range),
            (Held::Away | Held::LentCpu(_) | Held::LentDev(_), _) => return None,
        })
    }
}
