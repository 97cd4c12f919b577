//! A lock with a bounded wait, for what the kernel does not serialise (u-dma-buf's ioctls) and for
//! the simulated board.
//!
//! The holder may be a thread of lower priority on the same core, and under `SCHED_FIFO` a waiter
//! that spins or calls `sched_yield` would keep it from running for ever. So a waiter spins
//! briefly, then sleeps, and at last returns an error.

use crate::types::Error;
use crate::types::platform::sleep;
use core::time::Duration;
use spin::{Mutex, MutexGuard};

/// How often a waiter tries with only a pause between: about as long as a running holder needs.
const SPINS: u32 = 1_000;
/// How often it tries after that, with a sleep before each.
const SLEEPS: u32 = 20_000;
/// One sleep. `SLEEPS` sleeps are 1 s, and up to 2 s with the overhead of each. That is longer than
/// the cache maintenance of any whole block (256 MiB in about 100 ms).
const SLEEP: Duration = Duration::from_micros(50);

/// Takes the lock, or returns an error if it stays held.
pub fn acquire<T: ?Sized>(mutex: &Mutex<T>) -> Result<MutexGuard<'_, T>, Error> {
    for attempt in 0..SPINS + SLEEPS {
        if let Some(guard) = mutex.try_lock() {
            return Ok(guard);
        }
        if attempt < SPINS { core::hint::spin_loop() } else { sleep(SLEEP) }
    }
    Err(Error::Contended { tries: SPINS + SLEEPS })
}
