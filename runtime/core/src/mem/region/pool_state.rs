#![allow(unsafe_code, reason = "a pool's control block is freed by the pool's last handle or slot")]
//! The control block of a pool: what its handles and its slots share.
//!
//! It lies in memory of its own, and has one of the region's blocks, with that block's unit of the
//! region's count. So it never outlives the region's control block. It is freed when the pool has
//! no handle and no slot is out: see `slots`.

use super::control::Control;
use super::count::Count;
use super::limits::{LINE, MAX_SLOTS, layout, put, tri, within};
use super::memory::{Memory, wherever};
use super::slots::{Slots, slot_of, words_for};
use crate::mem::buf::{Chunk, OwnerTable};
use crate::mem::region::bitmap::WORD_BITS;
use crate::mem::span::Span;
use crate::trace::{self, Event, Site};
use crate::types::atomic::{AtomicU8, AtomicUsize};
use crate::types::{Error, Result};
use core::alloc::Layout;
use core::mem::{ManuallyDrop, offset_of};
use core::ptr;
use core::ptr::NonNull;

/// Where each part of a pool's control block begins, in bytes from the beginning of it.
#[derive(Clone, Copy)]
pub(super) struct PoolPlan {
    pub(super) slots: usize,
    pub(super) words: usize,
    pub(super) parts: usize,
    pub(super) layout: Layout,
}

impl PoolPlan {
    pub(super) const fn new(slots: usize) -> Result<Self> {
        tri!(within("slots", slots, MAX_SLOTS));
        let mut end = size_of::<PoolState>();
        let words = put(&mut end, LINE, words_for(slots) * size_of::<AtomicUsize>());
        let parts = put(&mut end, LINE, words_for(slots) * WORD_BITS);
        Ok(Self { slots, words, parts, layout: tri!(layout(end, LINE)) })
    }
}

/// How many bytes a pool of `slots` needs for its control block, wherever they begin.
pub(super) const fn pool_control_bytes(slots: usize) -> Result<usize> {
    Ok(wherever(tri!(PoolPlan::new(slots)).layout))
}

/// See the [module](self). INVARIANT: `words` and `parts` lead to their own parts of `memory`, as
/// `PoolPlan` laid it out, and are valid until `memory` is dropped. `control` is valid as long.
#[repr(C, align(64))]
pub(super) struct PoolState {
    // What a take and a drop read.
    control: NonNull<Control>,
    words: NonNull<[AtomicUsize]>,
    /// `WORD_BITS` for each word.
    parts: NonNull<[AtomicU8]>,
    pub(super) slot_bytes: usize,
    /// Where slot 0 begins in the region.
    start: usize,
    pub(super) hot: Hot,
    // What they read only when a pool is empty, or is dropped.
    pub(super) slots: usize,
    /// The region's block that the slots lie in.
    block: u16,
    memory: ManuallyDrop<Memory>,
}

/// What handles and slots write. On a line of its own.
#[repr(align(64))]
pub(super) struct Hot {
    pub(super) handles: Count,
    likely: AtomicUsize,
    pending: AtomicUsize,
}

const _: () = assert!(
    align_of::<PoolState>() == LINE
        && offset_of!(PoolState, hot) == LINE
        && size_of::<Hot>() == LINE
);

/// The owner of a slot, for its chunk: the pool's control block. A constant, so that a drop which
/// the compiler sees beside its take is no indirect call.
const SLOTS: &OwnerTable = &OwnerTable {
    // SAFETY: `PoolState::take` made the pointer; a slot that is out keeps the pool's control
    // block, and that the region's.
    state: |owner| unsafe { Control::state_of(owner.cast::<PoolState>().as_ref().control) },
    // SAFETY: as above.
    backend: |owner| unsafe { owner.cast::<PoolState>().as_ref().control.as_ref().backend },
    // SAFETY: as above; the handle is gone.
    release: |owner, token| unsafe { PoolState::release(owner.cast(), token) },
    share: |owner, token| {
        // SAFETY: as above.
        unsafe { owner.cast::<PoolState>().as_ref() }.state().share(token as usize)
    },
};

impl PoolState {
    /// Makes a pool of `memory`, over `span` of the region, with one handle, which is the caller's.
    ///
    /// # Safety
    /// `memory` was made for the layout of `plan`, and has nothing in it. `control` gave `block`
    /// and `span`; both, and the unit of its count that came with them, become the pool's. The span
    /// has `plan.slots` slots of `slot_bytes`.
    pub(super) unsafe fn write(
        plan: &PoolPlan,
        memory: Memory,
        control: NonNull<Control>,
        (block, span): (u16, Span),
        slot_bytes: usize,
    ) -> NonNull<Self> {
        let word_count = words_for(plan.slots);
        // SAFETY: the plan put every part inside its layout, aligned for its type, and no two
        // overlap. The parts are atomics, for which the zeroes that are there are values.
        unsafe {
            let this = memory.at::<Self>(0);
            this.write(Self {
                control,
                words: NonNull::slice_from_raw_parts(memory.at(plan.words), word_count),
                parts: NonNull::slice_from_raw_parts(memory.at(plan.parts), word_count * WORD_BITS),
                slot_bytes,
                start: span.start,
                hot: Hot {
                    handles: Count::one(),
                    likely: AtomicUsize::new(0),
                    pending: AtomicUsize::new(0),
                },
                slots: plan.slots,
                block,
                memory: ManuallyDrop::new(memory),
            });
            this.as_ref().state().open(plan.slots);
            this
        }
    }

    #[inline]
    pub(super) fn state(&self) -> Slots<'_> {
        // SAFETY: the invariant; the memory is used as atomics only.
        let (words, parts) = unsafe { (self.words.as_ref(), self.parts.as_ref()) };
        Slots { words, parts, likely: &self.hot.likely, pending: &self.hot.pending }
    }

    /// Takes a free slot.
    ///
    /// # Safety
    /// The caller has a handle of the pool.
    #[inline]
    pub(super) unsafe fn take(this: NonNull<Self>, site: Site) -> Result<Chunk> {
        // SAFETY: the caller's handle keeps the pool's control block.
        let pool = unsafe { this.as_ref() };
        let token = pool.state().claim().ok_or(Error::NoSlots { slots: pool.slots })?;
        let slot = slot_of(token);
        trace::happened(Event::Take { slot, len_bytes: pool.slot_bytes }, site);
        let span = Span::new(pool.start + slot * pool.slot_bytes, pool.slot_bytes);
        #[allow(clippy::cast_possible_truncation, reason = "a token fits (`limits`)")]
        let token = token as u32;
        // SAFETY: the table is for pools' control blocks. The slot that is out keeps this one,
        // until its last handle is released.
        Ok(unsafe { Chunk::counted(this.cast(), SLOTS, token, span) })
    }

    /// Drops a handle of a slot.
    ///
    /// # Safety
    /// The handle was the caller's, who uses nothing of the pool after this.
    #[inline]
    unsafe fn release(this: NonNull<Self>, token: u32) {
        let token = token as usize;
        let state = {
            // SAFETY: the slot that is still out keeps the pool's control block. Only references to
            // atomics are kept beyond this block. The memory may be freed while they exist, but
            // they are not used then.
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

    /// Drops a handle of the pool. The last one closes it.
    ///
    /// # Safety
    /// As [`release`](Self::release).
    pub(super) unsafe fn drop_handle(this: NonNull<Self>) {
        // SAFETY: the handle that is still counted keeps the pool's control block; then as in
        // `release`.
        if !unsafe { &(*this.as_ptr()).hot.handles }.drop_one() {
            return;
        }
        // SAFETY: the pool is not closed yet, so that no release frees it: it is there until
        // `close` has counted. Only references to atomics are kept, as in `release`, and a number.
        let (state, slots) = unsafe { (this.as_ref().state(), this.as_ref().slots) };
        if state.close(slots) {
            // SAFETY: the pool has no handle, and no slot is out.
            unsafe { Self::free(this) }
        }
    }

    /// Gives the pool's block back to the region, frees the pool's control block, and drops the
    /// unit of the region's count.
    ///
    /// # Safety
    /// The pool has no handle and no slot is out; it is freed once.
    #[cold]
    unsafe fn free(this: NonNull<Self>) {
        // SAFETY: no other thread has the pool, and what all others did to it has been seen
        // (`Slots::release`, `Slots::close`). The memory is moved out, so that it is freed once.
        let (memory, control, block) = unsafe {
            (
                ptr::read(&raw const (*this.as_ptr()).memory),
                (*this.as_ptr()).control,
                (*this.as_ptr()).block,
            )
        };
        // SAFETY: the pool's unit keeps the region's control block.
        unsafe { control.as_ref() }.free(block);
        // Before the unit is dropped: the last unit runs the backend's drop, which may panic.
        ManuallyDrop::into_inner(memory).free();
        // SAFETY: the unit is the pool's, and nothing of the region is used after this.
        unsafe { Control::drop_one(control) }
    }
}
