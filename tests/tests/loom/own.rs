//! Every interleaving of a pool's slots, and of the counts that decide who frees a region and its
//! pools, by the model checker loom: takes and drops against each other, and the last drop against
//! a take, an allocation, an export, a split and other drops.
//! The runtime's own source files are built here, with loom's atomics under them.
//!
//! Freeing is modelled by `unsync_load`s of every atomic, which fail where another thread touched
//! it without having been seen, or touches it later; and by loom cells for the bytes. At the end
//! are mutants, which the same models must find.

#[path = "../../../runtime/core/src/mem/region/bitmap.rs"]
pub(crate) mod bitmap;
#[allow(dead_code, reason = "the control block's own use is not modelled")]
#[path = "../../../runtime/core/src/types/count.rs"]
mod count;
#[path = "../../../runtime/core/src/mem/region/parts.rs"]
pub(crate) mod parts;
#[path = "../../../runtime/core/src/mem/region/returned.rs"]
mod returned;
#[allow(dead_code, reason = "the control block's own use is not modelled")]
#[path = "../../../runtime/core/src/mem/region/slots.rs"]
mod slots;

use crate::types::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use crate::{check, preemptions};
use contigo_testkit::emulated;
use count::Count;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use slots::{Slots, slot_of, words_for};

/// How the model differs from the runtime.
#[derive(Clone, Copy, PartialEq)]
enum Mutant {
    None,
    /// The last drop looks at the count, and then frees.
    ChecksThenFrees,
    /// A release looks for the pool's mark after it has freed the slot, instead of in one step.
    LooksForTheMarkLater,
    /// The closing thread frees where it finds a slot out, as if releases did not.
    ForgetsWhatIsOut,
}

/// A region with one pool of `slots` slots, and its two counts.
struct Region {
    mutant: Mutant,
    count: Count,
    handles: Count,
    slots: usize,
    words: Vec<AtomicUsize>,
    parts: Vec<AtomicU8>,
    likely: AtomicUsize,
    pending: AtomicUsize,
    bytes: Vec<UnsafeCell<()>>,
    /// Not loom's: it is no part of the model.
    freed: std::sync::atomic::AtomicUsize,
    pool_freed: std::sync::atomic::AtomicUsize,
}

impl Region {
    /// One handle of the region, one of the pool.
    fn new(slots: usize, mutant: Mutant) -> Arc<Self> {
        let words = words_for(slots);
        let region = Self {
            mutant,
            count: Count::one(),
            handles: Count::one(),
            slots,
            words: (0..words).map(|_| AtomicUsize::new(0)).collect(),
            parts: (0..slots + words).map(|_| AtomicU8::new(0)).collect(),
            likely: AtomicUsize::new(0),
            pending: AtomicUsize::new(0),
            bytes: (0..slots).map(|_| UnsafeCell::new(())).collect(),
            freed: 0.into(),
            pool_freed: 0.into(),
        };
        region.state().open(slots);
        assert!(region.count.add(), "the pool's");
        Arc::new(region)
    }

    fn state(&self) -> Slots<'_> {
        Slots {
            words: &self.words,
            parts: &self.parts,
            likely: &self.likely,
            pending: &self.pending,
        }
    }

    /// As `Pool::take`.
    fn take(&self) -> Option<usize> {
        let token = self.state().claim()?;
        self.write(token);
        Some(token)
    }

    fn write(&self, token: usize) {
        self.bytes[slot_of(token)].with_mut(|_| ());
    }

    /// As a buffer's drop: `PoolState::release`.
    fn put(&self, token: usize) {
        if !self.state().last_is_gone(token) {
            return;
        }
        self.write(token);
        let gone = if self.mutant == Mutant::LooksForTheMarkLater {
            let _ = self.state().release(token);
            let closed =
                self.words.iter().all(|word| word.load(Ordering::SeqCst) >> slots::WORD_SLOTS != 0);
            closed && self.pending.fetch_sub(1, Ordering::AcqRel) == 1
        } else {
            self.state().release(token)
        };
        if gone {
            self.free_pool();
        }
    }

    /// As `PoolState::drop_handle`.
    fn drop_pool(&self) {
        if self.handles.drop_one()
            && (self.state().close(self.slots) || self.mutant == Mutant::ForgetsWhatIsOut)
        {
            self.free_pool();
        }
    }

    /// As `PoolState::free`: the memory of what is the pool's is unmapped.
    fn free_pool(&self) {
        once(&self.pool_freed);
        self.bytes.iter().for_each(|bytes| bytes.with_mut(|_| ()));
        self.words.iter().chain([&self.likely, &self.pending, &self.handles.0]).for_each(is_quiet);
        self.parts.iter().for_each(|part| _ = unsafe { part.unsync_load() });
        self.drop_one();
    }

    /// As `Control::drop_one`.
    fn drop_one(&self) {
        let last = if self.mutant == Mutant::ChecksThenFrees {
            let last = self.count.get() == 1;
            let _ = self.count.drop_one();
            last
        } else {
            self.count.drop_one()
        };
        if last {
            once(&self.freed);
            self.bytes.iter().for_each(|bytes| bytes.with_mut(|_| ()));
            is_quiet(&self.count.0);
        }
    }

    fn is_freed(&self) -> bool {
        self.freed.load(std::sync::atomic::Ordering::Relaxed) == 1
    }
}

fn once(freed: &std::sync::atomic::AtomicUsize) {
    let before = freed.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(before, 0, "freed twice");
}

/// No other thread uses it now, nor later.
fn is_quiet(atomic: &AtomicUsize) {
    let _ = unsafe { atomic.unsync_load() };
}

/// Does `act` on a thread of its own.
fn spawn<T: 'static>(
    region: &Arc<Region>,
    act: impl FnOnce(&Region) -> T + 'static,
) -> thread::JoinHandle<T> {
    let region = Arc::clone(region);
    thread::spawn(move || act(&region))
}

/// Runs each of `acts` on a thread, and `own` beside them; then everything is freed.
fn race(region: &Arc<Region>, acts: &[fn(&Region)], own: impl FnOnce(&Region)) {
    let threads: Vec<_> = acts.iter().map(|&act| spawn(region, act)).collect();
    own(region);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert!(region.is_freed(), "one of the threads was the last");
}

/// `act` on this thread, and on `others` beside it; how often each said yes.
fn beside(region: &Arc<Region>, others: usize, act: fn(&Region) -> usize) -> usize {
    let threads: Vec<_> = (0..others).map(|_| spawn(region, act)).collect();
    let own = act(region);
    own + threads.into_iter().map(|thread| thread.join().unwrap()).sum::<usize>()
}

/// Takes a slot and gives it back; whether there was one.
fn take_and_put(region: &Region) -> usize {
    usize::from(region.take().inspect(|token| region.put(*token)).is_some())
}

#[test]
fn one_slot_has_one_owner_at_a_time() {
    check(None, || {
        let region = Region::new(1, Mutant::None);
        let taken = beside(&region, 1, |region| take_and_put(region) + take_and_put(region));
        // Each thread is refused only while the other has it, so the last attempt of all succeeds.
        assert!(taken >= 2, "{taken}");
        assert_eq!(region.state().free(), 1);
    });
}

#[test]
fn two_threads_on_two_slots_are_never_refused() {
    check(Some(preemptions()), || {
        let region = Region::new(2, Mutant::None);
        let taken = beside(&region, 1, |region| take_and_put(region) + take_and_put(region));
        assert_eq!((taken, region.state().free()), (4, 2), "a slot was free during every call");
    });
}

#[test]
fn three_threads_get_two_slots_and_no_third() {
    check(Some(preemptions()), || {
        let region = Region::new(2, Mutant::None);
        // Kept, not given back: so exactly two of three get one, and the two differ, or their cell
        // would fail.
        assert_eq!(beside(&region, 2, |region| usize::from(region.take().is_some())), 2);
        assert_eq!((region.state().free(), region.state().claim()), (0, None));
    });
}

#[test]
fn slot_goes_from_hand_to_hand_among_three() {
    check(Some(preemptions()), || {
        let region = Region::new(1, Mutant::None);
        assert!(beside(&region, 2, take_and_put) >= 1, "the first one had it");
        assert_eq!(region.state().claim(), Some(0), "none is lost");
    });
}

#[test]
fn free_slots_of_two_words_are_both_found() {
    const SLOTS: usize = slots::WORD_SLOTS + 1;
    check(Some(preemptions()), || {
        let region = Region::new(SLOTS, Mutant::None);
        let tokens: Vec<_> = (0..SLOTS).map(|_| region.state().claim().unwrap()).collect();
        assert_eq!((region.state().claim(), slot_of(tokens[SLOTS - 1])), (None, SLOTS - 1));
        // One in each word: the hint may name either.
        region.put(tokens[SLOTS - 1]);
        region.put(tokens[3]);
        assert_eq!(beside(&region, 1, |region| usize::from(region.take().is_some())), 2);
        assert_eq!(region.state().free(), 0);
    });
}

#[test]
fn last_of_three_handles_sees_the_others() {
    check(Some(preemptions()), || {
        let region = Region::new(1, Mutant::None);
        let token = region.take().unwrap();
        (0..2).for_each(|_| region.state().share(token).unwrap());
        // Each handle is another third of the slot: a cell of its own, read by the thread that
        // gives the slot back.
        let thirds = Arc::new([0; 3].map(|_| UnsafeCell::new(())));
        let threads = [0, 1, 2].map(|third| {
            let thirds = Arc::clone(&thirds);
            spawn(&region, move |region| {
                thirds[third].with_mut(|_| ());
                let last = region.state().last_is_gone(token);
                if last {
                    thirds.iter().for_each(|third| third.with(|_| ()));
                    assert!(!region.state().release(token), "the pool is open");
                }
                usize::from(last)
            })
        });
        let last: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        assert_eq!((last, region.state().claim()), (1, Some(token)));
        assert!(region.state().last_is_gone(token), "the count is back at one handle");
    });
}

/// The region's last handle, the pool's, and a slot, on three threads.
fn three_go(mutant: Mutant) {
    check(Some(preemptions()), move || {
        let region = Region::new(1, mutant);
        assert_eq!(region.take(), Some(0));
        race(&region, &[|region| region.put(0), Region::drop_one], Region::drop_pool);
    });
}

/// The pool's last handle, and two slots.
fn two_slots_and_the_pool_go(mutant: Mutant) {
    check(Some(preemptions()), move || {
        let region = Region::new(2, mutant);
        assert_eq!((region.take(), region.take()), (Some(0), Some(1)));
        region.drop_one();
        race(&region, &[|region| region.put(0), |region| region.put(1)], Region::drop_pool);
    });
}

#[test]
fn the_last_of_region_pool_and_slot_frees_once() {
    three_go(Mutant::None);
}

#[test]
fn last_of_slots_and_pool_frees_once() {
    two_slots_and_the_pool_go(Mutant::None);
}

#[test]
fn slots_of_two_words_are_counted_at_the_close() {
    check(Some(2), || {
        let slots = slots::WORD_SLOTS + 1;
        let region = Region::new(slots, Mutant::None);
        let tokens: Vec<_> = (0..slots).map(|_| region.take().unwrap()).collect();
        (1..slots - 1).for_each(|index| region.put(tokens[index]));
        region.drop_one();
        let last = |region: &Region| region.put(slots::WORD_SLOTS + 1);
        race(&region, &[|region| region.put(0), last], Region::drop_pool);
    });
}

#[test]
fn take_races_with_another_handles_drop() {
    check(Some(preemptions()), || {
        let region = Region::new(1, Mutant::None);
        assert!(region.handles.add());
        let takes = |region: &Region| {
            if let Some(token) = region.take() {
                region.drop_pool();
                region.put(token);
            } else {
                region.drop_pool();
            }
        };
        race(&region, &[takes, takes], Region::drop_one);
    });
}

#[test]
fn slot_halves_drop_while_the_pool_closes() {
    check(Some(preemptions()), || {
        let region = Region::new(1, Mutant::None);
        let token = region.take().unwrap();
        region.state().share(token).unwrap();
        region.drop_one();
        race(&region, &[|region| region.put(0), |region| region.put(0)], Region::drop_pool);
    });
}

#[test]
fn allocation_and_export_race_with_the_last_drop() {
    check(Some(preemptions()), || {
        let region = Region::new(1, Mutant::None);
        region.drop_pool();
        // A clone of the handle for each thread, as a program moves them there.
        assert!(region.count.add() && region.count.add());
        let allocates = |region: &Region| {
            assert!(region.count.add(), "the buffer's");
            region.drop_one();
            region.write(0);
            region.drop_one();
        };
        // A tensor's deleter is called on a thread of the framework's.
        let exports = |region: &Region| {
            assert!(region.count.add(), "the tensor's");
            region.drop_one();
            region.drop_one();
        };
        race(&region, &[allocates, exports], Region::drop_one);
    });
}

/// Two threads drop a block each while a third has the allocator's lock, and frees what it finds.
#[test]
fn blocks_dropped_beside_lock_are_all_freed() {
    check(None, || {
        let words = Arc::new((
            AtomicUsize::new(0),
            AtomicBool::new(false),
            [UnsafeCell::new(0), UnsafeCell::new(0)],
        ));
        let threads = [0, 1].map(|id| {
            let words = words.clone();
            thread::spawn(move || {
                words.2[usize::from(id)].with_mut(|bytes| unsafe { *bytes += 1 });
                returned::put(std::slice::from_ref(&words.0), &words.1, id);
            })
        });
        let mut freed = Vec::new();
        let mut free = |id: u16| {
            words.2[usize::from(id)].with_mut(|bytes| unsafe { *bytes += 1 });
            freed.push(id);
        };
        returned::take_each(std::slice::from_ref(&words.0), &words.1, &mut free);
        for thread in threads {
            thread.join().unwrap();
        }
        returned::take_each(std::slice::from_ref(&words.0), &words.1, &mut free);
        freed.sort_unstable();
        assert_eq!(freed, [0, 1]);
    });
}

#[test]
fn a_clone_races_with_the_drop_of_another() {
    check(None, || {
        let region = Region::new(1, Mutant::None);
        region.drop_pool();
        assert!(region.count.add());
        let clones = |region: &Region| {
            assert!(region.count.add());
            region.drop_one();
            region.drop_one();
        };
        race(&region, &[clones], Region::drop_one);
    });
}

/// Where `check` tries nothing, a mutant's test panics here.
fn not_emulated() {
    assert!(!emulated::finds_no_more("a model has every processor's interleavings"));
}

#[test]
#[should_panic]
fn mutant_that_checks_then_frees_is_found() {
    not_emulated();
    three_go(Mutant::ChecksThenFrees);
}

#[test]
#[should_panic]
fn mutant_that_looks_for_the_mark_later_is_found() {
    not_emulated();
    two_slots_and_the_pool_go(Mutant::LooksForTheMarkLater);
}

#[test]
#[should_panic]
fn mutant_that_forgets_what_is_out_is_found() {
    not_emulated();
    three_go(Mutant::ForgetsWhatIsOut);
}
