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

pub(crate) use job::{Outcome, Wait, end, next, start};
pub(crate) use opening::EngineOptions;
pub use opening::contigo_engine_options;
pub(crate) use queue::{ENGINES, Engine};

use crate::handles::contigo_buf;

/// Which bytes of which buffer a job uses. The CPU owns the buffer, or a device does since an
/// earlier job or `contigo_buf_give`; then the bytes count from the first that was handed over. The
/// driver says whether the device reads or writes them.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct contigo_operand {
    /// The buffer.
    pub buf: contigo_buf,
    /// The first byte, from the beginning of the buffer.
    pub offset_bytes: usize,
    /// How many.
    pub len_bytes: usize,
}
