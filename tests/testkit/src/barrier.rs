//! A barrier that ends: of threads that meet there, one that panicked before would keep the others,
//! and the test, for ever.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// As long as a thread may be late, also under an emulator beside other work.
const LIMIT: Duration = Duration::from_secs(60);

/// As [`std::sync::Barrier`], and who waits for more than a minute panics.
#[derive(Debug)]
pub struct Barrier {
    threads: usize,
    /// How many are there, and how often all were.
    here: Mutex<(usize, usize)>,
    all: Condvar,
}

impl Barrier {
    /// For so many threads.
    pub const fn new(threads: usize) -> Self {
        Self { threads, here: Mutex::new((0, 0)), all: Condvar::new() }
    }

    /// Waits for the others.
    pub fn wait(&self) {
        let mut here = self.here.lock().unwrap_or_else(PoisonError::into_inner);
        here.0 += 1;
        if here.0 == self.threads {
            *here = (0, here.1 + 1);
            return self.all.notify_all();
        }
        let round = here.1;
        let waited = self
            .all
            .wait_timeout_while(here, LIMIT, |here| here.1 == round)
            .unwrap_or_else(PoisonError::into_inner);
        assert!(
            !waited.1.timed_out(),
            "a thread did not come to the barrier within {LIMIT:?}: look for its panic"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;
    use std::sync::atomic::Ordering::Relaxed;
    use std::thread;

    #[test]
    fn all_meet_in_every_round() {
        let (barrier, came) = (Barrier::new(3), AtomicU32::new(0));
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for round in 1..=100 {
                        came.fetch_add(1, Relaxed);
                        barrier.wait();
                        assert_eq!(came.load(Relaxed), 3 * round);
                        barrier.wait();
                    }
                });
            }
        });
    }
}
