//! The parts that `cargo cross` and `cargo lab` share: the user's cache, the programs they run, and
//! Debian's packages without root.
//!
//! | module | purpose |
//! |---|---|
//! | [`boards`] | the content of each folder of `boards/` |
//! | [`cache_dir`] | where builds and downloads are kept, whole or not at all |
//! | [`command`] | one program, with a time limit, a log file and a line that moves |
//! | [`download`] | Debian packages of any architecture, unpacked without root |
//! | [`failure`] | the errors that end a command: one line, then the end of a log |
//! | [`interrupt`] | Ctrl-C ends the programs that were started, and temporary files go |
//! | [`packages`] | which Debian package has a program |
//! | [`targets`] | the processors of the boards |
//! | [`terminal`] | a line that moves, tables, standard output |
//! | [`toolchain`] | the Rust that builds for them |

pub mod boards;
pub mod cache_dir;
pub mod command;
pub mod download;
pub mod failure;
pub mod interrupt;
pub mod packages;
mod pdeathsig;
pub mod targets;
pub mod terminal;
pub mod toolchain;
