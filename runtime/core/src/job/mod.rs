//! Jobs: the trait that a driver author implements, and the queue that runs them.
//!
//! ```text
//!       Driver   one channel of one device, as data: operands, depth, check, submit, poll, stop
//!          │
//!        Queue   runs jobs: reach, caches, doorbell, time limits, recovery; it owns their buffers
//!          │ submit, run       ▲ wait, try_next, take_back
//!          │                 Done: buffers, bytes, status
//!       Stream   frames of exactly the bytes received
//! ```
//!
//! Several channels of one device, each with a driver: a [`Core`] gives out [`CoreChannel`]s.
//! A [`StopProgram`] stops the device when the program that drives it is gone.

mod any_core;
mod any_driver;
mod completion;
mod core;
mod counts;
mod driver;
mod job_error;
mod operand_spec;
mod parts;
mod prepare;
mod queue;
mod row;
mod signature;
mod stop_program;

pub use self::core::{Core, CoreChannel};
pub use any_core::{AnyCore, Channels};
pub use any_driver::AnyDriver;
pub use completion::Completion;
pub use counts::QueueCounts;
pub use driver::{Driver, exactly};
pub use job_error::JobError;
pub use operand_spec::OperandSpec;
pub use parts::{Descriptors, Parts, Settings};
pub use prepare::MAX_OPERANDS;
pub use queue::{Cancelled, Done, Frame, Queue, Stream, queue_bytes};
pub use row::DriverRow;
pub use signature::{Argument, Launch, Parameter, Signature, Words};
pub use stop_program::{StopProgram, StopStep};
