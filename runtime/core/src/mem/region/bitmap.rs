//! Which slots are free: one bit each, claimed and released with one atomic operation.
//!
//! It knows no memory and no pool, so that the model checker can run every interleaving of it.

use crate::types::atomic::{AtomicUsize, Ordering};

pub(crate) const WORD_BITS: usize = usize::BITS as usize;

/// Takes a free slot of `words`. `None` when every slot was seen taken during the call.
///
/// Bounded: an attempt at a bit fails only if another thread took it meanwhile, and it is not tried
/// again; so there are at most as many attempts as bits.
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
