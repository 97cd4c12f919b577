//! Which slots of a pool are free, and which drop is the last one.
//!
//! A pool lives as long as it has a handle or a slot is out. Counting each slot would cost a take
//! and a drop one more atomic operation each. So nothing is counted while the pool has handles. The
//! drop of the last handle *closes* the pool: it marks each word of the bitmap, and learns from
//! what it finds there how many slots are out. A release finds the mark in the same operation that
//! frees its slot. Then, and only then, it counts itself out; the last one frees the pool.
//!
//! It knows no memory, so that the model checker can run every interleaving of it.

use crate::mem::region::bitmap::{self, WORD_BITS};
use crate::mem::region::parts;
use crate::types::Error;
use crate::types::atomic::{AtomicU8, AtomicUsize, Ordering};

/// The mark of a closed pool, in each word. Its bit stands for no slot.
const CLOSED: usize = 1 << WORD_SLOTS;
/// How many slots one word has.
pub(crate) const WORD_SLOTS: usize = WORD_BITS - 1;
/// What [`Slots::pending`] begins with: more than there are slots, so that releases which find the
/// mark before `close` has counted do not reach 0.
const UNCOUNTED: usize = usize::MAX / 2;

/// The state of a pool's slots, which lies in the pool's control block. A slot is known by the
/// number of its bit, its *token*.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slots<'a> {
    /// A set bit is a free slot; the top bit of each word is [`CLOSED`].
    pub(crate) words: &'a [AtomicUsize],
    /// The handles of each token beyond the first: a buffer can be split.
    pub(crate) parts: &'a [AtomicU8],
    /// The word that was last released into: where a free bit is likely. A hint.
    pub(crate) likely: &'a AtomicUsize,
    /// [`UNCOUNTED`] until the pool was closed; then, how many slots are out.
    pub(crate) pending: &'a AtomicUsize,
}

impl Slots<'_> {
    /// Frees the first `slots`. No other thread has them yet.
    pub(crate) fn open(&self, slots: usize) {
        for (index, word) in self.words.iter().enumerate() {
            word.store(valid_bits(slots, index), Ordering::Relaxed);
        }
        self.likely.store(0, Ordering::Relaxed);
        self.pending.store(UNCOUNTED, Ordering::Relaxed);
    }

    /// Takes a free slot, for a caller who has a handle of the pool: so it is not closed, and no
    /// word has the mark.
    #[inline]
    pub(crate) fn claim(&self) -> Option<usize> {
        bitmap::claim(self.words, self.likely)
    }

    /// Adds a handle of a token of which the caller has one.
    pub(crate) fn share(&self, token: usize) -> Result<(), Error> {
        parts::one_more(self.parts.get(token).ok_or(parts::REFUSAL)?)
    }

    /// Drops a handle of a token. Returns true if it was the last, and the caller must
    /// [`release`](Self::release) the slot.
    #[inline]
    pub(crate) fn last_is_gone(&self, token: usize) -> bool {
        self.parts.get(token).is_some_and(parts::last_is_gone)
    }

    /// Frees a slot, of which the caller has the last handle. Returns true if that was the last
    /// slot of a closed pool, and the caller must free the pool. Otherwise the pool may be gone
    /// when this returns.
    #[inline]
    #[must_use]
    pub(crate) fn release(&self, token: usize) -> bool {
        let index = token / WORD_BITS;
        let Some(word) = self.words.get(index) else { return false };
        if self.words.len() > 1 {
            self.likely.store(index, Ordering::Relaxed);
        }
        // The bit is 0 while the slot is out, so that adding sets it and carries nowhere. (An `or`
        // that returns the word is a loop on x86-64, twice as slow.)
        // Release: what this owner did to the bytes is done before the next owner has them.
        let before = word.fetch_add(1 << (token % WORD_BITS), Ordering::Release);
        // Without the mark, `close` has yet to read this word, and finds the slot in it: this
        // thread may touch nothing any more. With the mark, `close` relies on this thread to count.
        before & CLOSED != 0 && self.count_out(1)
    }

    /// Closes the pool of `slots`, whose last handle is gone. Returns true if no slot is out, and
    /// the caller must free the pool.
    #[must_use]
    pub(crate) fn close(&self, slots: usize) -> bool {
        let mut out = 0;
        for (index, word) in self.words.iter().enumerate() {
            // Acquire: what the slots' owners did to their bytes is done (pairs with `release`).
            let free = word.fetch_or(CLOSED, Ordering::Acquire);
            out += (valid_bits(slots, index) & !free).count_ones() as usize;
        }
        self.count_out(UNCOUNTED - out)
    }

    /// How many slots of an open pool are free. Other threads may change that at once.
    pub(crate) fn free(&self) -> usize {
        self.words
            .iter()
            .map(|word| (word.load(Ordering::Relaxed) & !CLOSED).count_ones() as usize)
            .sum()
    }

    /// Subtracts `by`; returns true if nothing is left. Each release of a closed pool subtracts 1,
    /// and `close` the rest of [`UNCOUNTED`].
    fn count_out(&self, by: usize) -> bool {
        // Release: what this thread did is done before the pool is freed. Acquire: the thread that
        // frees it sees what all did.
        self.pending.fetch_sub(by, Ordering::AcqRel) == by
    }
}

/// How many words `slots` slots need.
pub(crate) const fn words_for(slots: usize) -> usize {
    slots.div_ceil(WORD_SLOTS)
}

/// A token as the number of its slot: a word's top bit stands for none.
#[inline]
pub(crate) const fn slot_of(token: usize) -> usize {
    token - token / WORD_BITS
}

/// Which bits of word `index` stand for slots, if there are `slots`.
const fn valid_bits(slots: usize, index: usize) -> usize {
    let before = index * WORD_SLOTS;
    match slots.saturating_sub(before) {
        here if here >= WORD_SLOTS => CLOSED - 1,
        here => (1 << here) - 1,
    }
}
