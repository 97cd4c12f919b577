//! Who has a slot of the table: one word, changed by the holder and by the deleter, which may be called on any thread.
//!
//! ```text
//!   FREE ──claim──► HELD ──give_out──► OUT ──deleted──► HELD ──free──► FREE
//!                                       └──abandon──► LEFT ──deleted──► FREE
//! ```
//! It knows no memory and no tensor, so that the model checker can run every interleaving of it.

use crate::atomic::{AtomicUsize, Ordering};

/// Nobody has it: how a slot begins.
pub(crate) const FREE: usize = 0;
/// Who lends has it, and its fields.
const HELD: usize = 1;
/// The consumer has its tensor, and who lends waits.
const OUT: usize = 2;
/// The consumer has its tensor, and nobody waits: its buffer is leaked.
const LEFT: usize = 3;

#[derive(Debug)]
pub(crate) struct Slot(pub(crate) AtomicUsize);

impl Slot {
    /// Takes it, if it is free.
    pub(crate) fn claim(&self) -> bool {
        // Acquire: what its last holder and the deleter did to its fields is done.
        self.0.load(Ordering::Relaxed) == FREE && self.0.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// The holder gives the tensor out, whose fields are written. False: it is out already.
    pub(crate) fn give_out(&self) -> bool {
        // Release: the fields are there for the deleter, whichever thread calls it, however the pointer got there.
        self.0.compare_exchange(HELD, OUT, Ordering::Release, Ordering::Relaxed).is_ok()
    }

    /// Does nobody have it?
    pub(crate) fn is_free(&self) -> bool {
        self.0.load(Ordering::Relaxed) == FREE
    }

    /// Is the tensor out?
    pub(crate) fn is_out(&self) -> bool {
        // Acquire: where it is not any more, what the consumer did to the bytes is done.
        self.0.load(Ordering::Acquire) == OUT
    }

    /// The deleter was called. False: nobody had the tensor, so it was called once too often.
    pub(crate) fn deleted(&self) -> bool {
        // Release: what the consumer did to the bytes is done before the holder has them again. Two tries: between them only the holder can
        // change the word, from OUT to LEFT.
        let back = |from, to| self.0.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        back(OUT, HELD) || back(LEFT, FREE)
    }

    /// The holder, whose tensor is not out, gives the slot back.
    pub(crate) fn free(&self) {
        self.0.store(FREE, Ordering::Release);
    }

    /// The holder goes while the tensor is out. False: it came back meanwhile.
    pub(crate) fn abandon(&self) -> bool {
        self.0.compare_exchange(OUT, LEFT, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}
