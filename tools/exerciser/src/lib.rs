//! Does this board's DMA work? Random copies by a real engine between 64 live buffers, every byte
//! of them compared with what a program on the CPU says should be there.
//!
//! ```text
//!   Region ──► Ground ──────────────► Exerciser::run(queue) ───► Tally
//!              guard | 64 slots | guard     │              jobs, bytes, mismatches, canary hits
//!                                           └─ the shadow: what every byte of them must be
//! ```
//!
//! A job copies a random part of one slot to a random part of another. Between jobs the CPU writes
//! fresh random bytes, some buffers stay the device's and go straight into the next job, and some
//! go back to their pool. After each job the destination and its neighbours are compared whole. A
//! wrong byte inside the part that was written is a *mismatch*; one that changed outside of it is a
//! *canary hit*. Every so often, and at the end, all slots and both guards are compared.
//!
//! It needs any [`Region`](contigo::Region) and a queue over any engine that copies: bytes of
//! operand 0 to operand 1, with no argument words. One seed gives one sequence of jobs, whatever
//! the time or the machine: a failure says which job it was, and the same seed meets it again.
//!
//! It keeps its books on the heap, and asks for all of that before the first job:
//! [`Exerciser::run`] allocates nothing. On a polled engine whose memory needs no kernel for its
//! caches it makes no system call.
//!
//! ```
//! use contigo::{sim::{SimDevice, zdma::ZdmaModel, SimBoard}, Queue, Region};
//! use contigo_exerciser::{Budget, Exerciser, Ground, Limits, Mode};
//! let board = SimBoard::new(7);
//! let region = Region::new(board.memory(Ground::WHOLE_BYTES + 4096)?)?;
//! let channel = SimDevice::<ZdmaModel>::new(&board, board.port());
//! let mut queue = Queue::new(channel.window()?.simple()?, 1)?;
//! let mut exerciser = Exerciser::new(Ground::new(&region)?, Limits::NONE, 42)?;
//! exerciser.run(&mut queue, Mode::Polled, Budget::jobs(200)).map_err(|stopped| stopped.error)?;
//! let tally = exerciser.tally();
//! assert_eq!((tally.jobs, tally.mismatches, tally.canary_hits), (200, 0, 0));
//! # Ok::<(), contigo::Error>(())
//! ```

mod allocations;
mod draw;
mod exerciser;
mod ground;
mod line;
mod outcome;
mod places;
mod tally;
pub mod uio;

pub use allocations::{CountingHeap, is_counting, on_this_thread};
pub use draw::Limits;
pub use exerciser::Exerciser;
pub use ground::{Ground, SLOTS, refresh};
pub use line::{Counted, Events, IrqEvents, JOB_TIMEOUT, Line, Mode};
pub use outcome::{Fault, Outcome};
pub use tally::{Blame, Budget, FirstWrong, Job, Stopped, Tally, Tried};

#[cfg(test)]
mod tests;
