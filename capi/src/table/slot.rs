#![allow(unsafe_code, reason = "one entry of a static table: an atomic word decides who may use the value beside it")]
//! One entry of a static table: a value that never moves, and one atomic word that says in which
//! life it is and who uses it.
//!
//! ```text
//!            claim                 drop                      lease
//!   FREE ────────────► CALL ────────────────► LIVE, 0 users ───────► LIVE, n users
//!    ▲                 ▲  │ value given up        │  ▲                   │ drop
//!    └─────────────────│──┘ ◄─────────────────────┘  └───────────────────┘
//!                      │      lock, hold
//!                      ├──────► JOB                  a job has it, until its end is taken
//!                      └──────► KEPT ─────► LIVE      a free slot of a pool; whoever claims the slot fills it
//! ```
//!
//! Nothing waits here: what another thread uses at this moment is refused, so no thread can be held
//! up by one of lower priority.

use super::{JobHold, Lease, Locked};
use crate::{
    fault::Misuse,
    handle::{GENERATION_MAX, Kind},
};
use core::{
    cell::UnsafeCell,
    mem::MaybeUninit,
    sync::atomic::{AtomicU64, Ordering},
};

/// The lower bits of the word are the state, the others the generation: 48 bits, as in a handle.
const STATE_BITS: u32 = 16;
const STATE_MASK: u64 = (1 << STATE_BITS) - 1;

/// Nobody's, and without a value.
pub(super) const FREE: u64 = 0;
/// One call has it, alone.
const CALL: u64 = 1;
/// A job has it.
pub(super) const JOB: u64 = 2;
/// It has no value, and is kept for a pool's slot that is not out.
pub(super) const KEPT: u64 = 4;
/// It has a handle. The users are added: at most `STATE_MASK - LIVE`.
pub(super) const LIVE: u64 = 5;

/// Attempts to change the word while other threads change it. Each failure is another thread's
/// success, and more than so many in a row are refused rather than waited for.
const ATTEMPTS: u32 = 1_000;

/// One entry of a static table.
pub(crate) struct Slot<T> {
    pub(super) word: AtomicU64,
    /// Zeroes where there is none, so that a table is no part of a program's file.
    ///
    /// INVARIANT: initialised in the states `JOB` and `LIVE`, and in `CALL` as `Locked`
    /// says.
    value: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: the value is reached through `Locked` and `JobHold`, which one thread has at a time (states
// `CALL` and `JOB`), and through `Lease`, which exists only for `T: Sync`.
unsafe impl<T: Send> Sync for Slot<T> {}

impl<T> Slot<T> {
    pub(crate) const fn new() -> Self {
        Self { word: AtomicU64::new(FREE), value: UnsafeCell::new(MaybeUninit::zeroed()) }
    }

    /// In which life it is.
    pub(super) fn generation(&self) -> u64 {
        self.word.load(Ordering::Relaxed) >> STATE_BITS
    }

    /// Takes a free entry, in a new life: no handle that was ever given out names it.
    pub(crate) fn claim(&'static self) -> Option<Locked<T>> {
        let word = self.word.load(Ordering::Relaxed);
        let generation = (word >> STATE_BITS) + 1;
        if word & STATE_MASK != FREE || generation > GENERATION_MAX {
            return None;
        }
        // Acquire: what the entry's last user did to the value is done.
        let claimed = self.word.compare_exchange(word, generation << STATE_BITS | CALL, Ordering::Acquire, Ordering::Relaxed);
        claimed.ok().map(|_| Locked { slot: self, generation, full: false })
    }

    /// Gives a kept entry its value, in a new life, whose generation is the answer. The value comes
    /// back where the generations are used up.
    ///
    /// # Safety
    /// The entry is kept, and what its last user did happened before. Nobody else fills or frees
    /// it.
    pub(crate) unsafe fn fill(&'static self, value: T) -> Result<u64, T> {
        let generation = (self.word.load(Ordering::Relaxed) >> STATE_BITS) + 1;
        if generation > GENERATION_MAX {
            return Err(value);
        }
        // SAFETY: no `Locked` and no lease begins in the state `KEPT`, and the caller is the only
        // one who ends it.
        unsafe { (*self.value.get()).write(value) };
        // Release: whoever has the handle finds the value.
        self.word.store(generation << STATE_BITS | LIVE, Ordering::Release);
        Ok(generation)
    }

    /// Frees a kept entry.
    ///
    /// # Safety
    /// As for `fill`.
    pub(crate) unsafe fn free_kept(&'static self) {
        let generation = self.word.load(Ordering::Relaxed) >> STATE_BITS;
        self.word.store(generation << STATE_BITS | FREE, Ordering::Release);
    }

    /// The value for one call alone, in whichever life the entry is: the caller compares something
    /// in the value.
    pub(crate) fn lock_whichever(&'static self, kind: Kind) -> Result<Locked<T>, Misuse> {
        self.lock(kind, self.generation())
    }

    /// The value for one call alone.
    #[inline]
    pub(crate) fn lock(&'static self, kind: Kind, generation: u64) -> Result<Locked<T>, Misuse> {
        self.alone(kind, generation)?;
        Ok(Locked { slot: self, generation, full: true })
    }

    /// The value for a job: for this call alone, until the job has it for good (`JobHold::begin`).
    #[inline]
    pub(crate) fn hold(&'static self, kind: Kind, generation: u64) -> Result<JobHold<T>, Misuse> {
        self.alone(kind, generation)?;
        Ok(JobHold { slot: self, generation })
    }

    /// From live, with no users, to this call's alone.
    #[inline]
    fn alone(&self, kind: Kind, generation: u64) -> Result<(), Misuse> {
        for _ in 0..ATTEMPTS {
            let word = self.word.load(Ordering::Relaxed);
            match state(word, kind, generation)? {
                0 => {}
                users => return Err(Misuse::StillUsed { kind, users }),
            }
            // Acquire: what the entry's last user did to the value is done.
            let call = generation << STATE_BITS | CALL;
            if self.word.compare_exchange_weak(word, call, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                return Ok(());
            }
        }
        Err(Misuse::InCall { kind })
    }

    /// Leaves the entry in `state`.
    #[inline]
    pub(super) fn leave(&self, generation: u64, state: u64) {
        // Release: what its user did to the value is done.
        self.word.store(generation << STATE_BITS | state, Ordering::Release);
    }

    /// The value's place. Who may look at it, and when it holds a value, says the word.
    #[inline]
    pub(super) const fn value(&self) -> *mut MaybeUninit<T> {
        self.value.get()
    }
}

/// How many users a live entry of this generation has, or what else it is.
#[inline]
const fn state(word: u64, kind: Kind, generation: u64) -> Result<u64, Misuse> {
    if word >> STATE_BITS != generation {
        return Err(Misuse::Stale { kind });
    }
    match word & STATE_MASK {
        FREE | KEPT => Err(Misuse::Stale { kind }),
        CALL => Err(Misuse::InCall { kind }),
        JOB => Err(Misuse::DeviceOwned),
        live => Ok(live - LIVE),
    }
}

impl<T: Sync> Slot<T> {
    /// The value, shared, in whichever life the entry is.
    pub(crate) fn lease_whichever(&'static self, kind: Kind) -> Result<Lease<T>, Misuse> {
        self.lease(kind, self.generation())
    }

    /// The value for as long as the lease lives, shared with other leases.
    pub(crate) fn lease(&'static self, kind: Kind, generation: u64) -> Result<Lease<T>, Misuse> {
        for _ in 0..ATTEMPTS {
            let word = self.word.load(Ordering::Relaxed);
            let users = state(word, kind, generation)?;
            if users == STATE_MASK - LIVE {
                return Err(Misuse::StillUsed { kind, users });
            }
            // Acquire: what the entry's last user did to the value is done.
            if self.word.compare_exchange_weak(word, word + 1, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                return Ok(Lease { slot: self });
            }
        }
        Err(Misuse::InCall { kind })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::{CONTIGO_E_DEVICE_OWNED, CONTIGO_E_IN_CALL, CONTIGO_E_STALE, CONTIGO_E_STILL_USED, contigo_status};

    /// A static entry, as all of them are.
    fn slot() -> &'static Slot<Vec<u8>> {
        Box::leak(Box::new(Slot::new()))
    }

    fn filled(slot: &'static Slot<Vec<u8>>) -> u64 {
        let Some(mut locked) = slot.claim() else { return 0 };
        locked.put(vec![1, 2, 3]);
        locked.generation()
    }

    fn status<T>(outcome: Result<T, Misuse>) -> contigo_status {
        outcome.err().map_or(0, |misuse| crate::fault::Fault::from(misuse).status())
    }

    const BUF: Kind = Kind::Buf;

    #[test]
    fn one_call_has_it_alone() {
        let slot = slot();
        let generation = filled(slot);
        let locked = slot.lock(BUF, generation);
        assert_eq!(status(slot.lock(BUF, generation)), CONTIGO_E_IN_CALL);
        assert_eq!(status(slot.lease(BUF, generation)), CONTIGO_E_IN_CALL);
        assert!(slot.claim().is_none());
        drop(locked);
        assert!(slot.lock(BUF, generation).is_ok());
    }

    #[test]
    fn leases_are_counted() {
        let slot = slot();
        let generation = filled(slot);
        let leases = [slot.lease(BUF, generation), slot.lease(BUF, generation)];
        assert_eq!(slot.lock(BUF, generation).err(), Some(Misuse::StillUsed { kind: BUF, users: 2 }));
        assert!(leases.iter().flatten().all(|lease| lease.len() == 3));
        drop(leases);
        assert_eq!(status(slot.lease(BUF, generation + 1)), CONTIGO_E_STALE);
        if let Ok(mut locked) = slot.lock(BUF, generation) {
            locked.clear();
        }
        assert_eq!((status(slot.lease(BUF, generation)), status(slot.lock(BUF, generation))), (CONTIGO_E_STALE, CONTIGO_E_STALE));
    }

    #[test]
    fn leases_do_not_overflow_into_the_generation() {
        let slot = slot();
        let generation = filled(slot);
        let mut leases: Vec<_> = std::iter::from_fn(|| slot.lease(BUF, generation).ok()).collect();
        assert_eq!(leases.len() as u64, STATE_MASK - LIVE);
        assert_eq!(status(slot.lease(BUF, generation)), CONTIGO_E_STILL_USED);
        let one = leases.pop();
        assert_eq!(one.as_ref().map(|lease| status(lease.again(BUF))), Some(CONTIGO_E_STILL_USED));
        drop(leases.pop());
        assert!(one.is_some_and(|lease| lease.again(BUF).is_ok_and(|again| again.len() == 3)));
        assert!(slot.lease(BUF, generation).is_ok());
    }

    #[test]
    fn a_job_keeps_it_and_one_that_is_forgotten_keeps_it_for_ever() {
        let slot = slot();
        let generation = filled(slot);
        let hold = slot.hold(BUF, generation);
        assert_eq!(status(slot.lock(BUF, generation)), CONTIGO_E_IN_CALL, "it has not begun");
        assert!(hold.as_ref().map(JobHold::begin).is_ok());
        assert_eq!(status(slot.lock(BUF, generation)), CONTIGO_E_DEVICE_OWNED);
        assert!(hold.map(JobHold::back).is_ok());
        assert!(slot.hold(BUF, generation).map(|hold| hold.begin()).is_ok());
        assert_eq!(status(slot.lock(BUF, generation)), CONTIGO_E_DEVICE_OWNED);
        assert!(slot.claim().is_none());
    }

    #[test]
    fn every_life_has_another_generation_and_the_last_is_the_last() {
        let slot = slot();
        let first = filled(slot);
        if let Ok(locked) = slot.lock(BUF, first) {
            drop(locked.keep());
        }
        assert_eq!((status(slot.lock(BUF, first)), status(slot.lease(BUF, first))), (CONTIGO_E_STALE, CONTIGO_E_STALE));
        assert!(slot.claim().is_none(), "it is kept");
        // SAFETY: it is kept, and this test has it alone.
        assert_eq!(unsafe { slot.fill(vec![4]) }, Ok(first + 1));
        assert_eq!((status(slot.lock(BUF, first)), slot.lease(BUF, first + 1).map(|lease| lease.len())), (CONTIGO_E_STALE, Ok(1)));
        if let Ok(locked) = slot.lock(BUF, first + 1) {
            drop(locked.keep());
        }
        // SAFETY: as above.
        unsafe { slot.free_kept() };
        assert_eq!(slot.claim().map(|locked| locked.generation()), Some(first + 2));
        let old = Slot::<u8> { word: AtomicU64::new(GENERATION_MAX << STATE_BITS | FREE), ..Slot::new() };
        let old: &'static Slot<u8> = Box::leak(Box::new(old));
        assert!(old.claim().is_none(), "an entry whose generations are used up is never used again");
        let kept = Slot::<u8> { word: AtomicU64::new(GENERATION_MAX << STATE_BITS | KEPT), ..Slot::new() };
        let kept: &'static Slot<u8> = Box::leak(Box::new(kept));
        // SAFETY: as above.
        assert_eq!(unsafe { kept.fill(1) }, Err(1));
    }
}
