//! The rules that Contigo's bindings share, because a language without Rust's borrows needs them:
//! the owner of each buffer, the jobs in flight, and handles for a language that has only numbers.
//! The bindings only translate arguments and errors. Here the rules are tested, raced and fuzzed
//! for all of them.
//!
//! | module | what it is | used by |
//! |---|---|---|
//! | `buffer`, `views` | who has a buffer's bytes, and the views of it | C, Python |
//! | `ledger` | the jobs of one driver, from their start until their ends are taken | C, Python |
//! | `names` | names that a program makes up, for as long as it runs | C, Python |
//! | `function` | the function that computes a simulated kernel's jobs | C, Python |
//! | `c` | values from C, checked and read | C, `driver` |
//! | [`driver`] | drivers behind functions of C, also in shared libraries | C, Python, drivers |
//! | `table` | handles: numbers for objects in fixed tables | C |
//! | `refusal` | why a call is refused | C, Python |
//!
//! Nothing here allocates from the heap or waits for another thread, with three exceptions:
//! `Ledger::boxed` allocates, a simulated kernel's function gets its operands on the heap, and
//! loading, opening or closing a shared library's driver does both.

/// The processor's atomics; in the models that check every interleaving, the model checker's.
mod atomic {
    pub(crate) use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
}
mod buffer;
mod c;
pub mod driver;
mod function;
mod ledger;
mod names;
mod refusal;
mod table;
mod views;

pub use buffer::Buffer;
pub use c::{NAME_BYTES, Versioned, read, struct_size, text, text_within};
pub use driver::{LoadError, load_driver};
pub use function::{KernelJob, Results};
pub use ledger::{End, JOBS, Job, Ledger, Operands};
pub use names::{NAMES, keep};
pub use refusal::{ArgumentError, Kind, Refusal};
pub use table::{Claimed, GENERATION_MAX, Handle, INDEX_BITS, JobHold, Lease, Locked, Slot, Table};
pub use views::{Access, Views};
