//! The time of an event, in `defmt`'s own words: microseconds since the start.

use super::settings::Clock;
use core::sync::atomic::{AtomicU64, Ordering};
use nix::time::{ClockId, clock_gettime};

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
pub(super) fn begin(clock: Clock) {
    START_US.store(if clock == Clock::Monotonic { now_us() } else { OFF }, Ordering::Relaxed);
}

fn since_start_us() -> u64 {
    match START_US.load(Ordering::Relaxed) {
        OFF => 0,
        start => now_us().wrapping_sub(start),
    }
}

defmt::timestamp!("{=u64:us}", since_start_us());
