//! Checks: what must be refused, decoded, stopped or given back. Each says what it saw.

mod dev_node;
pub(crate) mod engine;
mod fuzz;
pub(crate) mod killed;
pub(crate) mod memory;

pub(crate) use dev_node::{KEPT, LOCKED_DOWN, Subject, TAKEN, TESTS, module};
pub(crate) use fuzz::{fuzzed, hostile};
