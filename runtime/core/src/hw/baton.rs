//! Who sleeps in the one interrupt of a core, and how the others hear of it.

use crate::types::{
    Result,
    atomic::{AtomicU32, Ordering},
    platform,
};

/// The lowest bit of the word: a thread has the baton.
const HELD: u32 = 1;
/// The bits above count how often it was passed on.
const PASSED: u32 = 2;

/// One thread at a time has the baton and sleeps in the real interrupt. The others sleep until it
/// is passed on; then all of them look at their own registers, and the first that waits again
/// takes it.
///
/// **No wake-up is lost.** Each waiter keeps the count that it saw before its last look. Where the
/// count has moved, an interrupt was taken after that look, and the waiter looks again instead of
/// sleeping. The system call that sleeps compares the whole word once more.
#[derive(Debug)]
pub(crate) struct Baton {
    word: AtomicU32,
    /// How many sleep, or are about to: with none, passing it on makes no system call.
    asleep: AtomicU32,
}

/// The count of the baton that one waiter saw before its last look.
#[derive(Debug)]
pub(crate) struct Seen(AtomicU32);

impl Baton {
    pub(crate) fn new() -> Self {
        Self { word: AtomicU32::new(0), asleep: AtomicU32::new(0) }
    }

    /// For a waiter that has not looked yet.
    pub(crate) fn seen(&self) -> Seen {
        Seen(AtomicU32::new(self.count()))
    }

    fn count(&self) -> u32 {
        self.word.load(Ordering::Acquire) & !HELD
    }

    /// Waits once: in `interrupt`, which belongs to the device, or until a sibling passes the baton
    /// on, at most for `timeout_us`. The caller looks at its own registers then.
    ///
    /// # Errors
    /// The error of `interrupt`, to the one whose wait it was.
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
            // It was passed on since the last look.
            Err(_) => {}
        }
        seen.0.store(self.count(), Ordering::Relaxed);
        waited
    }

    /// Makes all that sleep look, except the one who has the baton: that one sleeps in the
    /// interrupt, and looks when its own time is over.
    pub(crate) fn wake(&self) {
        self.pass(PASSED);
    }

    /// `step`: what takes the word to its next count, with the baton held or not.
    fn pass(&self, step: u32) {
        self.word.fetch_add(step, Ordering::AcqRel);
        // An addition of nothing, and no load: of this and the sleeper's own addition one is first.
        // Where it is this one, the sleeper finds the word changed; otherwise it is woken.
        if self.asleep.fetch_add(0, Ordering::AcqRel) != 0 {
            platform::wake_all(&self.word);
        }
    }
}

/// The baton, passed on when it is dropped: also where the interrupt's code panics.
struct Held<'b>(&'b Baton);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.pass(PASSED - HELD);
    }
}
