//! A job: what a driver author writes, what rings the doorbell, and what runs.
//!
//! An [`Accelerator`] drives one core. An [`Engine`] checks and hands over its operands, and a
//! [`Running`] job owns them until the device has stopped. A [`QuiesceProgram`] stops the device
//! when the program that drives it is gone.
//!
//! Imports: `types`, `trace`, `mem`, `hw`.

mod accelerator;
mod engine;
mod job_error;
mod quiesce;
mod running;

pub use accelerator::Accelerator;
pub use engine::{Engine, JobCounts};
pub use job_error::JobError;
pub use quiesce::{QuiesceProgram, QuiesceStep};
pub use running::{Attempt, Running};
