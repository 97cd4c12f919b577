//! Equal slots over one carve, for one thread.

use super::{
    bitmap::{MAX_SLOTS, MAX_WORDS, WORD_BITS, valid_bits},
    check, chunk,
    parts::LocalParts,
};
use crate::{
    mem::{
        Carve, CpuBuf,
        buf::{OneThread, Owner},
        region::Block,
    },
    trace::{self, Event, Site},
    types::{Error, Refused, Result},
};
use core::{cell::Cell, fmt};

/// Equal slots, `SLOTS` of them at most, 1 to 1,024, for one thread: a claim is a bit in a plain
/// word, with no atomic operation. Its buffers stay on the thread too:
///
/// ```compile_fail,E0277
/// # use contigo::LocalPool;
/// fn elsewhere(pool: &LocalPool<'_, 2>) {
///     let buf = pool.take().unwrap();
///     std::thread::scope(|s| { s.spawn(move || drop(buf)); }); // error: cannot be sent between threads safely
/// }
/// ```
///
/// ```
/// use contigo::{Align, LocalPool, Region, sim::SimBoard};
/// let board = SimBoard::new(1);
/// let region = Region::new(board.memory(64 * 1024)?)?;
/// let frames = LocalPool::<8>::new(region.carve(8 * 4096, Align::DLPACK)?, 4096)?;
/// assert_eq!(frames.take()?.len_bytes(), 4096);
/// # Ok::<(), contigo::Error>(())
/// ```
pub struct LocalPool<'r, const SLOTS: usize> {
    carve: Carve<'r>,
    slot_bytes: usize,
    slots: usize,
    /// A set bit is a free slot: `trailing_zeros` finds it.
    free: [Cell<usize>; MAX_WORDS],
    /// The word to look at first: the last one that had a free slot.
    likely: Cell<usize>,
    parts: LocalParts<SLOTS>,
}

impl<'r, const SLOTS: usize> LocalPool<'r, SLOTS> {
    const WORDS: usize = SLOTS.div_ceil(WORD_BITS);

    /// `SLOTS` slots of `slot_bytes` each, over the beginning of `carve`.
    ///
    /// # Errors
    /// As [`Pool::new`](crate::Pool::new).
    pub fn new(carve: Carve<'r>, slot_bytes: usize) -> Result<Self, Refused<Carve<'r>>> {
        Self::with_slots(carve, slot_bytes, SLOTS)
    }

    /// As [`new`](Self::new), with `slots` slots: a figure of run time, from 1 to `SLOTS`.
    ///
    /// # Errors
    /// As [`Pool::with_slots`](crate::Pool::with_slots).
    pub fn with_slots(carve: Carve<'r>, slot_bytes: usize, slots: usize) -> Result<Self, Refused<Carve<'r>>> {
        const { assert!(1 <= SLOTS && SLOTS <= MAX_SLOTS, "a pool has 1 to 1024 slots") };
        if let Err(error) = check::<SLOTS>(&carve, slot_bytes, slots) {
            return Err(Refused::new(error, carve));
        }
        let free = core::array::from_fn(|index| Cell::new(valid_bits(slots, index)));
        Ok(Self { carve, slot_bytes, slots, free, likely: Cell::new(0), parts: LocalParts::new() })
    }

    /// A free slot. It holds whatever its last owner left.
    ///
    /// # Errors
    /// [`Error::NoSlots`] when all are taken.
    #[inline]
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn take(&self) -> Result<CpuBuf<'_, OneThread>> {
        let slot = self.claim().ok_or(Error::NoSlots { slots: self.slots })?;
        trace::happened(Event::Take { slot, len_bytes: self.slot_bytes }, Site::here());
        Ok(CpuBuf::new(chunk(self, self.carve.span(), slot, self.slot_bytes)))
    }

    /// How many bytes a slot has.
    #[must_use]
    pub const fn slot_bytes(&self) -> usize {
        self.slot_bytes
    }

    /// How many slots it has.
    #[must_use]
    pub const fn slots(&self) -> usize {
        self.slots
    }

    /// How many slots are taken now.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.slots - self.free.iter().map(|word| word.get().count_ones() as usize).sum::<usize>()
    }

    #[inline]
    fn claim(&self) -> Option<usize> {
        let likely = if Self::WORDS == 1 { 0 } else { self.likely.get() };
        for step in 0..Self::WORDS {
            let index = if likely + step < Self::WORDS { likely + step } else { likely + step - Self::WORDS };
            let word = self.free.get(index)?;
            let free = word.get();
            if free != 0 {
                word.set(free & (free - 1));
                if Self::WORDS > 1 {
                    self.likely.set(index);
                }
                return Some(index * WORD_BITS + free.trailing_zeros() as usize);
            }
        }
        None
    }
}

impl<const SLOTS: usize> Owner for LocalPool<'_, SLOTS> {
    fn block(&self) -> &dyn Block {
        self.carve.block()
    }
    #[inline]
    fn release(&self, token: u32) {
        if self.parts.last_is_gone(token) {
            trace::happened(Event::Release { slot: token as usize }, Site::NONE);
            let slot = token as usize;
            if let Some(word) = self.free.get(slot / WORD_BITS) {
                word.set(word.get() | 1 << (slot % WORD_BITS));
                if Self::WORDS > 1 {
                    self.likely.set(slot / WORD_BITS);
                }
            }
        }
    }
    fn share(&self, token: u32) -> Result<()> {
        self.parts.one_more(token)
    }
}

impl<const SLOTS: usize> Drop for LocalPool<'_, SLOTS> {
    fn drop(&mut self) {
        if self.taken() != 0 {
            // As in `Pool`: a forgotten slot keeps the region's memory.
            self.carve.block().state().share();
        }
    }
}

impl<const SLOTS: usize> fmt::Debug for LocalPool<'_, SLOTS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalPool").field("slots", &self.slots).field("slot_bytes", &self.slot_bytes).field("taken", &self.taken()).finish()
    }
}
