//! The program's side: a ring in a file, and the logger that fills it.

mod file;
mod frame;
mod header;
mod logger;
mod ring;

use core::fmt;
use nix::time::{ClockId, clock_gettime};
use std::{
    path::Path,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
};

/// The ring's size, the events' clock, and whether panics are events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The ring's size: a power of two in [`RING_BYTES`](crate::RING_BYTES). The newest events are
    /// there, and no others.
    pub ring_bytes: u32,
    /// Where the events' time comes from.
    pub clock: Clock,
    /// Is a panic an event? It is logged before the hook that was there does its work.
    pub panics: bool,
}

/// Where the events' time comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// Microseconds of `CLOCK_MONOTONIC` since the start. The vDSO answers, with no system call. A
    /// Cortex-A9 (Zynq-7000, Cyclone V) has no such answer: there each event is a system call.
    Monotonic,
    /// No time: each event says 0, in one byte. On a Cortex-A9 this keeps events free of system
    /// calls.
    None,
}

impl Default for Settings {
    /// 64 KiB, some 6,000 events; time; and panics.
    fn default() -> Self {
        Self { ring_bytes: 64 << 10, clock: Clock::Monotonic, panics: true }
    }
}

/// Why [`start`](crate::start) or [`sync`](crate::sync) did nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StartError {
    /// The ring's size is no power of two in [`RING_BYTES`](crate::RING_BYTES).
    RingBytes {
        /// The size that was asked for.
        given: u32,
    },
    /// The program was loaded to an address that changes the events' numbers. Kernels before 5.10
    /// do that to a position-independent program, and those before 6.10 to one that is static too.
    LoadAddress {
        /// By how much: the low 16 bits.
        off_by: u16,
    },
    /// The program has no build ID, by which its log could find its texts.
    NoBuildId,
    /// The program has a log already.
    Twice,
    /// The file or its memory is not to be had.
    File {
        /// The call that failed.
        call: &'static str,
        /// Its errno.
        errno: i32,
    },
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RingBytes { given } => {
                write!(
                    f,
                    "a ring of {given} bytes: it takes a power of two from {} to {}",
                    crate::RING_BYTES.start(),
                    crate::RING_BYTES.end()
                )
            }
            Self::LoadAddress { off_by } => write!(
                f,
                "this kernel loads the program {off_by} bytes off a multiple of 64 KiB, which \
                 changes the events' numbers; build it with -C relocation-model=static"
            ),
            Self::NoBuildId => {
                f.write_str("the program has no build ID; link it with -C link-arg=-Wl,--build-id")
            }
            Self::Twice => f.write_str("the program has a log already"),
            Self::File { call, errno } => write!(f, "{call} failed with errno {errno}"),
        }
    }
}

impl core::error::Error for StartError {}

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
    begin_clock(settings.clock);
    logger::heed_panics(settings.panics);
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

/// Microseconds of the clock at the start; `OFF` where there is no time.
static START_US: AtomicU64 = AtomicU64::new(OFF);
const OFF: u64 = u64::MAX;

/// A clock that fails is no reason not to log.
fn now_us() -> u64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |now| {
        u64::try_from(now.tv_sec())
            .unwrap_or(0)
            .wrapping_mul(1_000_000)
            .wrapping_add(u64::try_from(now.tv_nsec()).unwrap_or(0) / 1_000)
    })
}

/// From here on events have a time.
fn begin_clock(clock: Clock) {
    START_US.store(if clock == Clock::Monotonic { now_us() } else { OFF }, Ordering::Relaxed);
}

fn since_start_us() -> u64 {
    match START_US.load(Ordering::Relaxed) {
        OFF => 0,
        start => now_us().wrapping_sub(start),
    }
}

defmt::timestamp!("{=u64:us}", since_start_us());
