#![allow(
    unsafe_code,
    reason = "one entry of a static table: its word decides who may use the value beside it"
)]
//! One entry of a static table: a value that never moves, and the word that says who uses it.

use super::{
    JobHold, Lease, Locked,
    word::{FREE, LIVE, Word},
};
use crate::{Kind, Refusal};
use core::{cell::UnsafeCell, mem::MaybeUninit, sync::atomic::AtomicU64};

/// One entry of a static table.
#[derive(Debug)]
pub struct Slot<T> {
    pub(super) word: Word,
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
    /// A free one.
    #[must_use]
    #[allow(clippy::new_without_default, reason = "it is a static's")]
    pub const fn new() -> Self {
        Self { word: Word(AtomicU64::new(FREE)), value: UnsafeCell::new(MaybeUninit::zeroed()) }
    }

    /// Takes a free entry, in a new life.
    pub fn claim(&'static self) -> Option<Locked<T>> {
        self.word.claim().map(|generation| Locked { slot: self, generation, full: false })
    }

    /// Gives a kept entry its value, in a new life, whose generation is the answer.
    ///
    /// # Errors
    /// The value comes back where the generations are used up.
    ///
    /// # Safety
    /// The entry is kept, and what its last user did happened before. No other thread fills or
    /// frees it.
    pub unsafe fn fill(&'static self, value: T) -> Result<u64, T> {
        let Some(generation) = self.word.next_generation() else { return Err(value) };
        // SAFETY: no `Locked` and no lease begins in the state `KEPT`, and the caller is the only
        // one who ends it.
        unsafe { (*self.value.get()).write(value) };
        self.word.leave(generation, LIVE);
        Ok(generation)
    }

    /// Frees a kept entry.
    ///
    /// # Safety
    /// As for `fill`.
    pub unsafe fn free_kept(&'static self) {
        self.word.leave(self.word.generation(), FREE);
    }

    /// The value for one call alone, whatever the entry's generation is: the caller compares
    /// something in the value.
    ///
    /// # Errors
    /// Its object is gone, in a job, in another call, or used.
    pub fn lock_current(&'static self, kind: Kind) -> Result<Locked<T>, Refusal> {
        self.lock(kind, self.word.generation())
    }

    /// The value for one call alone.
    ///
    /// # Errors
    /// Its object is gone, in a job, in another call, or used.
    #[inline]
    pub fn lock(&'static self, kind: Kind, generation: u64) -> Result<Locked<T>, Refusal> {
        self.word.alone(kind, generation)?;
        Ok(Locked { slot: self, generation, full: true })
    }

    /// The value for a job: for this call alone, until the job has it for good (`JobHold::begin`).
    ///
    /// # Errors
    /// Its object is gone, in a job, in another call, or used.
    #[inline]
    pub fn hold(&'static self, kind: Kind, generation: u64) -> Result<JobHold<T>, Refusal> {
        self.word.alone(kind, generation)?;
        Ok(JobHold { slot: self, generation })
    }

    /// The value's place. Who may look at it, and when it holds a value, says the word.
    #[inline]
    pub(super) const fn value(&self) -> *mut MaybeUninit<T> {
        self.value.get()
    }
}

impl<T: Sync> Slot<T> {
    /// The value for as long as the lease lives, shared with other leases.
    ///
    /// # Errors
    /// Its object is gone, in a job, in another call, or has as many leases as are counted.
    pub fn lease(&'static self, kind: Kind, generation: u64) -> Result<Lease<T>, Refusal> {
        self.word.lease(kind, generation)?;
        Ok(Lease { slot: self })
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::word::{GENERATION_MAX, KEPT, USERS_MAX, bits},
        *,
    };

    /// A static entry, as all of them are.
    fn slot() -> &'static Slot<Vec<u8>> {
        Box::leak(Box::new(Slot::new()))
    }

    fn filled(slot: &'static Slot<Vec<u8>>) -> u64 {
        let Some(mut locked) = slot.claim() else { return 0 };
        locked.put(vec![1, 2, 3]);
        locked.generation()
    }

    const BUF: Kind = Kind::Buf;
    const IN_CALL: Option<Refusal> = Some(Refusal::InCall { kind: BUF });
    const IN_JOB: Option<Refusal> = Some(Refusal::InJob);
    const STALE: Option<Refusal> = Some(Refusal::Stale { kind: BUF });

    #[test]
    fn one_call_has_it_alone() {
        let slot = slot();
        let generation = filled(slot);
        let locked = slot.lock(BUF, generation);
        assert_eq!(slot.lock(BUF, generation).err(), IN_CALL);
        assert_eq!(slot.lease(BUF, generation).err(), IN_CALL);
        assert!(slot.claim().is_none());
        drop(locked);
        assert!(slot.lock(BUF, generation).is_ok());
    }

    #[test]
    fn leases_are_counted() {
        let slot = slot();
        let generation = filled(slot);
        let leases = [slot.lease(BUF, generation), slot.lease(BUF, generation)];
        assert_eq!(
            slot.lock(BUF, generation).err(),
            Some(Refusal::StillUsed { kind: BUF, users: 2 })
        );
        assert!(leases.iter().flatten().all(|lease| lease.len() == 3));
        drop(leases);
        assert_eq!(slot.lease(BUF, generation + 1).err(), STALE);
        if let Ok(mut locked) = slot.lock(BUF, generation) {
            locked.clear();
        }
        assert_eq!(
            (slot.lease(BUF, generation).err(), slot.lock(BUF, generation).err()),
            (STALE, STALE)
        );
    }

    #[test]
    fn leases_do_not_overflow_into_the_generation() {
        let slot = slot();
        let generation = filled(slot);
        let mut leases: Vec<_> = std::iter::from_fn(|| slot.lease(BUF, generation).ok()).collect();
        assert_eq!(leases.len() as u64, USERS_MAX);
        let full = Some(Refusal::StillUsed { kind: BUF, users: USERS_MAX });
        assert_eq!(slot.lease(BUF, generation).err(), full);
        let one = leases.pop();
        assert_eq!(one.as_ref().map(|lease| lease.again(BUF).err()), Some(full));
        drop(leases.pop());
        assert!(one.is_some_and(|lease| lease.again(BUF).is_ok_and(|again| again.len() == 3)));
        assert!(slot.lease(BUF, generation).is_ok());
    }

    #[test]
    fn a_job_keeps_it_and_one_that_is_forgotten_keeps_it_for_ever() {
        let slot = slot();
        let generation = filled(slot);
        let hold = slot.hold(BUF, generation);
        assert_eq!(slot.lock(BUF, generation).err(), IN_CALL, "it has not begun");
        assert!(hold.as_ref().map(JobHold::begin).is_ok());
        assert_eq!(slot.lock(BUF, generation).err(), IN_JOB);
        assert!(hold.map(JobHold::back).is_ok());
        assert!(slot.hold(BUF, generation).map(|hold| hold.begin()).is_ok());
        assert_eq!(slot.lock(BUF, generation).err(), IN_JOB);
        assert!(slot.claim().is_none());
    }

    #[test]
    fn every_life_has_another_generation_and_the_last_is_the_last() {
        let slot = slot();
        let first = filled(slot);
        if let Ok(locked) = slot.lock(BUF, first) {
            drop(locked.keep());
        }
        assert_eq!((slot.lock(BUF, first).err(), slot.lease(BUF, first).err()), (STALE, STALE));
        assert!(slot.claim().is_none(), "it is kept");
        // SAFETY: it is kept, and this test has it alone.
        assert_eq!(unsafe { slot.fill(vec![4]) }, Ok(first + 1));
        assert_eq!(
            (slot.lock(BUF, first).err(), slot.lease(BUF, first + 1).map(|lease| lease.len())),
            (STALE, Ok(1))
        );
        if let Ok(locked) = slot.lock(BUF, first + 1) {
            drop(locked.keep());
        }
        // SAFETY: as above.
        unsafe { slot.free_kept() };
        assert_eq!(slot.claim().map(|locked| locked.generation()), Some(first + 2));
        let old =
            Slot::<u8> { word: Word(AtomicU64::new(bits(GENERATION_MAX, FREE))), ..Slot::new() };
        let old: &'static Slot<u8> = Box::leak(Box::new(old));
        assert!(
            old.claim().is_none(),
            "an entry whose generations are used up is never used again"
        );
        let kept =
            Slot::<u8> { word: Word(AtomicU64::new(bits(GENERATION_MAX, KEPT))), ..Slot::new() };
        let kept: &'static Slot<u8> = Box::leak(Box::new(kept));
        // SAFETY: as above.
        assert_eq!(unsafe { kept.fill(1) }, Err(1));
    }
}
