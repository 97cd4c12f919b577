//! A log that survives its program: `defmt`'s events in a ring of bytes in a file.
//!
//! [`start`] maps the file. After that, each `defmt` event of the program, the runtime or another
//! crate is some 10 bytes in the ring. It needs no heap, no text and no system call. The kernel has
//! the bytes at once, so they survive a panic, a `SIGKILL` and a crash. `contigo log` decodes them,
//! live or later, with the texts in the program's ELF file.
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
//! The program's `build.rs` prints `println!("cargo:rustc-link-arg-bins=-Tcontigo-log.x");`. The
//! page `tools/log/README.md` of the repository has the rest.
//!
//! **Threads, signals, forks.** A thread makes its frame in 512 bytes of its own, and takes a lock
//! only to copy the frame into the ring. It tries the lock a bounded number of times, then drops
//! and counts the event. A signal handler may log; if it interrupts an event, its own event is
//! dropped and counted. A child of fork(2) logs nothing, on Linux 4.14 or newer.
// On docs.rs only, each item shows the feature that it needs.
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

/// The smallest and the largest ring, in bytes. The size is a power of two.
pub const RING_BYTES: core::ops::RangeInclusive<u32> = 4 << 10..=1 << 20;
