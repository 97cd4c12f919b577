//! Shares one interrupt among a core's channels: one thread waits for it and wakes the others.

use crate::types::atomic::{AtomicU32, Ordering};
use crate::types::{Result, platform};

/// The lowest bit of the word: a thread sleeps in the interrupt.
const HELD: u32 = 1;
/// The bits above count how often such a sleep ended.
const ENDED: u32 = 2;

/// One thread at a time sleeps in the real interrupt, and the other threads sleep until it wakes.
/// Then all of them poll their own registers, and the first that waits again sleeps in the
/// interrupt.
///
/// **No wake-up is lost.** Each waiter keeps the count that it saw before its last poll. If the
/// count has changed, an interrupt was taken after that poll, and the waiter polls again instead of
/// sleeping. The system call that sleeps compares the whole word once more.
#[derive(Debug)]
pub(crate) struct SharedInterrupt {
    word: AtomicU32,
    /// How many threads sleep, or are about to. With none, passing on makes no system call.
    asleep: AtomicU32,
}

/// The count that one waiter saw before its last poll.
#[derive(Debug)]
pub(crate) struct Seen(AtomicU32);

impl SharedInterrupt {
    pub(crate) fn new() -> Self {
        Self { word: AtomicU32::new(0), asleep: AtomicU32::new(0) }
    }

    /// For a waiter that has not polled yet.
    pub(crate) fn seen(&self) -> Seen {
        Seen(AtomicU32::new(self.count()))
    }

    fn count(&self) -> u32 {
        self.word.load(Ordering::Acquire) & !HELD
    }

    /// Waits once, for at most `timeout_us`: in `interrupt`, which belongs to the device, or until
    /// the sibling that sleeps there wakes. The caller then polls its own registers.
    ///
    /// # Errors
    /// The error of `interrupt`, for the thread that waited in it.
    pub(crate) fn wait(
        &self,
        seen: &Seen,
        timeout_us: u32,
        interrupt: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let before = seen.0.load(Ordering::Relaxed);
        let mut waited = Ok(());
        match self.word.compare_exchange(before, before | HELD, Ordering::AcqRel, Ordering::Acquire)
        {
            Ok(_) => {
                let held = Held(self);
                waited = interrupt();
                drop(held);
            }
            Err(word) if word == before | HELD => {
                self.asleep.fetch_add(1, Ordering::AcqRel);
                platform::sleep_while(&self.word, word, timeout_us);
                self.asleep.fetch_sub(1, Ordering::AcqRel);
            }
            // A sibling has woken since the last poll.
            Err(_) => {}
        }
        seen.0.store(self.count(), Ordering::Relaxed);
        waited
    }

    /// Makes every sleeping thread poll, except the one that sleeps in the interrupt: that one
    /// polls when its own wait is over.
    pub(crate) fn wake(&self) {
        self.step(ENDED);
    }

    /// Adds `step`, which takes the word to its next count, and wakes the threads that sleep.
    fn step(&self, step: u32) {
        self.word.fetch_add(step, Ordering::AcqRel);
        // Adding 0 instead of a load puts this in one order with the sleeper's own addition. If
        // this comes first, the sleeper finds the word changed; otherwise this thread wakes it.
        if self.asleep.fetch_add(0, Ordering::AcqRel) != 0 {
            platform::wake_all(&self.word);
        }
    }
}

/// A thread sleeps in the interrupt. Dropping this wakes the others, also if the interrupt's code
/// panics.
struct Held<'b>(&'b SharedInterrupt);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.step(ENDED - HELD);
    }
}
