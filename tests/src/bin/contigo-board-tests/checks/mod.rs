//! Checks: what must be refused, decoded, stopped or given back. Each says what it saw.

pub(crate) mod engine;
mod fuzz;
mod guard;
pub(crate) mod killed;
pub(crate) mod memory;

pub(crate) use fuzz::{fuzzed, hostile};
pub(crate) use guard::{KEPT, LOCKED_DOWN, Subject, TAKEN, TESTS, module};
