//! One run of a board in QEMU: its command line, its console, its end.

mod console;
mod function;
mod qemu;
mod run;

pub(crate) use console::DEMO;
pub(crate) use function::{Function, Served};
pub(crate) use qemu::{Console, command, device_tree};
pub(crate) use run::{Ran, Watch, run};
