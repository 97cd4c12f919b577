//! A bit for each of the allocator's blocks that was dropped while another thread had its lock: the
//! next allocation frees them. So a drop never waits.
//!
//! It knows no memory and no allocator, so that the model checker can run every interleaving of it.

use crate::mem::region::bitmap::WORD_BITS;
use crate::types::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Sets a block's bit in `words`, and raises `any`.
#[inline]
pub(crate) fn put(words: &[AtomicUsize], any: &AtomicBool, id: u16) {
    let (index, bit) = (usize::from(id) / WORD_BITS, usize::from(id) % WORD_BITS);
    if let Some(word) = words.get(index) {
        // Release: what its owner did to the bytes is done before the next owner has them.
        word.fetch_or(1 << bit, Ordering::Release);
        // Release: the thread that takes `any` sees the bit. A swap instead of a store, so that a
        // thread that takes another thread's later raise sees this bit too.
        any.swap(true, Ordering::Release);
    }
}

/// Takes every bit: at most as many as there are blocks. Only the lock's holder calls it.
#[inline]
pub(crate) fn take_each(words: &[AtomicUsize], any: &AtomicBool, mut free: impl FnMut(u16)) {
    // A load first: it leaves the line with every core that has it. The next call takes a bit that
    // this one does not see.
    if !any.load(Ordering::Relaxed) {
        return;
    }
    // Before the bits are read: a bit that is set after that raises `any` again.
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
