#![allow(
    unsafe_code,
    reason = "only code between fork and exec can ask the kernel to end a child with its parent"
)]
//! A child that does not outlive this program, however this program ends.

use nix::sys::prctl;
use nix::sys::signal::Signal;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The kernel ends the child when the thread that started it is gone, a `kill -9` of this program
/// included.
pub(crate) fn end_with_this_thread(command: &mut Command) {
    // SAFETY: the closure runs in the child between fork and exec, where only what is
    // async-signal-safe may be called. It makes one system call (prctl) and turns its errno into an
    // io::Error without allocating; it touches no memory of the parent's.
    unsafe {
        command.pre_exec(|| prctl::set_pdeathsig(Signal::SIGKILL).map_err(io::Error::from));
    }
}
