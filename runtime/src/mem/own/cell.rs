#![allow(unsafe_code, reason = "a pool's cell lies in the control block, and is freed by the pool's last handle or slot")]
//! A pool's place in the control block: its figures, and where its slots' state lies.

use super::{
    control::Control,
    count::Count,
    slots::{Slots, slot_of, words_for},
};
use crate::{
    mem::{
        buf::{Chunk, OwnerTable},
        region::Block,
        span::Span,
    },
    trace::{self, Event, Site},
    types::{
        Error, Result,
        atomic::{AtomicU8, AtomicUsize},
    },
};
use core::{ptr::NonNull, slice};

const BITS: usize = usize::BITS as usize;

/// What the handles and the buffers of one pool share. It is valid while the pool has a handle or a
/// slot is out, and for so long the pool has one unit of the region's count.
#[repr(C, align(64))]
pub(super) struct Cell {
    control: NonNull<Control>,
    /// The pool's own words, and `BITS` parts for each.
    words: NonNull<AtomicUsize>,
    word_count: usize,
    parts: NonNull<AtomicU8>,
    pub(super) slots: usize,
    pub(super) slot_bytes: usize,
    start: usize,
    /// The allocator's block that the slots lie in.
    pub(super) block: u16,
    /// The pool's number in its region.
    number: u16,
    /// The pool's handles.
    pub(super) handles: Count,
    likely: AtomicUsize,
    pending: AtomicUsize,
}

/// A slot as its chunk sees its owner: the cell. A constant, so that a drop which the compiler sees
/// beside its take is no indirect call.
const SLOTS: &OwnerTable<'static> = &OwnerTable {
    // SAFETY: `Cell::take` made the pointer; a slot that is out keeps the cell, and the pool's unit
    // the control block.
    block: |owner| unsafe { owner.cast::<Cell>().as_ref().control.as_ref() as &dyn Block },
    // SAFETY: as above; the handle is gone.
    release: |owner, token| unsafe { Cell::release(owner.cast(), token) },
    // SAFETY: as above.
    share: |owner, token| unsafe { owner.cast::<Cell>().as_ref() }.state().share(token as usize),
};

impl Cell {
    /// Makes a pool of `slots` slots over `span`, with one handle.
    ///
    /// # Safety
    /// The cell, the words and the parts are nobody else's, and lie in `control`'s block. The
    /// caller has a unit of its count for the pool.
    pub(super) unsafe fn write(
        this: NonNull<Self>,
        control: NonNull<Control>,
        (number, block): (u16, u16),
        (slots, slot_bytes, span): (usize, usize, Span),
        words: NonNull<AtomicUsize>,
        parts: NonNull<AtomicU8>,
    ) {
        let (likely, pending) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let word_count = words_for(slots);
        let (start, handles) = (span.start, Count::one());
        let cell = Self { control, words, word_count, parts, slots, slot_bytes, start, block, number, handles, likely, pending };
        cell.state().open(slots);
        // SAFETY: the caller's promise.
        unsafe { this.write(cell) };
    }

    #[inline]
    pub(super) fn state(&self) -> Slots<'_> {
        // SAFETY: the words and the parts are the pool's for as long as it lives (`write`), and
        // atomics are all that anybody makes of them.
        let (words, parts) = unsafe {
            (
                slice::from_raw_parts(self.words.as_ptr(), self.word_count),
                slice::from_raw_parts(self.parts.as_ptr(), self.word_count * BITS),
            )
        };
        Slots { words, parts, likely: &self.likely, pending: &self.pending }
    }

    /// A free slot, for a caller who has a handle of the pool.
    ///
    /// # Safety
    /// The caller has a handle.
    #[inline]
    pub(super) unsafe fn take(this: NonNull<Self>, site: Site) -> Result<Chunk<'static>> {
        // SAFETY: the handle keeps the cell.
        let cell = unsafe { this.as_ref() };
        let token = cell.state().claim().ok_or(Error::NoSlots { slots: cell.slots })?;
        let slot = slot_of(token);
        trace::happened(Event::Take { slot, len_bytes: cell.slot_bytes }, site);
        let span = Span::new(cell.start + slot * cell.slot_bytes, cell.slot_bytes);
        #[allow(clippy::cast_possible_truncation, reason = "a token is below 2^21 (`Limits::slots`)")]
        let token = token as u32;
        // SAFETY: the table is for cells. The slot that is out keeps this one, until its last
        // handle is released.
        Ok(unsafe { Chunk::counted(this.cast(), SLOTS, token, span) })
    }

    /// A handle of a slot is gone.
    ///
    /// # Safety
    /// It was the caller's, who uses nothing of the pool after this.
    #[inline]
    unsafe fn release(this: NonNull<Self>, token: u32) {
        let token = token as usize;
        let state = {
            // SAFETY: the slot that is still out keeps the cell. What is kept of it behind this
            // block are references to atomics, which may go away under them.
            let state = unsafe { this.as_ref() }.state();
            if !state.last_is_gone(token) {
                return;
            }
            state
        };
        trace::happened(Event::Release { slot: slot_of(token) }, Site::NONE);
        if state.release(token) {
            // SAFETY: the pool has no handle, and this was its last slot.
            unsafe { Self::free(this) }
        }
    }

    /// A handle of the pool is gone. The last one closes it.
    ///
    /// # Safety
    /// As [`release`](Self::release).
    pub(super) unsafe fn drop_handle(this: NonNull<Self>) {
        // SAFETY: the handle that is still counted keeps the cell; then as in `release`.
        if !unsafe { &(*this.as_ptr()).handles }.drop_one() {
            return;
        }
        // SAFETY: the pool is not closed yet, so that no release frees it: the cell is there until
        // `close` has counted. What it is called with are references to atomics, and a number.
        let (state, slots) = unsafe { (this.as_ref().state(), this.as_ref().slots) };
        if state.close(slots) {
            // SAFETY: the pool has no handle, and no slot is out.
            unsafe { Self::free(this) }
        }
    }

    /// Frees the pool's memory, and drops its unit of the region's count.
    ///
    /// # Safety
    /// The pool has no handle and no slot is out; it is freed once.
    #[cold]
    unsafe fn free(this: NonNull<Self>) {
        // SAFETY: the pool's unit keeps the control block, and nobody reuses the cell before the
        // block is freed.
        let (control, number) = unsafe { (this.as_ref().control, this.as_ref().number) };
        // SAFETY: as above.
        unsafe { control.as_ref() }.free_pool(number);
        // SAFETY: the unit is the pool's, and nothing of it is used after this.
        unsafe { Control::drop_one(control) }
    }
}
