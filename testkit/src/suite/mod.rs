//! The suite for drivers: random jobs under random faults, on the simulated board. It is for every
//! driver and each of its modes, also somebody else's.
//!
//! A [`Subject`] is a driver in one mode, over its model. [`faults`] gives it jobs of random
//! lengths, several in flight, while interrupts come late or never, jobs fail, end short, hang, or
//! will not stop. After each seed:
//!
//! - each job that ended well has the right bytes, and no byte beside them changed;
//! - the ends came in the order in which the jobs were given, where the driver says so;
//! - every buffer is back, also after a stop and after a reset from outside;
//! - the device touched no byte that it was not given, no address without memory, and no sync was
//!   missing;
//! - the driver works again.
//!
//! [`per_packet`] counts the price of a job: register accesses and syncs, with one, eight or more
//! in flight.
//!
//! | file | purpose |
//! |---|---|
//! | `subject.rs` | a driver in one mode |
//! | `bench.rs` | the board, its memory, and the jobs in flight |
//! | `faults.rs` | the random run |
//! | `price.rs` | the counts of a job |

mod bench;
mod faults;
mod price;
mod subject;

pub use bench::SLOT_BYTES;
pub use faults::{Tally, faults};
pub use price::{Price, per_packet};
pub use subject::{Kind, Subject, Way};
