//! A lock with a bound, for what the kernel does not serialise itself (u-dma-buf's ioctls) and for
//! the simulated board.
//!
//! The holder may be a thread of lower priority on the same core, which spinning or `sched_yield`
//! would keep off it for ever under `SCHED_FIFO`. So a waiter spins a little, then sleeps, and
//! gives up with a typed error.

use crate::types::{Error, platform::sleep};
use core::time::Duration;
use spin::{Mutex, MutexGuard};

/// Tries with only a pause between them: about as long as a holder that is running needs.
const SPINS: u32 = 1_000;
/// Tries with a sleep before each.
const SLEEPS: u32 = 20_000;
/// One sleep. `SLEEPS` of them are 1 s, and up to 2 s with the time that each sleep adds. That is
/// longer than any cache maintenance of a whole block (256 MiB in about 100 ms).
const SLEEP: Duration = Duration::from_micros(50);

/// Takes the lock, or says that it could not.
pub fn acquire<T: ?Sized>(mutex: &Mutex<T>) -> Result<MutexGuard<'_, T>, Error> {
    for attempt in 0..SPINS + SLEEPS {
        if let Some(guard) = mutex.try_lock() {
            return Ok(guard);
        }
        if attempt < SPINS { core::hint::spin_loop() } else { sleep(SLEEP) }
    }
    Err(Error::Contended { tries: SPINS + SLEEPS })
}
