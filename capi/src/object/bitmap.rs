//! Which slots of a pool are free: one bit each, claimed and released with one atomic operation.

use crate::limits;
use core::sync::atomic::{AtomicU64, Ordering};

const WORD_BITS: usize = u64::BITS as usize;

/// A set bit is a free slot.
pub(crate) struct Bitmap([AtomicU64; limits::POOL_SLOTS / WORD_BITS]);

impl Bitmap {
    /// The first `slots` are free.
    pub(crate) fn new(slots: usize) -> Self {
        Self(core::array::from_fn(|index| {
            AtomicU64::new(match slots.saturating_sub(index * WORD_BITS) {
                0 => 0,
                some @ 1..WORD_BITS => (1 << some) - 1,
                _ => u64::MAX,
            })
        }))
    }

    /// Takes a free slot. `None` when every slot was seen taken during the call. Each failed attempt is a bit that somebody else took
    /// meanwhile; one that was given back again is tried again in the next call only.
    pub(crate) fn claim(&self) -> Option<usize> {
        for (index, word) in self.0.iter().enumerate() {
            for _ in 0..WORD_BITS {
                let free = word.load(Ordering::Relaxed);
                if free == 0 {
                    break;
                }
                let bit = free & free.wrapping_neg();
                // Acquire: what the slot's last owner did is done.
                if word.fetch_and(!bit, Ordering::Acquire) & bit != 0 {
                    return Some(index * WORD_BITS + bit.trailing_zeros() as usize);
                }
            }
        }
        None
    }

    /// Gives a slot back. The caller owns it.
    pub(crate) fn release(&self, slot: usize) {
        if let Some(word) = self.0.get(slot / WORD_BITS) {
            // Release: what this owner did is done before the next owner has it.
            word.fetch_or(1 << (slot % WORD_BITS), Ordering::Release);
        }
    }

    /// How many slots are free. Other threads may change that at once.
    pub(crate) fn free(&self) -> usize {
        self.0.iter().map(|word| word.load(Ordering::Relaxed).count_ones() as usize).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_slot_is_taken_once_and_comes_back() {
        for slots in [1, 63, 64, 65, 1023, 1024] {
            let bitmap = Bitmap::new(slots);
            assert_eq!(bitmap.free(), slots);
            let mut taken: Vec<_> = std::iter::from_fn(|| bitmap.claim()).collect();
            taken.sort_unstable();
            assert_eq!(taken, (0..slots).collect::<Vec<_>>());
            bitmap.release(slots - 1);
            assert_eq!((bitmap.claim(), bitmap.claim()), (Some(slots - 1), None));
        }
    }
}
