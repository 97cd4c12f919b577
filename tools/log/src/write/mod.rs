//! The program's side: a ring in a file, and the logger that fills it.

mod clock;
mod error;
mod file;
mod frame;
mod header;
mod logger;
mod panics;
mod ring;
mod settings;

pub use error::StartError;
pub use settings::{Clock, Settings};

use std::{
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

/// Begins to log into a new ring at `path`. Until then, events go nowhere.
///
/// A ring that is there becomes `path` with `.before` at its end, so that a program that was
/// started again has not overwritten why it ended. From here on the ring is mapped for ever. It is
/// made readable for the program's user alone.
///
/// It makes some ten system calls, and needs no heap for paths below 384 bytes.
///
/// # Errors
/// [`StartError`] says what is missing. The program goes on without a log.
pub fn start(path: impl AsRef<Path>, settings: &Settings) -> Result<(), StartError> {
    /// One log a program: what `defmt` can name.
    static STARTED: AtomicBool = AtomicBool::new(false);
    if !crate::RING_BYTES.contains(&settings.ring_bytes) || !settings.ring_bytes.is_power_of_two() {
        return Err(StartError::RingBytes { given: settings.ring_bytes });
    }
    header::numbers_are_right()?;
    let build_id = header::own_build_id().ok_or(StartError::NoBuildId)?;
    if STARTED.swap(true, Ordering::AcqRel) {
        return Err(StartError::Twice);
    }
    let begin = || {
        let map = file::create(path.as_ref(), settings.ring_bytes)?;
        header::fill(map, settings, &build_id);
        ring::open(map, settings.ring_bytes)
            .inspect_err(|_| drop(std::fs::remove_file(path.as_ref())))
    };
    begin().inspect_err(|_| STARTED.store(false, Ordering::Release))?;
    clock::begin(settings.clock);
    panics::heed_them(settings.panics);
    Ok(())
}

/// Has the kernel write the ring to its disk, and waits for that: one system call. It matters for a
/// file that is to survive the loss of power; on tmpfs it does nothing.
///
/// # Errors
/// [`StartError::File`]: no log has been started, or the disk failed.
pub fn sync() -> Result<(), StartError> {
    ring::sync()
}

/// How many events were dropped so far: too long, from a signal handler within another event, or
/// behind a lock that did not come free.
#[must_use]
pub fn dropped() -> u64 {
    ring::dropped()
}
