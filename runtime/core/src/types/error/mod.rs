//! The one error type: small, `Copy`, with the numbers in it.
//!
//! `rows.rs` has all of them, in one table. The table makes the enum, its texts, its kinds and
//! errnos, and the codes and exceptions of C and Python.

#[cfg(all(feature = "std", not(target_os = "none")))]
mod io;
mod kind;
#[macro_use]
mod table;
mod rows;
mod words;

#[cfg(all(feature = "std", not(target_os = "none")))]
pub use io::{IoError, with_text};
pub use kind::{ErrorKind, ErrorRow};
pub use rows::Error;

/// The result of almost every function here.
pub type Result<T, E = Error> = core::result::Result<T, E>;
