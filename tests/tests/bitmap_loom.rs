//! Every interleaving of the lock-free parts of every pool, by the model checker loom: the bitmap,
//! and the count of a slot's handles. The runtime's own source files are built here, with loom's
//! atomics under them.
//!
//! A loom cell stands for a slot's bytes. It fails when two threads are in it at once. It also
//! fails when one enters without having seen the other's writes, as with a weakened `Acquire` or
//! `Release`.
#![cfg(target_pointer_width = "64")] // loom itself builds nowhere else
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that panics has failed, which is its purpose")]
#![allow(unsafe_code, clippy::undocumented_unsafe_blocks, reason = "the model checker says whether a cell's pointer may be used")]

#[allow(dead_code, reason = "the parts that one thread alone uses are not modelled")]
#[path = "../../runtime/src/mem/pool/bitmap.rs"]
mod bitmap;
#[allow(dead_code, reason = "the parts that one thread alone uses are not modelled")]
#[path = "../../runtime/src/mem/pool/parts.rs"]
mod parts;
#[path = "../../runtime/src/mem/pool/slots.rs"]
mod state;

/// In the place of the runtime's `types/atomic.rs`.
mod types {
    pub(crate) use contigo::Error;
    pub(crate) mod atomic {
        pub(crate) use loom::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
    }
}

use bitmap::WORD_BITS;
use contigo_testkit::emulated;
use loom::{
    cell::UnsafeCell,
    model::Builder,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

/// Three threads with no bound on preemptions take minutes; almost every known race needs two
/// (Musuvathi and Qadeer, PLDI 2007), and this is one more.
const PREEMPTIONS: usize = 3;

struct Slots<const SLOTS: usize> {
    state: state::Slots<SLOTS>,
    bytes: [UnsafeCell<()>; SLOTS],
}

impl<const SLOTS: usize> Slots<SLOTS> {
    fn new() -> Arc<Self> {
        let bytes = std::array::from_fn(|_| UnsafeCell::new(()));
        Arc::new(Self { state: state::Slots::new(SLOTS), bytes })
    }

    fn taken(&self) -> usize {
        SLOTS - self.state.free()
    }

    /// As the pool's `take`: with a slot, its bytes belong to this thread.
    fn take(&self) -> Option<usize> {
        let slot = self.state.claim()?;
        assert!(slot < SLOTS);
        self.write(slot);
        Some(slot)
    }

    /// As a view that writes.
    fn write(&self, slot: usize) {
        self.bytes[slot].with_mut(|_| ());
    }

    /// As a buffer's drop: was it the slot's last handle?
    fn put(&self, slot: usize) -> bool {
        let slot_number = u32::try_from(slot).unwrap();
        let last = self.state.last_is_gone(slot_number);
        if last {
            self.write(slot);
            self.state.release(slot_number);
        }
        last
    }

    /// Takes one and gives it back; whether there was one.
    fn take_and_put(&self) -> bool {
        let slot = self.take();
        if let Some(slot) = slot {
            assert!(self.put(slot), "a slot that was never split has one handle");
        }
        slot.is_some()
    }
}

fn check(preemptions: Option<usize>, model: impl Fn() + Sync + Send + 'static) {
    if emulated::finds_no_more("a model has every processor's interleavings") {
        return;
    }
    let mut builder = Builder::new();
    builder.preemption_bound = preemptions;
    builder.check(model);
}

/// `first` on this thread and `others` beside it; how often each said yes.
fn beside<const SLOTS: usize>(slots: &Arc<Slots<SLOTS>>, others: usize, act: fn(&Slots<SLOTS>) -> usize) -> usize {
    let threads: Vec<_> = (0..others)
        .map(|_| {
            let slots = Arc::clone(slots);
            thread::spawn(move || act(&slots))
        })
        .collect();
    let own = act(slots);
    own + threads.into_iter().map(|thread| thread.join().unwrap()).sum::<usize>()
}

#[test]
fn one_slot_has_one_owner_at_a_time() {
    check(None, || {
        let slots = Slots::<1>::new();
        let taken = beside(&slots, 1, |slots| usize::from(slots.take_and_put()) + usize::from(slots.take_and_put()));
        // Each thread is refused only while the other has it, so the last attempt of all succeeds.
        assert!(taken >= 2, "{taken}");
        assert_eq!(slots.taken(), 0);
    });
}

#[test]
fn two_threads_on_two_slots_are_never_refused() {
    check(Some(PREEMPTIONS), || {
        let slots = Slots::<2>::new();
        let taken = beside(&slots, 1, |slots| usize::from(slots.take_and_put()) + usize::from(slots.take_and_put()));
        assert_eq!(taken, 4, "a slot was free during every call");
        assert_eq!(slots.taken(), 0);
    });
}

#[test]
fn three_threads_get_two_slots_and_no_third() {
    check(Some(PREEMPTIONS), || {
        let slots = Slots::<2>::new();
        // Kept, not given back: so exactly two of three get one, and the two differ, or their cell
        // would fail.
        let taken = beside(&slots, 2, |slots| usize::from(slots.take().is_some()));
        assert_eq!(taken, 2);
        assert_eq!(slots.taken(), 2);
        assert_eq!(slots.state.claim(), None);
    });
}

#[test]
fn a_slot_goes_from_hand_to_hand_among_three() {
    check(Some(PREEMPTIONS), || {
        let slots = Slots::<1>::new();
        let taken = beside(&slots, 2, |slots| usize::from(slots.take_and_put()));
        assert!(taken >= 1, "the first one had it");
        assert_eq!(slots.taken(), 0, "none is lost");
        assert_eq!(slots.state.claim(), Some(0));
    });
}

#[test]
fn the_free_slots_of_two_words_are_both_found() {
    const SLOTS: usize = WORD_BITS + 1;
    check(Some(PREEMPTIONS), || {
        let slots = Slots::<SLOTS>::new();
        for expected in 0..SLOTS {
            assert_eq!(slots.state.claim(), Some(expected));
        }
        assert_eq!(slots.state.claim(), None);
        // One in each word, whichever the hint names.
        slots.put(WORD_BITS);
        slots.put(3);
        let taken = beside(&slots, 1, |slots| usize::from(slots.take().is_some()));
        assert_eq!(taken, 2);
        assert_eq!(slots.taken(), SLOTS);
    });
}

#[test]
fn of_three_handles_one_is_the_last_and_sees_what_the_others_did() {
    check(Some(PREEMPTIONS), || {
        let slots = Slots::<1>::new();
        assert_eq!(slots.take(), Some(0));
        slots.state.one_more(0).unwrap();
        slots.state.one_more(0).unwrap();
        // Each handle is another third of the slot: a cell of its own, read by whoever gives the
        // slot back.
        let thirds = Arc::new([0; 3].map(|_| UnsafeCell::new(())));
        let threads: Vec<_> = (0..3)
            .map(|third| {
                let (slots, thirds) = (Arc::clone(&slots), Arc::clone(&thirds));
                thread::spawn(move || {
                    thirds[third].with_mut(|_| ());
                    let last = slots.state.last_is_gone(0);
                    if last {
                        thirds.iter().for_each(|third| third.with(|_| ()));
                        slots.state.release(0);
                    }
                    usize::from(last)
                })
            })
            .collect();
        let last: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        assert_eq!(last, 1);
        assert_eq!(slots.state.claim(), Some(0));
        assert!(slots.state.last_is_gone(0), "the count is back at one handle");
    });
}

#[test]
fn one_half_is_split_again_while_the_other_is_dropped() {
    check(None, || {
        let slots = Slots::<1>::new();
        assert_eq!(slots.take(), Some(0));
        slots.state.one_more(0).unwrap();
        let other = {
            let slots = Arc::clone(&slots);
            thread::spawn(move || usize::from(slots.put(0)))
        };
        slots.state.one_more(0).unwrap();
        let own = usize::from(slots.put(0)) + usize::from(slots.put(0));
        assert_eq!(own + other.join().unwrap(), 1);
        assert_eq!(slots.taken(), 0);
    });
}

#[test]
fn a_close_takes_every_slot_or_none() {
    // As the C library's: who has closed a pool may free its memory, and who has a slot may use it.
    check(Some(PREEMPTIONS), || {
        let slots = Slots::<2>::new();
        let other = {
            let slots = Arc::clone(&slots);
            thread::spawn(move || slots.take_and_put() && slots.take().is_some())
        };
        let closed = slots.state.bits.close(2);
        if closed {
            (0..2).for_each(|slot| slots.write(slot));
        }
        // The second slot is kept: whoever has it keeps the pool from being closed.
        assert_ne!(other.join().unwrap(), closed);
        assert_eq!(slots.taken(), if closed { 2 } else { 1 });
    });
}

#[test]
fn a_close_that_is_refused_gives_the_slots_of_every_word_back() {
    const SLOTS: usize = WORD_BITS + 2;
    check(Some(PREEMPTIONS), || {
        let slots = Slots::<SLOTS>::new();
        for expected in 0..SLOTS {
            assert_eq!(slots.state.claim(), Some(expected));
        }
        (0..=WORD_BITS).for_each(|slot| slots.state.release(u32::try_from(slot).unwrap()));
        let taken = beside(&slots, 1, |slots| {
            assert!(!slots.state.bits.close(SLOTS), "one is taken all the time");
            0
        });
        assert_eq!((taken, slots.taken()), (0, 1));
    });
}

#[test]
fn a_late_take_touches_no_pool_that_is_gone() {
    // As the C library's: two pools, one after the other in one place. The number of the pool is
    // its handle's generation.
    check(Some(PREEMPTIONS), || {
        let slots = Slots::<1>::new();
        let pool = Arc::new((AtomicUsize::new(1), UnsafeCell::new(1)));
        let late = {
            let (slots, pool) = (Arc::clone(&slots), Arc::clone(&pool));
            thread::spawn(move || {
                let Some(slot) = slots.take() else { return };
                if pool.0.load(Ordering::Acquire) == 1 {
                    pool.1.with(|pool| assert_eq!(unsafe { *pool }, 1, "another pool"));
                }
                slots.put(slot);
            })
        };
        if slots.state.bits.close(1) {
            pool.1.with_mut(|pool| unsafe { *pool = 2 });
            pool.0.store(2, Ordering::Release);
            slots.state.bits.open(1);
        }
        late.join().unwrap();
        assert_eq!(slots.taken(), 0);
    });
}

#[test]
fn what_the_last_owner_did_is_done_once_no_slot_is_taken() {
    // The pool's drop asks `taken`, and lets the region free the memory when it is 0.
    check(None, || {
        let slots = Slots::<1>::new();
        assert_eq!(slots.take(), Some(0));
        let other = {
            let slots = Arc::clone(&slots);
            thread::spawn(move || {
                slots.write(0);
                slots.put(0)
            })
        };
        if slots.taken() == 0 {
            slots.write(0); // as unmapping it
        }
        assert!(other.join().unwrap());
    });
}
