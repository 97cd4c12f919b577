//! The suite for drivers: random jobs under random faults, on the simulated board. It is for every
//! driver and each of its modes, also one of another repository.
//!
//! A [`Subject`] is a driver in one mode, over its model. [`faults`] gives it jobs of random
//! lengths, as many as it takes and some that wait in the queue, in bursts and one by one, while
//! interrupts come late or
//! never, jobs fail, end short, hang, or will not stop. After each seed:
//!
//! - each job that ended well has the right bytes, and no byte beside them changed; a sink got what
//!   was sent, and a completion has the words of its bytes ([`Subject::words_expected`]);
//! - the ends came in the order in which the jobs were given, where the driver promises that;
//! - every buffer is back, also after a stop and after a reset from outside;
//! - the device touched no byte that it was not given, no address without memory, and no sync was
//!   missing;
//! - the driver works again.
//!
//! After all seeds each kind of fault has been seen, and a stop of a job under way ([`Sight`]), or
//! the subject says that its core never does that ([`Subject::never`]). A model that asks for no
//! fault (`bus.strikes(bus.faults().error)`) fails the suite, and so does a core that only reads
//! where neither a sink nor a word shows what it read.
//!
//! Before that, on a board without faults, each job ends by polls of timeout 0 alone, and after few
//! waits for its interrupt. Last, the driver's stop program stops jobs under way.
//!
//! [`per_packet`] counts the price of a job: register accesses and syncs, with one, eight or more
//! in flight.
//!
//! | file | purpose |
//! |---|---|
//! | `subject.rs` | a driver in one mode |
//! | `bench.rs` | the board, its memory, and the jobs in flight |
//! | `faults.rs` | the random run |
//! | `mixed.rs` | bursts in which some jobs ring the doorbell |
//! | `waits.rs` | polls alone, and how many waits a job costs |
//! | `program.rs` | the stop program, with jobs under way |
//! | `sight.rs` | what a run must have seen to have checked anything |
//! | `price.rs` | the counts of a job |

mod bench;
mod faults;
mod mixed;
mod price;
mod program;
mod sight;
mod subject;
mod waits;

pub use bench::SLOT_BYTES;
pub use faults::{Tally, faults};
pub use price::{Price, per_packet};
pub use sight::Sight;
pub use subject::{Kind, Subject, Way};
