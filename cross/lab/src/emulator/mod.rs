//! One run of a board in QEMU: its command line, its console, its end.

mod console;
mod qemu;
mod run;
mod tree;

pub(crate) use console::DEMO;
pub(crate) use qemu::{Console, command};
pub(crate) use run::{Ran, Watch, run};
pub(crate) use tree::device_tree;
