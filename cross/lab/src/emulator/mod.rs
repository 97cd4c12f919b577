//! One run of a board in QEMU: its command line, its console, its end.

mod console;
mod function;
mod newer;
mod qemu;
mod run;
mod tree;

pub(crate) use console::DEMO;
pub(crate) use function::{Function, Served};
pub(crate) use qemu::{Console, command};
pub(crate) use run::{Ran, Watch, run};
pub(crate) use tree::device_tree;
