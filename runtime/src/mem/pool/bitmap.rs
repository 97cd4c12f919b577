//! Which slots are free: one bit each, claimed and released with one atomic operation.
//!
//! It knows no memory and no pool, so that the model checker can run every interleaving of it.

use crate::types::atomic::{AtomicUsize, Ordering};

/// The most slots a pool can have: 1,024 bits are two cache lines, and scanning them all costs less
/// than one system call.
pub(crate) const MAX_SLOTS: usize = 1024;
pub(crate) const WORD_BITS: usize = usize::BITS as usize;
pub(crate) const MAX_WORDS: usize = MAX_SLOTS / WORD_BITS;

/// Room for `SLOTS` slots. How many there are is the caller's figure, and costs a claim nothing:
/// the others are never free.
#[derive(Debug)]
pub(crate) struct Bitmap<const SLOTS: usize> {
    /// A set bit is a free slot. Bits past the number of slots are never set, and none is set while
    /// it is closed.
    pub(super) words: [AtomicUsize; MAX_WORDS],
    /// The word that was last released into: where a free bit is likely. Only a hint, so `Relaxed`.
    pub(super) likely: AtomicUsize,
}

impl<const SLOTS: usize> Bitmap<SLOTS> {
    const WORDS: usize = SLOTS.div_ceil(WORD_BITS);

    /// The first `slots` are free.
    pub(crate) fn new(slots: usize) -> Self {
        const { assert!(1 <= SLOTS && SLOTS <= MAX_SLOTS, "a pool has 1 to 1024 slots") };
        Self { words: core::array::from_fn(|index| AtomicUsize::new(valid_bits(slots, index))), likely: AtomicUsize::new(0) }
    }

    /// Takes a free slot. `None` when every slot was seen taken during the call.
    pub(crate) fn claim(&self) -> Option<usize> {
        claim(self.words.get(..Self::WORDS)?, &self.likely)
    }

    /// Gives a slot back. The caller owns it.
    pub(crate) fn release(&self, slot: usize) {
        let (index, mask) = (slot / WORD_BITS, 1 << (slot % WORD_BITS));
        if let Some(word) = self.words.get(index) {
            // Release: what this owner did to the slot's bytes is done before the next owner has
            // them.
            word.fetch_or(mask, Ordering::Release);
            if Self::WORDS > 1 {
                self.likely.store(index, Ordering::Relaxed);
            }
        }
    }

    /// How many slots are free. Other threads may change that at once.
    pub(crate) fn free(&self) -> usize {
        // Acquire: with all slots free, everything that was done to them is done.
        self.words.iter().map(|word| word.load(Ordering::Acquire).count_ones() as usize).sum()
    }

    /// Frees the first `slots` of one that is closed.
    pub(crate) fn open(&self, slots: usize) {
        self.open_words(slots, MAX_WORDS);
    }

    /// Claims all `slots` of them, for ever: or none, where one is taken.
    pub(crate) fn close(&self, slots: usize) -> bool {
        for (index, word) in self.words.iter().enumerate() {
            // Acquire: as in `claim`.
            if word.compare_exchange(valid_bits(slots, index), 0, Ordering::Acquire, Ordering::Relaxed).is_err() {
                self.open_words(slots, index);
                return false;
            }
        }
        true
    }

    /// Frees the slots of the first `words` words, all of which the caller has.
    fn open_words(&self, slots: usize, words: usize) {
        for (index, word) in self.words.iter().enumerate().take(words) {
            // Release: as in `release`.
            word.fetch_or(valid_bits(slots, index), Ordering::Release);
        }
    }
}

/// Takes a free slot of `words`. `None` when every slot was seen taken during the call.
///
/// Bounded: each failed attempt at a word is a bit that somebody else took meanwhile, and is not
/// tried again; so at most as many attempts as there are bits.
#[inline]
pub(crate) fn claim(words: &[AtomicUsize], likely: &AtomicUsize) -> Option<usize> {
    let count = words.len();
    let likely = if count == 1 { 0 } else { likely.load(Ordering::Relaxed) };
    for step in 0..count {
        let index = if likely + step < count { likely + step } else { likely + step - count };
        let Some(word) = words.get(index) else { continue };
        let mut tried = 0;
        for _ in 0..WORD_BITS {
            let free = word.load(Ordering::Relaxed) & !tried;
            if free == 0 {
                break;
            }
            let bit = free.trailing_zeros() as usize;
            let mask = 1 << bit;
            // Acquire: what the slot's last owner did to its bytes is done (pairs with the
            // release).
            if word.fetch_and(!mask, Ordering::Acquire) & mask != 0 {
                return Some(index * WORD_BITS + bit);
            }
            tried |= mask;
        }
    }
    None
}

/// Which bits of word `index` stand for slots.
pub(crate) const fn valid_bits(slots: usize, index: usize) -> usize {
    let before = index * WORD_BITS;
    if before + WORD_BITS <= slots {
        usize::MAX
    } else if before >= slots {
        0
    } else {
        (1 << (slots - before)) - 1
    }
}
