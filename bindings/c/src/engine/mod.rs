//! Engines and their jobs: any driver, by its name or written in C, with several jobs in flight.
//!
//! ```text
//!   job.rs      a job's handle names its engine and its ticket; here calls find both
//!      │
//!   queue.rs    Engine: the ledger of its jobs, with a hold on each buffer's entry, and the
//!               objects that it is of; opening.rs makes one
//! ```
//!
//! A job's buffers go from their entries into the queue, and from the queue back into the entries
//! when the job ends. The entries stay the job's until a call takes its end: so a completion of
//! another job is kept while one is waited for.

mod job;
mod opening;
mod queue;

#[cfg(test)]
mod tests;

pub(crate) use job::{Outcome, Wait, end, next, start};
pub(crate) use opening::{EngineOptions, Gate};
pub(crate) use queue::{ENGINES, Engine};

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
