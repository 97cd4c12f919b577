//! Jobs: the trait that a driver author implements, the types that ring the doorbell, and the jobs
//! in flight.
//!
//! ```text
//!              Driver   one channel of one device, as data: operands, depth, submit, poll, stop
//!             ┌───┴────┐
//!        TypedDriver   │  arguments and reports with types, on top of words
//!          ┌───┘       └───┐
//!       Engine           Queue   several jobs in flight; it owns their buffers
//!          │ start         │ push            ▲ next, take_back
//!       Running ── wait ─► Done: buffers, report, completion
//!                          │
//!                       Stream   frames of exactly the bytes received
//! ```
//!
//! Beside them, for buffers without a lifetime: [`own::Queue`] and [`own::Stream`].
//!
//! Several channels of one device, each with a driver: a [`Core`] gives out [`CoreChannel`]s.
//! A [`StopProgram`] stops the device when the program that drives it is gone.
//!
//! Imports: `types`, `trace`, `mem`, `hw`.

mod any_core;
mod any_driver;
mod channel;
mod completion;
mod core;
mod done;
mod driver;
mod engine;
mod job_error;
mod job_place;
mod operand_spec;
pub(crate) mod own;
mod parts;
mod prepare;
mod queue;
mod running;
mod signature;
mod stop_program;
mod stream;

pub use self::core::Core;
pub use any_core::{AnyCore, Channels};
pub use any_driver::AnyDriver;
pub use channel::CoreChannel;
pub use completion::Completion;
pub use done::Done;
pub(crate) use driver::no_report;
pub use driver::{Driver, TypedDriver, exactly};
pub use engine::{Engine, JobCounts};
pub use job_error::JobError;
pub use operand_spec::OperandSpec;
pub use parts::{Parts, Settings};
pub use prepare::MAX_OPERANDS;
pub use queue::{Cancelled, Queue, QueueCounts};
pub use running::{Attempt, Running};
pub use signature::{Argument, Launch, Parameter, Signature, Words, collected};
pub use stop_program::{StopProgram, StopStep};
pub use stream::{Frame, Frames, Stream};
