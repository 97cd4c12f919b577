//! A log that survives its program: `defmt`'s events in a ring of bytes in a file.
//!
//! [`start`] maps the file. From then on each `defmt` event of the program, the runtime or another
//! crate is some 10 bytes in the ring. It takes no heap, no text and no system call. The kernel has
//! the bytes at once, so that they survive a panic, a `SIGKILL` and a crash.
//! `contigo log` decodes them, live or later, by the texts in the program's ELF file.
//!
//! | the file is on | its events survive |
//! |---|---|
//! | tmpfs (`/run`, `/dev/shm`) | the program's end, however it came |
//! | a disk or flash | also the loss of power, as far as the kernel or [`sync`] has written it |
//!
//! ```ignore
//! contigo_log::start("/run/my-program.log", &contigo_log::Settings::default())?;
//! defmt::info!("frame {=u32} is dark", 17);
//! # Ok::<(), contigo_log::StartError>(())
//! ```
//!
//! A program says `println!("cargo:rustc-link-arg-bins=-Tcontigo-log.x");` in its `build.rs`; the
//! page `docs/log.md` has the rest.
//!
//! **Threads, signals, forks.** A thread makes its frame in 512 bytes of its own, and takes a lock
//! for the copy into the ring alone. The lock has a bound: then the event is dropped and counted. A
//! signal handler may log; where it interrupts an event, its own is dropped and counted. A child of
//! fork(2) logs nothing, on Linux 4.14 or newer.
// On docs.rs, and there alone, each item says which feature it needs.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod build_id;
mod layout;
#[cfg(feature = "decode")]
mod read;
#[cfg(feature = "write")]
mod write;

pub use build_id::BuildId;
#[cfg(feature = "decode")]
pub use read::{Decoder, Entry, Header, Piece, Reader, Refused};
#[cfg(feature = "write")]
pub use write::{Clock, Settings, StartError, dropped, start, sync};

/// The least and the most bytes of a ring; a power of two between them is its size.
pub const RING_BYTES: core::ops::RangeInclusive<u32> = 4 << 10..=1 << 20;
