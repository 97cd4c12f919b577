#![allow(
    unsafe_code,
    reason = "one entry of a static table: its word decides who may use the value beside it"
)]
//! One entry of a static table: a value that never moves, and the word that says who uses it.

use super::word::{FREE, JOB, KEPT, LIVE, Word};
use crate::{Kind, Refusal};
use core::cell::UnsafeCell;
use core::mem::{self, ManuallyDrop, MaybeUninit};
use core::ops::Deref;
use core::sync::atomic::AtomicU64;

/// One entry of a static table.
#[derive(Debug)]
pub struct Slot<T> {
    word: Word,
    /// Zeroed without a value, so that a table takes no room in the program's file.
    ///
    /// INVARIANT: initialised in the states `JOB` and `LIVE`, and in `CALL` as `Locked`
    /// says.
    value: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: the value is reached through `Locked` and `JobHold`, which one thread has at a time
// (states `CALL` and `JOB`), and through `Lease`, which exists only for `T: Sync`.
unsafe impl<T: Send> Sync for Slot<T> {}

impl<T> Slot<T> {
    /// A free entry.
    #[must_use]
    #[allow(clippy::new_without_default, reason = "it is a static's")]
    pub const fn new() -> Self {
        Self { word: Word(AtomicU64::new(FREE)), value: UnsafeCell::new(MaybeUninit::zeroed()) }
    }

    /// Takes a free entry, and begins a new life.
    pub fn claim(&'static self) -> Option<Locked<T>> {
        self.word.claim().map(|generation| Locked { slot: self, generation, full: false })
    }

    /// Gives a kept entry its value in a new life, and returns the generation.
    ///
    /// # Errors
    /// Returns the value if the generations are used up.
    ///
    /// # Safety
    /// The entry is kept, and its last user's accesses happened before. No other thread fills or
    /// frees it.
    pub unsafe fn fill(&'static self, value: T) -> Result<u64, T> {
        let Some(generation) = self.word.next_generation() else { return Err(value) };
        // SAFETY: no `Locked` and no lease begins in the state `KEPT`, and only the caller ends
        // that state.
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

    /// Locks the value for one call, whatever the entry's generation is: the caller compares
    /// something in the value instead.
    ///
    /// # Errors
    /// The object is gone, in a job, in another call, or in use.
    pub fn lock_current(&'static self, kind: Kind) -> Result<Locked<T>, Refusal> {
        self.lock(kind, self.word.generation())
    }

    /// Locks the value for one call.
    ///
    /// # Errors
    /// The object is gone, in a job, in another call, or in use.
    #[inline]
    pub fn lock(&'static self, kind: Kind, generation: u64) -> Result<Locked<T>, Refusal> {
        self.word.alone(kind, generation)?;
        Ok(Locked { slot: self, generation, full: true })
    }

    /// Locks the value for this call, until the job takes it over (`JobHold::begin`).
    ///
    /// # Errors
    /// The object is gone, in a job, in another call, or in use.
    #[inline]
    pub fn hold(&'static self, kind: Kind, generation: u64) -> Result<JobHold<T>, Refusal> {
        self.word.alone(kind, generation)?;
        Ok(JobHold { slot: self, generation })
    }
}

impl<T: Sync> Slot<T> {
    /// Shares the value with other leases, for as long as the lease lives.
    ///
    /// # Errors
    /// The object is gone, in a job, in another call, or has the maximum number of leases.
    pub fn lease(&'static self, kind: Kind, generation: u64) -> Result<Lease<T>, Refusal> {
        self.word.lease(kind, generation)?;
        Ok(Lease { slot: self })
    }
}

/// An entry that one call has locked. Dropping it makes the entry live, or free without a value.
#[must_use]
#[derive(Debug)]
pub struct Locked<T: 'static> {
    slot: &'static Slot<T>,
    generation: u64,
    /// Whether the entry has a value.
    full: bool,
}

impl<T> Locked<T> {
    /// The generation of the entry's life.
    pub const fn generation(&self) -> u64 {
        self.generation
    }

    /// The value, if the entry has one.
    pub fn value(&mut self) -> Option<&mut T> {
        // SAFETY: the entry is in the state `CALL`, and this is its only `Locked`; `&mut self`
        // makes the borrow exclusive. The value is initialised if `full` is true.
        self.full.then(|| unsafe { (*self.slot.value.get()).assume_init_mut() })
    }

    /// Puts a value into an empty entry. An entry that has a value keeps it.
    pub fn put(&mut self, value: T) {
        if !self.full {
            // SAFETY: as in `value`.
            unsafe { (*self.slot.value.get()).write(value) };
            self.full = true;
        }
    }

    /// Makes a value in place, in an empty entry: for a value that is too large for a stack.
    ///
    /// # Safety
    /// `make` initialises the value.
    pub unsafe fn make(&mut self, make: impl FnOnce(&mut MaybeUninit<T>)) {
        if !self.full {
            // SAFETY: as in `value`; the entry has no value yet.
            make(unsafe { &mut *self.slot.value.get() });
            self.full = true;
        }
    }

    /// Drops the value in place: the entry will be free.
    pub fn clear(&mut self) {
        if mem::take(&mut self.full) {
            // SAFETY: as in `value`; it counts as uninitialised from here on.
            unsafe { (*self.slot.value.get()).assume_init_drop() }
        }
    }

    /// Takes the value out, and frees the entry.
    pub fn take(mut self) -> Option<T> {
        self.moved_out()
    }

    /// Takes the value out, if there is one, and keeps the entry for a pool's slot.
    pub fn keep(self) -> Option<T> {
        let mut this = ManuallyDrop::new(self);
        let value = this.moved_out();
        this.slot.word.leave(this.generation, KEPT);
        value
    }

    fn moved_out(&mut self) -> Option<T> {
        // SAFETY: as in `value`; it counts as uninitialised from here on.
        mem::take(&mut self.full).then(|| unsafe { (*self.slot.value.get()).assume_init_read() })
    }
}

impl<T> Drop for Locked<T> {
    fn drop(&mut self) {
        let state = if self.full { LIVE } else { FREE };
        self.slot.word.leave(self.generation, state);
    }
}

/// An entry that a job has. Dropping it leaves the entry to the job for ever: leak, never free,
/// what a device may own.
#[must_use]
#[derive(Debug)]
pub struct JobHold<T: 'static> {
    slot: &'static Slot<T>,
    generation: u64,
}

impl<T> JobHold<T> {
    /// Gives the entry to the job: every other call on it is refused until the job's end.
    #[inline]
    pub fn begin(&self) {
        self.slot.word.leave(self.generation, JOB);
    }

    /// The value. Its entry stays the job's.
    #[inline]
    pub fn value(&mut self) -> &mut T {
        // SAFETY: the entry is in the state `CALL` or `JOB`, from which no other code takes it, and
        // this is its only hold; `&mut self` makes the borrow exclusive. It was live before, so it
        // has a value, and no other code takes the value out.
        unsafe { (*self.slot.value.get()).assume_init_mut() }
    }

    /// Makes the entry live again, after the device is finished with it.
    #[inline]
    pub fn back(self) {
        self.slot.word.leave(self.generation, LIVE);
    }
}

/// A shared use of a value, which stays as long as this lives. It holds no reference to the value:
/// a function that takes and drops the lease would keep that reference alive for longer than the
/// value is certain to stay.
#[derive(Debug)]
pub struct Lease<T: 'static> {
    slot: &'static Slot<T>,
}

impl<T: Sync> Lease<T> {
    /// Adds another lease on the same value.
    ///
    /// # Errors
    /// [`Refusal::StillUsed`]: the value has the maximum number of leases.
    pub fn again(&self, kind: Kind) -> Result<Self, Refusal> {
        // This lease keeps the entry live and in this life.
        self.slot.lease(kind, self.slot.word.generation())
    }
}

impl<T> Deref for Lease<T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the entry is a static; the word counts this lease, so the value is there and no
        // call has it exclusively. The borrow ends before the lease does.
        unsafe { (*self.slot.value.get()).assume_init_ref() }
    }
}

impl<T> Drop for Lease<T> {
    fn drop(&mut self) {
        self.slot.word.end_lease();
    }
}

#[cfg(test)]
mod tests {
    use super::super::word::{GENERATION_MAX, USERS_MAX, bits};
    use super::*;

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
    fn job_keeps_slot_forgotten_one_for_ever() {
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
    fn each_life_has_own_generation_until_max() {
        let slot = slot();
        let first = filled(slot);
        if let Ok(locked) = slot.lock(BUF, first) {
            drop(locked.keep());
        }
        assert_eq!((slot.lock(BUF, first).err(), slot.lease(BUF, first).err()), (STALE, STALE));
        assert!(slot.claim().is_none(), "it is kept");
        // SAFETY: it is kept, and only this test uses it.
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
