//! What `cargo cross` and `cargo lab` share: the user's cache, the programs they run, and Debian's
//! packages without root.
//!
//! | module | what it is for |
//! |---|---|
//! | [`boards`] | what each folder of `boards/` says |
//! | [`cache_dir`] | where builds and downloads are kept, whole or not at all |
//! | [`command`] | one program, with a time limit, a log file and a line that moves |
//! | [`download`] | Debian packages of any architecture, unpacked without root |
//! | [`failure`] | what ends a command: one line, then what helps to understand it |
//! | [`interrupt`] | Ctrl-C ends what was started, and temporary files go |
//! | [`packages`] | which Debian package has a program |
//! | [`progress`] | a line that moves on a terminal, plain lines elsewhere |
//! | [`targets`] | the processors of the boards |
//! | [`toolchain`] | the Rust that builds for them |

pub mod boards;
pub mod cache_dir;
pub mod command;
pub mod download;
pub mod failure;
pub mod interrupt;
pub mod packages;
mod pdeathsig;
pub mod progress;
pub mod targets;
pub mod toolchain;
