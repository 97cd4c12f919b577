//! The allocator's blocks that were dropped while another thread had its lock, a bit each: the next
//! one to allocate frees them. So a drop never waits.
//!
//! It knows no memory and no allocator, so that the model checker can run every interleaving of it.

use crate::{
    mem::region::bitmap::WORD_BITS,
    types::atomic::{AtomicBool, AtomicUsize, Ordering},
};

/// Sets a block's bit in `words`, and raises `any`.
#[inline]
pub(crate) fn put(words: &[AtomicUsize], any: &AtomicBool, id: u16) {
    let (index, bit) = (usize::from(id) / WORD_BITS, usize::from(id) % WORD_BITS);
    if let Some(word) = words.get(index) {
        // Release: what its owner did to the bytes is done before the next owner has them.
        word.fetch_or(1 << bit, Ordering::Release);
        // Release: who takes `any` sees the bit. A swap and no store, so that who takes what
        // another thread raised after this sees this bit too.
        any.swap(true, Ordering::Release);
    }
}

/// Takes every bit: at most as many as there are blocks. Only the lock's holder calls it.
#[inline]
pub(crate) fn take_each(words: &[AtomicUsize], any: &AtomicBool, mut free: impl FnMut(u16)) {
    // A load first: it leaves the line with every core that has it. A bit that this does not see is
    // the next one's to take.
    if !any.load(Ordering::Relaxed) {
        return;
    }
    // Before the bits are read: one that is set after that raises it again.
    any.swap(false, Ordering::Acquire);
    for (index, word) in words.iter().enumerate() {
        if word.load(Ordering::Relaxed) == 0 {
            continue;
        }
        // Acquire: as in `put`.
        let mut bits = word.swap(0, Ordering::Acquire);
        while bits != 0 {
            #[allow(
                clippy::cast_possible_truncation,
                reason = "a bit's number is its block's, which `put` had in 16 bits"
            )]
            free((index * WORD_BITS + bits.trailing_zeros() as usize) as u16);
            bits &= bits - 1;
        }
    }
}
