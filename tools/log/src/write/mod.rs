//! The writer: a ring in a file, and the logger that fills it.

mod file;
mod frame;
mod header;
mod logger;
mod ring;

use core::fmt;
use nix::time::{ClockId, clock_gettime};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The ring's size, the events' clock, and whether panics are logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The ring's size: a power of two in [`RING_BYTES`](crate::RING_BYTES). The ring keeps the
    /// newest events only.
    pub ring_bytes: u32,
    /// The source of the events' time.
    pub clock: Clock,
    /// Whether a panic is logged. It is logged before the previous hook runs.
    pub panics: bool,
}

/// The source of the events' time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// Microseconds of `CLOCK_MONOTONIC` since the start. The vDSO answers without a system call,
    /// except on a Cortex-A9 (Zynq-7000, Cyclone V): there each event makes a system call.
    Monotonic,
    /// No time: each event has the time 0, in one byte. On a Cortex-A9 this keeps events free of
    /// system calls.
    None,
}

impl Default for Settings {
    /// 64 KiB, some 6,000 events, with time and panics.
    fn default() -> Self {
        Self { ring_bytes: 64 << 10, clock: Clock::Monotonic, panics: true }
    }
}

/// The reason why [`start`](crate::start) or [`sync`](crate::sync) did nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages name the fields")]
pub enum StartError {
    /// The ring's size is no power of two in [`RING_BYTES`](crate::RING_BYTES).
    RingBytes { given: u32 },
    /// The program was loaded at an address that changes the events' numbers. Kernels before 5.10
    /// do that to a position-independent program, and kernels before 6.10 also to a static one.
    LoadAddress { off_by: u16 },
    /// The program has no build ID, which its log needs to find the texts.
    NoBuildId,
    /// The program has a log already.
    Twice,
    /// The file or its memory is not available.
    File { call: &'static str, errno: i32 },
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

/// Starts to log into a new ring at `path`. Before that, events are lost.
///
/// An existing ring is renamed to `path` with the suffix `.before`, so that a restarted program
/// does not overwrite the reason of its end. The new ring is mapped for ever. Only the program's
/// user can read it.
///
/// It makes some ten system calls, and needs no heap for paths below 384 bytes.
///
/// # Errors
/// [`StartError`] names what is missing. The program goes on without a log.
pub fn start(path: impl AsRef<Path>, settings: &Settings) -> Result<(), StartError> {
    /// `defmt` supports one log in a program.
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

/// Makes the kernel write the ring to its disk, and waits for that: one system call. Call it for a
/// file that must survive the loss of power; on tmpfs it does nothing.
///
/// # Errors
/// [`StartError::File`]: no log has been started, or the disk failed.
pub fn sync() -> Result<(), StartError> {
    ring::sync()
}

/// The number of dropped events so far: too long, from a signal handler inside another event, or
/// because the lock was not released in time.
#[must_use]
pub fn dropped() -> u64 {
    ring::dropped()
}

/// Microseconds of the clock at the start; `OFF` without a clock.
static START_US: AtomicU64 = AtomicU64::new(OFF);
const OFF: u64 = u64::MAX;

/// A failing clock does not stop the log.
fn now_us() -> u64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |now| {
        u64::try_from(now.tv_sec())
            .unwrap_or(0)
            .wrapping_mul(1_000_000)
            .wrapping_add(u64::try_from(now.tv_nsec()).unwrap_or(0) / 1_000)
    })
}

/// Starts the events' clock.
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
