//! Every interleaving of what threads race on in the bindings, by the model checker loom: the word
//! of a handle's entry, and the word of a buffer's views. The source files of
//! `bindings/objects` are built here, with loom's atomics under them.
//!
//! Loom cells stand for an entry's value and for a buffer's bytes. They fail when two threads are
//! in them at once, and when one enters without having seen the other's writes.

#[allow(unreachable_pub, reason = "public there")]
#[path = "../../../bindings/objects/src/views.rs"]
mod views;
#[allow(unreachable_pub, reason = "public there")]
#[path = "../../../bindings/objects/src/table/word.rs"]
mod word;

use crate::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::check;
use contigo_objects::{Kind, Refusal};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicUsize};
use loom::thread;
use views::{Access, Views};
use word::{FREE, GENERATION_MAX, JOB, KEPT, LIVE, USERS_MAX, Word, bits};

const BUF: Kind = Kind::Buf;

/// Starts each on a thread of its own, and waits for them. None runs here: loom tries few orders of
/// the thread that starts the others.
fn race<T: 'static>(of: &Arc<T>, threads: &[fn(&T)]) {
    let threads = threads.iter().map(|act| {
        let (of, act) = (Arc::clone(of), *act);
        thread::spawn(move || act(&of))
    });
    threads.collect::<Vec<_>>().into_iter().for_each(|thread| thread.join().unwrap());
}

/// An entry: its word, and its value.
struct Entry {
    word: Word,
    value: UnsafeCell<u32>,
    /// The pool's slot is free.
    is_free: AtomicBool,
    /// How many calls did what they are for.
    done: AtomicUsize,
}

impl Entry {
    /// In its first life, with a value.
    fn live() -> Arc<Self> {
        Self::with(bits(1, LIVE))
    }

    fn with(bits: u64) -> Arc<Self> {
        let (word, value) = (Word(AtomicU64::new(bits)), UnsafeCell::new(0));
        Arc::new(Self { word, value, is_free: AtomicBool::new(false), done: AtomicUsize::new(0) })
    }

    fn write(&self) {
        self.value.with_mut(|_| ());
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    /// A call that has it alone, as `Table::lock`, and leaves it in `state`.
    fn call(&self, state: u64) {
        if self.word.alone(BUF, 1).is_ok() {
            self.write();
            self.word.leave(1, state);
        }
    }

    /// As `Table::lease`.
    fn lease(&self) {
        if self.word.lease(BUF, 1).is_ok() {
            self.value.with(|_| ());
            self.done.fetch_add(1, Ordering::Relaxed);
            self.word.end_lease();
        }
    }

    fn done(&self) -> usize {
        self.done.load(Ordering::Relaxed)
    }
}

#[test]
fn a_call_has_an_entry_alone() {
    for other in [|entry: &Entry| entry.call(LIVE), Entry::lease] {
        check(None, move || {
            let entry = Entry::live();
            race(&entry, &[|entry| entry.call(LIVE), other]);
            assert!(entry.done() > 0, "one of them was not refused");
            assert_eq!(entry.word.alone(BUF, 1), Ok(()), "it is live, with no users");
            entry.write();
        });
    }
}

#[test]
fn the_last_user_ends_before_a_call() {
    // One user is here from the beginning, or comes.
    let used = |entry: &Entry| {
        entry.value.with(|_| ());
        entry.word.end_lease();
    };
    for (users, other) in [(1, used as fn(&Entry)), (0, Entry::lease)] {
        check(None, move || {
            let entry = Entry::with(bits(1, LIVE + users));
            race(&entry, &[other, |entry| entry.call(FREE)]);
            // It is gone, or the call was refused because of a user.
            assert!(matches!(entry.word.alone(BUF, 1), Ok(()) | Err(Refusal::Stale { kind: BUF })));
        });
    }
}

/// As `Table::claim`.
fn claim(entry: &Entry) {
    if let Some(generation) = entry.word.claim() {
        assert_eq!(generation, 2);
        entry.write();
        entry.word.leave(generation, LIVE);
    }
}

#[test]
fn free_entry_is_claimed_once() {
    let stale =
        |entry: &Entry| assert_eq!(entry.word.lease(BUF, 1), Err(Refusal::Stale { kind: BUF }));
    for other in [claim, stale] {
        check(None, move || {
            let entry = Entry::with(bits(1, FREE));
            race(&entry, &[claim, other]);
            assert_eq!((entry.done(), entry.word.alone(BUF, 2)), (1, Ok(())));
            entry.write();
        });
    }
}

#[test]
fn an_entry_is_claimed_behind_its_last_user() {
    check(None, || {
        let entry = Entry::live();
        race(&entry, &[|entry| entry.call(FREE), claim]);
    });
}

#[test]
fn a_job_keeps_an_entry_until_its_end() {
    let job = |entry: &Entry| {
        if entry.word.alone(BUF, 1).is_ok() {
            entry.write();
            entry.word.leave(1, JOB);
            // Its end, which another call of the same thread takes.
            entry.write();
            entry.word.leave(1, LIVE);
        }
    };
    for other in [|entry: &Entry| entry.call(LIVE), Entry::lease] {
        check(None, move || {
            let entry = Entry::live();
            race(&entry, &[job, other]);
            assert_eq!(entry.word.alone(BUF, 1), Ok(()));
            entry.write();
        });
    }
}

/// `Buf::release` keeps the entry before it gives the slot back, and `Pool::take` fills it.
#[test]
fn a_pools_entry_is_kept_when_its_slot_is_free() {
    check(None, || {
        let entry = Entry::live();
        let release = |entry: &Entry| {
            entry.call(KEPT);
            entry.is_free.store(true, Ordering::Release);
        };
        let take = |entry: &Entry| {
            if entry.is_free.load(Ordering::Acquire) {
                let generation = entry.word.next_generation().unwrap();
                entry.write();
                entry.word.leave(generation, LIVE);
            }
        };
        race(&entry, &[release, take]);
    });
}

#[test]
fn the_counts_have_their_limits() {
    check(None, || {
        let word = Word(AtomicU64::new(bits(GENERATION_MAX, LIVE + USERS_MAX)));
        assert_eq!(
            word.lease(BUF, GENERATION_MAX),
            Err(Refusal::StillUsed { kind: BUF, users: USERS_MAX })
        );
        assert_eq!((word.next_generation(), word.generation()), (None, GENERATION_MAX));
        assert_eq!(Word(AtomicU64::new(bits(GENERATION_MAX, FREE))).claim(), None);
    });
}

/// A buffer: its views, the lock of its state, and its bytes.
struct Buffer {
    views: Views,
    /// The owner of the state: is it there?
    state: loom::sync::Mutex<bool>,
    bytes: UnsafeCell<u32>,
    freed: AtomicUsize,
}

impl Buffer {
    /// With so many views that read.
    fn new(views: u32) -> Arc<Self> {
        let buffer = Self {
            views: Views(AtomicU32::new(0)),
            state: loom::sync::Mutex::new(true),
            bytes: UnsafeCell::new(0),
            freed: AtomicUsize::new(0),
        };
        (0..views).for_each(|_| assert_eq!(buffer.views.open(Access::Read), Ok(())));
        Arc::new(buffer)
    }

    /// As `Buffer::free`: the bytes are another's from here on.
    fn free(&self) {
        let mut is_there = self.state.lock().unwrap();
        if *is_there && self.views.none().is_ok() {
            *is_there = false;
            self.bytes.with_mut(|_| ());
            self.freed.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A view's user, and its end in a destructor.
    fn look_and_close(&self) {
        self.bytes.with(|_| ());
        if self.views.close().unwrap() {
            self.free();
        }
    }

    fn drop_it(&self) {
        if self.views.drop_buffer() {
            self.free();
        }
    }
}

#[test]
fn dropped_buffer_is_freed_once_after_views() {
    check(None, || {
        let buffer = Buffer::new(1);
        race(&buffer, &[Buffer::look_and_close, Buffer::drop_it]);
        assert_eq!((buffer.freed.load(Ordering::Relaxed), buffer.views.count()), (1, 0));
    });
    check(None, || {
        let buffer = Buffer::new(2);
        buffer.drop_it();
        race(&buffer, &[Buffer::look_and_close, Buffer::look_and_close]);
        assert_eq!((buffer.freed.load(Ordering::Relaxed), buffer.views.count()), (1, 0));
    });
}

#[test]
fn a_device_gets_a_buffer_behind_its_last_view() {
    let device = |buffer: &Buffer| {
        let _state = buffer.state.lock().unwrap();
        if buffer.views.none().is_ok() {
            buffer.bytes.with_mut(|_| ());
        }
    };
    let new_view = |buffer: &Buffer| {
        let state = buffer.state.lock().unwrap();
        let is_open = buffer.views.open(Access::Read).is_ok();
        drop(state);
        assert!(is_open);
        buffer.look_and_close();
    };
    for (views, view) in [(1, Buffer::look_and_close as fn(&Buffer)), (0, new_view)] {
        check(None, move || {
            let buffer = Buffer::new(views);
            race(&buffer, &[view, device]);
            // The last of them is gone, and a writer is alone.
            assert_eq!(
                (buffer.views.open(Access::Write), buffer.views.open(Access::Read)),
                (Ok(()), Err(Refusal::Viewed { views: 1 }))
            );
        });
    }
}
