//! The owner of a slot of the table: one word, changed by the holder and by the deleter, which may
//! be called on any thread.
//!
//! ```text
//!   FREE ──claim──► HELD ──give_out──► OUT ──deleted──► HELD ──free──► FREE
//!                                       └──abandon──► LEFT ──deleted──► HELD ──free──► FREE
//! ```
//! A slot has [`TURNS`] tensors, and gives out one after the other. The word holds the turn and the
//! state, so a deleter that is called for an earlier tensor finds another word, and changes
//! nothing.
//!
//! It knows no memory and no tensor, so that the model checker can run every interleaving of it.

use crate::types::atomic::{AtomicUsize, Ordering};

/// Tensors of one slot: a power of two. With more of them, a later second call of a deleter is
/// still found; each costs 144 bytes.
pub(crate) const TURNS: usize = 4;

/// It is not in use: how a slot begins.
pub(crate) const FREE: usize = 0;
/// The lender has the slot, and its fields.
const HELD: usize = 1;
/// The consumer has its tensor, and the lender waits.
const OUT: usize = 2;
/// The consumer has its tensor, and the holder was dropped: the deleter owns what it left.
const LEFT: usize = 3;

/// The state's bits; the turn is above them.
const STATE: usize = 3;
const STATE_BITS: u32 = 2;

const fn word(turn: usize, state: usize) -> usize {
    turn << STATE_BITS | state
}

/// The outcome of a deleter call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deleted {
    /// It was for the tensor, and the holder has the slot again.
    Back,
    /// It was for the tensor, and the holder was dropped. The caller has the slot with its fields,
    /// and must [`free`](Slot::free) it.
    Last,
    /// It was one call too many: that tensor was not out.
    Twice,
}

#[derive(Debug)]
pub(crate) struct Slot(pub(crate) AtomicUsize);

impl Slot {
    /// Claims the slot, if it is free.
    pub(crate) fn claim(&self) -> bool {
        let seen = self.0.load(Ordering::Relaxed);
        // Acquire: what its last holder and the deleter did to its fields is done.
        seen & STATE == FREE
            && self
                .0
                .compare_exchange(seen, seen | HELD, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
    }

    /// The turn of the tensor that the holder gives out next; the holder owns its fields until
    /// then. `None`: one is out already.
    pub(crate) fn next_turn(&self) -> Option<usize> {
        // Acquire: what the last tensor's consumer did is done.
        let seen = self.0.load(Ordering::Acquire);
        (seen & STATE == HELD).then_some(((seen >> STATE_BITS) + 1) % TURNS)
    }

    /// Gives out the tensor of `turn`, which is the next one, and whose fields are written.
    pub(crate) fn give_out(&self, turn: usize) {
        // Release: the fields are there for the deleter, on any thread, however the pointer got
        // there. A store, because only the holder changes a word that is HELD.
        self.0.store(word(turn, OUT), Ordering::Release);
    }

    /// Returns whether it is free.
    pub(crate) fn is_free(&self) -> bool {
        self.0.load(Ordering::Relaxed) & STATE == FREE
    }

    /// Returns whether the tensor is out.
    pub(crate) fn is_out(&self) -> bool {
        // Acquire: if it is not out any more, what the consumer did to the bytes is done.
        self.0.load(Ordering::Acquire) & STATE == OUT
    }

    /// The deleter of `turn`'s tensor was called.
    pub(crate) fn deleted(&self, turn: usize) -> Deleted {
        // Release: what the consumer did to the bytes is done before the holder has them again.
        // Acquire: what a dropped holder left is there. Two tries: between them only the holder can
        // change the word, from OUT to LEFT.
        let back = |from| {
            self.0
                .compare_exchange(
                    word(turn, from),
                    word(turn, HELD),
                    Ordering::AcqRel,
                    Ordering::Relaxed,
                )
                .is_ok()
        };
        if back(OUT) {
            Deleted::Back
        } else if back(LEFT) {
            Deleted::Last
        } else {
            Deleted::Twice
        }
    }

    /// Frees the slot: called by the holder, whose tensor is not out, or by the deleter, if it was
    /// the last.
    pub(crate) fn free(&self) {
        let seen = self.0.load(Ordering::Relaxed);
        self.0.store(seen & !STATE, Ordering::Release);
    }

    /// Drops the holder while the tensor is out, and leaves the slot's fields to the deleter.
    /// False: the tensor came back meanwhile.
    pub(crate) fn abandon(&self) -> bool {
        // Release: what it leaves is there for the deleter.
        // Acquire, here and where it fails: where the tensor came back, what the consumer did to
        // the bytes is done.
        let seen = self.0.load(Ordering::Acquire);
        seen & STATE == OUT
            && self
                .0
                .compare_exchange(seen, seen | LEFT, Ordering::AcqRel, Ordering::Acquire)
                .is_ok()
    }
}
