#![allow(unsafe_code, reason = "the control block's parts are reached by pointers into its own memory, and freed by its last handle")]
//! The control block of a region: everything that its handles share.
//!
//! ```text
//!   Region ─┐                 ┌ count     handles, buffers, pools: the last one frees it all
//!   CpuBuf ─┼─► control block ┼ state     the mapping's facts, counters, the syncs
//!   Pool   ─┘                 ├ tables    the allocator of bytes, and that of bitmaps; one lock
//!                             ├ cells     a pool each
//!                             └ backend   the value itself, of whatever type
//! ```
//!
//! The count has one unit for each [`Region`](super::Region) handle, for each block of the
//! allocator that is out, and for each pool that has a handle or a slot out. A value that is
//! forgotten keeps its unit, and so the mapping: leaked, never freed.
//!
//! # The last one
//! Whoever drops a unit may touch nothing of the block after that, unless it was the last. So no
//! reference to the block may be alive then, not even that of a method's `self`: the functions that
//! drop a unit take pointers.

use super::{
    cell::Cell,
    count::{Count, MAX_HANDLES},
    limits::{GROUP_WORDS, Limits, Plan},
    memory::Memory,
    tables::Tables,
};
use crate::{
    mem::{
        Backend,
        buf::{Chunk, OwnerTable},
        pool::parts,
        region::{Block, Requirements, State},
        span::Span,
    },
    trace::{self, Event, Site},
    types::{
        Error, Result,
        atomic::{AtomicU8, AtomicUsize},
    },
};
use core::alloc::Layout;
use core::{
    mem::{ManuallyDrop, MaybeUninit},
    ptr,
    ptr::NonNull,
};
use spin::Mutex;

pub(super) const BITS: usize = usize::BITS as usize;

/// See the [module](self). INVARIANT: every pointer in it leads to its own part of the block's
/// memory, as `Plan` laid it out, initialised, and valid until the block is freed.
#[repr(C, align(64))]
pub(super) struct Control {
    count: Count,
    pub(super) state: State,
    pub(super) limits: Limits,
    backend: NonNull<dyn Backend>,
    memory: ManuallyDrop<Memory>,
    pub(super) tables: Mutex<Tables>,
    /// Blocks, and behind them pools, that were dropped while another thread had the lock, a bit
    /// each: the next one to allocate frees them. So a drop never waits.
    pub(super) returned: NonNull<[AtomicUsize]>,
    /// Not 0: `returned` may have bits.
    pub(super) any_returned: AtomicUsize,
    /// The handles of each block beyond the first.
    parts: NonNull<[AtomicU8]>,
    pub(super) cells: NonNull<[MaybeUninit<Cell>]>,
    pub(super) words: NonNull<[AtomicUsize]>,
    pub(super) slot_parts: NonNull<[AtomicU8]>,
}

// SAFETY: the pointers lead to memory that moves with nobody: the block's own. What they lead to is
// atomic, or behind the lock, or a backend, which is `Send + Sync`, or a cell (see there).
unsafe impl Send for Control {}
// SAFETY: as for `Send`.
unsafe impl Sync for Control {}

impl Block for Control {
    fn state(&self) -> &State {
        &self.state
    }
    fn backend(&self) -> &dyn Backend {
        // SAFETY: `Control`'s invariant.
        unsafe { self.backend.as_ref() }
    }
}

/// A buffer of `alloc` as its chunk sees its owner: the control block itself.
const BLOCKS: &OwnerTable<'static> = &OwnerTable {
    // SAFETY: `Control::buffer` made the pointer, and a handle of the block is a unit of the count.
    block: |owner| unsafe { owner.cast::<Control>().as_ref() },
    // SAFETY: as above; the handle is gone.
    release: |owner, token| unsafe { Control::release_part(owner.cast(), token) },
    // SAFETY: as above.
    share: |owner, token| parts::one_more(unsafe { owner.cast::<Control>().as_ref() }.part(token)?),
};

impl Control {
    /// How much memory a block over a `B` needs.
    pub(super) fn plan<B: Backend + 'static>(limits: &Limits) -> Result<Plan> {
        Plan::new(limits, Layout::new::<B>())
    }

    /// Checks `backend`'s mapping, and makes a control block of `memory` that owns both. The caller
    /// has the first unit of its count.
    ///
    /// # Errors
    /// Those of `State::checked`; the backend comes back, and the memory goes.
    ///
    /// # Safety
    /// `start` leads to the bytes that go with `memory`, for a plan of `B`: aligned, zeroed, and
    /// nobody else's until `memory` is dropped.
    pub(super) unsafe fn new<B: Backend + 'static>(
        backend: B,
        needs: Requirements,
        plan: &Plan,
        (memory, start): (Memory, NonNull<u8>),
        site: Site,
    ) -> Result<NonNull<Self>, (Error, B)> {
        let state = match State::checked(&backend, needs, site) {
            Ok(state) => state,
            Err(error) => return Err((error, backend)),
        };
        let Ok(lines) = u32::try_from(state.mapping.len_bytes / state.line.bytes()) else {
            let most = (u32::MAX as usize).saturating_mul(state.line.bytes());
            return Err((Error::OutOfRange { start: 0, end: state.mapping.len_bytes, len_bytes: most }, backend));
        };
        let Limits { allocations, pools, .. } = plan.limits;
        // SAFETY: the plan put every part inside the memory, aligned for its type.
        let at = |offset: usize| unsafe { start.add(offset) };
        let slice = |offset: usize, len: usize| NonNull::slice_from_raw_parts(at(offset).cast::<AtomicUsize>(), len);
        let bytes = |offset: usize, len: usize| NonNull::slice_from_raw_parts(at(offset).cast::<AtomicU8>(), len);
        let all_words = plan.groups * GROUP_WORDS;
        let place = at(plan.backend).cast::<B>();
        // SAFETY: as above, and the place is nobody's.
        unsafe { place.write(backend) };
        let groups = u32::try_from(plan.groups).unwrap_or(0);
        // SAFETY: as above.
        let tables = unsafe { Tables::new((at(plan.blocks), allocations, lines), (at(plan.bitmaps), pools, groups)) };
        let control = start.cast::<Self>();
        // SAFETY: as above: the block begins with this value. The parts behind it are atomics,
        // for which the zeroes that are there are values.
        unsafe {
            control.write(Self {
                count: Count::one(),
                state,
                limits: plan.limits,
                backend: place,
                memory: ManuallyDrop::new(memory),
                tables: Mutex::new(tables),
                returned: slice(plan.returned, (allocations + pools).div_ceil(BITS)),
                any_returned: AtomicUsize::new(0),
                parts: bytes(plan.parts, allocations),
                cells: NonNull::slice_from_raw_parts(at(plan.cells).cast(), pools),
                words: slice(plan.words, all_words),
                slot_parts: bytes(plan.slot_parts, all_words * BITS),
            });
        }
        Ok(control)
    }

    /// Adds a unit to the count, for a caller who has one.
    pub(super) fn add(&self) -> Result<()> {
        if self.count.add() { Ok(()) } else { Err(Error::TooMany { what: "handles of one region", most: MAX_HANDLES as u64 }) }
    }

    /// How many units there are.
    pub(super) fn units(&self) -> usize {
        self.count.get()
    }

    /// Drops a unit of the count. The last one drops the backend, which unmaps its memory, and
    /// frees the control block.
    ///
    /// # Safety
    /// The unit is the caller's, who uses nothing of the block after this. No reference to the
    /// block that this unit stood for is alive.
    pub(super) unsafe fn drop_one(this: NonNull<Self>) {
        // SAFETY: the unit that is still counted keeps the block. The reference is to atomics only,
        // which may go away under it, as in `Arc`.
        if !unsafe { &(*this.as_ptr()).count }.drop_one() {
            return;
        }
        // SAFETY: the count was 1 and can never grow again: nobody else has the block, and what all
        // others did to it has been seen (`Count::drop_one`). The memory is moved out, so that it
        // is freed once, after the backend that lies in it; and not at all where the backend's drop
        // panics.
        unsafe {
            let memory = ptr::read(&raw const (*this.as_ptr()).memory);
            let len_bytes = (*this.as_ptr()).state.mapping.len_bytes;
            let backend = (*this.as_ptr()).backend;
            backend.drop_in_place();
            trace::happened(Event::Unmap { len_bytes }, Site::NONE);
            drop(ManuallyDrop::into_inner(memory));
        }
    }

    /// Where there is none, neither is the unit of the count that was for it.
    pub(super) fn or_drop<T>(&self, taken: Result<T>) -> Result<T> {
        if taken.is_err() {
            // Never the last: the caller has one.
            let _ = self.count.drop_one();
        }
        taken
    }

    /// A buffer over a block that [`take`](Self::take) gave.
    ///
    /// # Safety
    /// `this` is valid, and the block's unit of the count becomes the chunk's.
    pub(super) unsafe fn buffer(this: NonNull<Self>, (id, span): (u16, Span)) -> Chunk<'static> {
        // SAFETY: the table is for control blocks, and the unit keeps this one.
        unsafe { Chunk::counted(this.cast(), BLOCKS, id.into(), span) }
    }

    /// The handles of a block beyond the first.
    fn part(&self, token: u32) -> Result<&AtomicU8> {
        // SAFETY: `Control`'s invariant.
        unsafe { self.parts.as_ref() }.get(token as usize).ok_or(parts::REFUSAL)
    }

    /// A handle of a block is gone. The last one frees the block, and drops its unit of the count.
    ///
    /// # Safety
    /// As [`drop_one`](Self::drop_one), for a unit that the handles of the block share.
    unsafe fn release_part(this: NonNull<Self>, token: u32) {
        {
            // SAFETY: the block's unit of the count keeps it, until the last handle is gone.
            let control = unsafe { this.as_ref() };
            if !control.part(token).is_ok_and(parts::last_is_gone) {
                return;
            }
            // Before the lock: a listener is the program's code, and may drop a buffer.
            trace::happened(Event::Release { slot: token as usize }, Site::NONE);
            control.free(token as usize);
        }
        // SAFETY: the caller's promise; the reference above has ended.
        unsafe { Self::drop_one(this) }
    }
}
