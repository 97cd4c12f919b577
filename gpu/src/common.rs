//! What a device of either interface needs: locks with a limit, devices that are opened once, and
//! jobs that do not end.

use contigo::{Error, Result};
use core::mem;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;
use spin::{Mutex, MutexGuard};
use std::sync::OnceLock;
use std::thread;
use std::time::Instant;

/// How often a lock is tried with no more than a hint to the processor: a holder on another core
/// has it for a few microseconds.
const TRIES_AT_ONCE: u32 = 1_000;
/// How long a lock is tried in all. A holder may have lost its core for several time slices, or be
/// inside a driver's call that enters the kernel.
const LIMIT: Duration = Duration::from_secs(1);

/// Locks, in bounded time.
pub(crate) fn acquire<T>(mutex: &Mutex<T>) -> Result<MutexGuard<'_, T>> {
    for _ in 0..TRIES_AT_ONCE {
        if let Some(guard) = mutex.try_lock() {
            return Ok(guard);
        }
        core::hint::spin_loop();
    }
    let (since, mut tries) = (Instant::now(), TRIES_AT_ONCE);
    while since.elapsed() < LIMIT {
        // The holder may wait for this very core.
        thread::yield_now();
        tries = tries.saturating_add(1);
        if let Some(guard) = mutex.try_lock() {
            return Ok(guard);
        }
    }
    Err(Error::Contended { tries })
}

/// Is `value` within these bounds?
pub(crate) fn within(name: &'static str, value: u64, min: u64, max: u64) -> Result<()> {
    if (min..=max).contains(&value) {
        Ok(())
    } else {
        Err(Error::Argument { name, value, min, max, multiple_of: 1 })
    }
}

/// How many devices of an interface are open at once: far more than a machine has.
const MOST_DEVICES: usize = 16;
/// How often the lock of [`Opened`] is tried, a millisecond apart: 30 seconds. A driver that is
/// opened compiles, and reads caches from disk.
const OPENING_TRIES: u32 = 30_000;

/// The devices of an interface that are open, each for the rest of the program's life.
pub(crate) struct Opened<G> {
    /// For errors.
    what: &'static str,
    opening: Mutex<()>,
    devices: [OnceLock<G>; MOST_DEVICES],
}

impl<G> Opened<G> {
    pub(crate) const fn none(what: &'static str) -> Self {
        Self { what, opening: Mutex::new(()), devices: [const { OnceLock::new() }; MOST_DEVICES] }
    }

    /// Held while the interface's library is loaded, and while devices are listed and opened. A
    /// driver may not bear two threads there: pocl 3.1 makes its devices at the first call, and a
    /// second thread finds them half made.
    pub(crate) fn lock(&self) -> Result<MutexGuard<'_, ()>> {
        for _ in 0..OPENING_TRIES {
            if let Some(guard) = self.opening.try_lock() {
                return Ok(guard);
            }
            thread::sleep(Duration::from_millis(1));
        }
        Err(Error::Contended { tries: OPENING_TRIES })
    }

    /// Device number `ordinal`, opened at the first call, and the same one at each later call.
    pub(crate) fn get_or_open<F>(
        &self,
        ordinal: u32,
        find: impl FnOnce() -> Result<F>,
        open: impl FnOnce(F) -> Result<G>,
    ) -> Result<&G> {
        let slot = usize::try_from(ordinal).ok().and_then(|slot| self.devices.get(slot));
        let known = || slot.and_then(OnceLock::get);
        if let Some(known) = known() {
            return Ok(known);
        }
        let _opening = self.lock()?;
        if let Some(known) = known() {
            // Another thread was faster.
            return Ok(known);
        }
        let found = find()?;
        let most = MOST_DEVICES as u64;
        let slot = slot.ok_or(Error::TooMany { what: self.what, most })?;
        let new = open(found)?;
        Ok(slot.get_or_init(|| new))
    }
}

/// How many kernels that were dropped under their jobs are looked at again.
const MOST_FORGOTTEN: usize = 16;

/// The kernels of a device with jobs that did not end when they should have.
pub(crate) struct Hung<J> {
    count: AtomicUsize,
    /// Jobs of kernels that were dropped. Each entry counts in `count`.
    forgotten: Mutex<[Option<J>; MOST_FORGOTTEN]>,
}

impl<J> Hung<J> {
    pub(crate) const fn none() -> Self {
        Self { count: AtomicUsize::new(0), forgotten: Mutex::new([const { None }; MOST_FORGOTTEN]) }
    }

    /// Counts a kernel that hangs; or, with `false`, one whose jobs ended after all.
    pub(crate) fn change(&self, hangs: bool) {
        if hangs {
            self.count.fetch_add(1, Ordering::Release);
        } else {
            self.count.fetch_sub(1, Ordering::Release);
        }
    }

    /// Takes the jobs of a kernel that hangs and was dropped: [`is_empty`](Self::is_empty) looks
    /// for their end. Where there is no room they are leaked, and the kernel hangs for ever.
    pub(crate) fn forget(&self, jobs: J) {
        if let Ok(mut forgotten) = acquire(&self.forgotten)
            && let Some(room) = forgotten.iter_mut().find(|room| room.is_none())
        {
            *room = Some(jobs);
        } else {
            mem::forget(jobs);
        }
    }

    /// Returns true if no kernel hangs. A dropped one counts until its jobs `have_ended`.
    pub(crate) fn is_empty(&self, have_ended: impl Fn(&J) -> bool) -> bool {
        if self.count.load(Ordering::Acquire) == 0 {
            return true;
        }
        let Ok(mut forgotten) = acquire(&self.forgotten) else { return false };
        for jobs in forgotten.iter_mut().filter(|jobs| jobs.as_ref().is_some_and(&have_ended)) {
            *jobs = None;
            self.change(false);
        }
        self.count.load(Ordering::Acquire) == 0
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics has failed, which is its purpose")]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_is_kept_is_given_up_in_time() {
        let (mutex, since) = (Mutex::new(()), Instant::now());
        let _kept = mutex.lock();
        assert!(
            matches!(acquire(&mutex), Err(Error::Contended { tries }) if tries > TRIES_AT_ONCE)
        );
        assert!(since.elapsed() >= LIMIT && since.elapsed() < 10 * LIMIT);
    }
}
