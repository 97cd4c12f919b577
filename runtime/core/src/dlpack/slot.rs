//! Who has a slot of the table: one word, changed by the holder and by the deleter, which may be
//! called on any thread.
//!
//! ```text
//!   FREE ──claim──► HELD ──give_out──► OUT ──deleted──► HELD ──free──► FREE
//!                                       └──abandon──► LEFT ──deleted──► HELD ──free──► FREE
//! ```
//! A slot has [`TURNS`] tensors, and gives out one after the other. The word has the turn beside
//! the state, so a deleter that is called for an earlier tensor finds another word, and changes
//! nothing.
//!
//! It knows no memory and no tensor, so that the model checker can run every interleaving of it.

use crate::types::atomic::{AtomicUsize, Ordering};

/// Tensors of one slot: a power of two. More of them find a second call of a deleter later, and
/// cost 144 bytes each.
pub(crate) const TURNS: usize = 4;

/// It is not in use: how a slot begins.
pub(crate) const FREE: usize = 0;
/// Who lends has it, and its fields.
const HELD: usize = 1;
/// The consumer has its tensor, and who lends waits.
const OUT: usize = 2;
/// The consumer has its tensor, and the holder has gone: what it left is the deleter's.
const LEFT: usize = 3;

/// The state's bits; the turn is above them.
const STATE: usize = 3;
const STATE_BITS: u32 = 2;

const fn word(turn: usize, state: usize) -> usize {
    turn << STATE_BITS | state
}

/// What a call of a deleter was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deleted {
    /// The tensor's, and its holder has the slot again.
    Back,
    /// The tensor's, and its holder has gone. The caller has the slot, with its fields, and is to
    /// [`free`](Slot::free) it.
    Last,
    /// One too many: that tensor was not out.
    Twice,
}

#[derive(Debug)]
pub(crate) struct Slot(pub(crate) AtomicUsize);

impl Slot {
    /// Takes it, if it is free.
    pub(crate) fn claim(&self) -> bool {
        let seen = self.0.load(Ordering::Relaxed);
        // Acquire: what its last holder and the deleter did to its fields is done.
        seen & STATE == FREE
            && self
                .0
                .compare_exchange(seen, seen | HELD, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
    }

    /// Which tensor the holder gives out next, whose fields are its own until then. `None`: one is
    /// out already.
    pub(crate) fn next_turn(&self) -> Option<usize> {
        // Acquire: what the consumer of the last one did is done.
        let seen = self.0.load(Ordering::Acquire);
        (seen & STATE == HELD).then_some(((seen >> STATE_BITS) + 1) % TURNS)
    }

    /// The holder gives out the tensor of `turn`, which is the next one, and whose fields are
    /// written.
    pub(crate) fn give_out(&self, turn: usize) {
        // Release: the fields are there for the deleter, on any thread, however the pointer got
        // there. A store, because only the holder changes a word that is HELD.
        self.0.store(word(turn, OUT), Ordering::Release);
    }

    /// Is it free?
    pub(crate) fn is_free(&self) -> bool {
        self.0.load(Ordering::Relaxed) & STATE == FREE
    }

    /// Is the tensor out?
    pub(crate) fn is_out(&self) -> bool {
        // Acquire: where it is not any more, what the consumer did to the bytes is done.
        self.0.load(Ordering::Acquire) & STATE == OUT
    }

    /// The deleter of `turn`'s tensor was called.
    pub(crate) fn deleted(&self, turn: usize) -> Deleted {
        // Release: what the consumer did to the bytes is done before the holder has them again.
        // Acquire: what a holder that has gone left is there. Two tries: between them only the
        // holder can change the word, from OUT to LEFT.
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

    /// The holder, whose tensor is not out, gives the slot back; or the deleter, where it was the
    /// last.
    pub(crate) fn free(&self) {
        let seen = self.0.load(Ordering::Relaxed);
        self.0.store(seen & !STATE, Ordering::Release);
    }

    /// The holder goes while the tensor is out, and leaves the slot's fields to the deleter. False:
    /// it came back meanwhile.
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
