//! A lock with a bound, for what the kernel does not serialise itself (u-dma-buf's ioctls) and for the simulated board.
//!
//! The holder may be a thread of lower priority on the same core, which spinning or `sched_yield` would keep off it for
//! ever under `SCHED_FIFO`. So a waiter spins a little, then sleeps, and gives up with a typed error.

use crate::types::Error;
use spin::{Mutex, MutexGuard};

/// Tries with nothing but a pause between them: about as long as a holder that is running needs.
const SPINS: u32 = 1_000;
/// Tries with a sleep before each.
const SLEEPS: u32 = 20_000;
/// One sleep. `SLEEPS` of them are 1 s, and up to 2 s with what a sleep takes beside its time: longer than any cache maintenance of a whole block (256 MiB in about 100 ms).
#[cfg(all(feature = "linux", target_os = "linux"))]
const SLEEP: core::time::Duration = core::time::Duration::from_micros(50);

/// Takes the lock, or says that it could not.
pub(crate) fn acquire<T>(mutex: &Mutex<T>) -> Result<MutexGuard<'_, T>, Error> {
    for attempt in 0..SPINS + SLEEPS {
        if let Some(guard) = mutex.try_lock() {
            return Ok(guard);
        }
        if attempt < SPINS { core::hint::spin_loop() } else { sleep() }
    }
    Err(Error::Contended { tries: SPINS + SLEEPS })
}

#[cfg(all(feature = "linux", target_os = "linux"))]
fn sleep() {
    use nix::time::{ClockId, ClockNanosleepFlags, clock_nanosleep};
    // An early return (EINTR) is one try sooner: nothing is lost.
    let _ = clock_nanosleep(ClockId::CLOCK_MONOTONIC, ClockNanosleepFlags::empty(), &nix::sys::time::TimeSpec::from_duration(SLEEP));
}

#[cfg(not(all(feature = "linux", target_os = "linux")))]
fn sleep() {
    core::hint::spin_loop();
}
