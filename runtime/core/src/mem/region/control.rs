#![allow(
    unsafe_code,
    reason = "a control block's parts are reached by pointers into its own memory, and freed by \
     its last unit"
)]
//! The control block of a region: everything that its handles share.
//!
//! ```text
//!   Region ─┐                 ┌ hot       the count, and the allocator of bytes behind its lock
//!   CpuBuf ─┼─► control block ┼ state     the mapping's facts, counters, the syncs
//!   Pool   ─┘                 └ backend   the value itself, of whatever type
//! ```
//!
//! The count has one unit for each [`Region`](super::Region) handle, and one for each allocated
//! block: a buffer's, or a pool's. Dropping the last unit frees everything. A forgotten value keeps
//! its unit, and so the mapping: leaked, never freed.
//!
//! # The last one
//! A thread that drops a unit may touch nothing of the control block after that, unless that unit
//! was the last. So no reference to the control block may be alive then, not even that of a
//! method's `self`: the functions that drop a unit take pointers.

use super::count::{Count, MAX_HANDLES};
use super::limits::{LINE, Limits, PAGE, layout, put, tri, within};
use super::memory::{Memory, wherever};
use crate::mem::Backend;
use crate::mem::block::{Block, Requirements, State};
use crate::mem::buf::{Chunk, OwnerTable};
use crate::mem::region::bitmap::WORD_BITS;
use crate::mem::region::parts;
use crate::mem::region::tlsf::{MAX_BLOCKS, Node, Tlsf};
use crate::mem::span::Span;
use crate::trace::{self, Event, Site};
use crate::types::atomic::{AtomicBool, AtomicU8, AtomicUsize};
use crate::types::{Error, Result};
use core::alloc::Layout;
use core::mem::ManuallyDrop;
use core::ptr;
use core::ptr::NonNull;
use spin::Mutex;

impl Limits {
    /// How many bytes [`Region::with_memory`](super::Region::with_memory) needs for a backend of
    /// the type `B`, wherever they begin. It can be computed at compile time, for a static.
    ///
    /// ```
    /// use contigo::{Limits, sim::Sim};
    /// use core::mem::MaybeUninit;
    ///
    /// const LIMITS: Limits = Limits { allocations: 16 };
    /// const BYTES: usize = match LIMITS.control_bytes::<Sim>() {
    ///     Ok(bytes) => bytes,
    ///     Err(_) => panic!("a limit is out of range"),
    /// };
    /// static mut MEMORY: [MaybeUninit<u8>; BYTES] = [MaybeUninit::uninit(); BYTES];
    /// assert!(BYTES < Limits::default().control_bytes::<Sim>()?);
    /// # Ok::<(), contigo::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Argument`]: the limit is 0, or more than there can be; or `B` is aligned to more
    /// than 4,096 bytes.
    pub const fn control_bytes<B>(&self) -> Result<usize> {
        Ok(wherever(tri!(Plan::new::<B>(*self)).layout))
    }
}

/// Where each part of a region's control block begins, in bytes from the beginning of it.
#[derive(Clone, Copy)]
pub(super) struct Plan {
    pub(super) limits: Limits,
    pub(super) table: usize,
    pub(super) returned: usize,
    pub(super) parts: usize,
    pub(super) backend: usize,
    pub(super) layout: Layout,
}

impl Plan {
    pub(super) const fn new<B>(limits: Limits) -> Result<Self> {
        tri!(within("allocations", limits.allocations, MAX_BLOCKS));
        tri!(within("the alignment of the backend", align_of::<B>(), PAGE));
        // No sum overflows: a type has at most `isize::MAX` bytes, and all others are bounded.
        let align = if align_of::<B>() > LINE { align_of::<B>() } else { LINE };
        let mut end = size_of::<Control>();
        let table = put(
            &mut end,
            LINE,
            size_of::<Tlsf<[Node; 0]>>() + limits.allocations * size_of::<Node>(),
        );
        let returned =
            put(&mut end, LINE, limits.allocations.div_ceil(WORD_BITS) * size_of::<AtomicUsize>());
        let parts = put(&mut end, LINE, limits.allocations);
        let backend = put(&mut end, align, size_of::<B>());
        Ok(Self { limits, table, returned, parts, backend, layout: tri!(layout(end, align)) })
    }
}

/// See the [module](self). INVARIANT: every pointer in it leads to its own part of `memory`, as
/// `Plan` laid it out, initialised, and valid until `memory` is dropped.
#[repr(C, align(64))]
pub(super) struct Control {
    pub(super) hot: Hot,
    pub(super) state: State,
    pub(super) limits: Limits,
    pub(super) backend: NonNull<dyn Backend>,
    memory: ManuallyDrop<Memory>,
    /// The blocks that were dropped while another thread had the lock (`returned.rs`). On lines of
    /// their own.
    pub(super) returned: NonNull<[AtomicUsize]>,
    /// The handles of each block beyond the first.
    parts: NonNull<[AtomicU8]>,
}

/// What every clone, allocation and drop writes. On a line of its own, because every view reads the
/// facts beside it.
#[repr(align(64))]
pub(super) struct Hot {
    pub(super) count: Count,
    /// The allocator: lines of the mapping. A block's number is its token.
    pub(super) table: Mutex<NonNull<Tlsf<[Node]>>>,
    /// A bit of `returned` may be set.
    pub(super) any_returned: AtomicBool,
}

const _: () = assert!(
    size_of::<Hot>() == LINE
        && align_of::<Control>() == LINE
        && align_of::<Tlsf<[Node; 0]>>() <= LINE
);

// SAFETY: the pointers lead to the control block's own memory, which no move moves. What is there
// is atomic, or behind the lock, or a backend, which is `Send + Sync`.
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

/// The owner of a buffer of `alloc`, for its chunk: the region's control block itself.
const BLOCKS: &OwnerTable = &OwnerTable {
    // SAFETY: `Control::buffer` made the pointer, and a block with a handle has a unit of the
    // count, which keeps the control block.
    state: |owner| unsafe { Control::state_of(owner.cast()) },
    // SAFETY: as above.
    backend: |owner| unsafe { owner.cast::<Control>().as_ref().backend },
    // SAFETY: `Control::buffer` made the pointer. The handle is gone, and its share of the unit
    // passes to the function.
    release: |owner, token| unsafe { Control::release(owner.cast(), token) },
    share: |owner, token| {
        // SAFETY: `Control::buffer` made the pointer, and a block with a handle has a unit of the
        // count, which keeps the control block.
        unsafe { owner.cast::<Control>().as_ref() }
            .part(token)
            .ok_or(parts::REFUSAL)
            .and_then(parts::one_more)
    },
};

impl Control {
    /// Checks `backend`'s mapping. The result is for [`write`](Self::write).
    pub(super) fn check(backend: &dyn Backend, needs: Requirements, site: Site) -> Result<State> {
        // This check comes first, before the listener receives any event of a mapping.
        let mapping = backend.mapping();
        let most = (u32::MAX as usize).saturating_mul(State::line_of(mapping.scope)?.bytes());
        if mapping.len_bytes > most {
            return Err(Error::OutOfRange { start: 0, end: mapping.len_bytes, len_bytes: most });
        }
        State::checked(backend, needs, site)
    }

    /// Makes a control block of `memory` that owns `backend` and the memory itself. The caller has
    /// the first unit of its count.
    ///
    /// # Safety
    /// `memory` was made for the layout of `plan`, a plan of `B`, and has nothing in it. `state` is
    /// what [`check`](Self::check) returned for `backend`.
    pub(super) unsafe fn write<B: Backend + 'static>(
        backend: B,
        state: State,
        plan: &Plan,
        memory: Memory,
    ) -> NonNull<Self> {
        let Plan { limits, .. } = *plan;
        #[allow(clippy::cast_possible_truncation, reason = "`check` refuses more lines than that")]
        let lines = (state.mapping.len_bytes / state.line.bytes()) as u32;
        // SAFETY: the plan put every part inside its layout, aligned for its type, and no two
        // overlap. The table is numbers, and the other parts are atomics, for which the zeroes that
        // are there are values. A slice of nodes at the end of a table lies where an array of as
        // many does (`repr(C)`).
        unsafe {
            let place = memory.at::<B>(plan.backend);
            place.write(backend);
            let nodes = ptr::slice_from_raw_parts_mut(
                memory.at::<Node>(plan.table).as_ptr(),
                limits.allocations,
            );
            let table = &mut *(nodes as *mut Tlsf<[Node]>);
            table.init(lines);
            let this = memory.at::<Self>(0);
            this.write(Self {
                hot: Hot {
                    count: Count::one(),
                    table: Mutex::new(NonNull::from(table)),
                    any_returned: AtomicBool::new(false),
                },
                state,
                limits,
                backend: place,
                returned: NonNull::slice_from_raw_parts(
                    memory.at(plan.returned),
                    limits.allocations.div_ceil(WORD_BITS),
                ),
                parts: NonNull::slice_from_raw_parts(memory.at(plan.parts), limits.allocations),
                memory: ManuallyDrop::new(memory),
            });
            this
        }
    }

    /// The facts of the mapping.
    ///
    /// # Safety
    /// A unit of the count keeps the control block.
    pub(super) unsafe fn state_of(this: NonNull<Self>) -> NonNull<State> {
        // SAFETY: the caller's promise.
        NonNull::from(unsafe { &(*this.as_ptr()).state })
    }

    /// Adds a unit to the count, for a caller who has one.
    pub(super) fn add(&self) -> Result<()> {
        if self.hot.count.add() {
            Ok(())
        } else {
            Err(Error::TooMany { what: "handles of one region", most: MAX_HANDLES as u64 })
        }
    }

    /// How many units there are.
    pub(super) fn units(&self) -> usize {
        self.hot.count.get()
    }

    /// Drops a unit of the count. The last one drops the backend, which unmaps its memory, and
    /// frees the control block.
    ///
    /// # Safety
    /// The unit is the caller's, who uses nothing of the control block after this, and has no
    /// reference to it.
    pub(super) unsafe fn drop_one(this: NonNull<Self>) {
        // SAFETY: the unit that is still counted keeps the control block. The reference is to
        // atomics only: the memory may be freed while it exists, but it is not used then, as in
        // `Arc`.
        if !unsafe { &(*this.as_ptr()).hot.count }.drop_one() {
            return;
        }
        // SAFETY: the count was 1 and can never grow again: no other thread has the control block,
        // and what all others did to it has been seen (`Count::drop_one`). The memory is moved out,
        // so that it is freed once, after the backend that lies in it; and not at all if the
        // backend's drop panics.
        unsafe {
            let memory = ptr::read(&raw const (*this.as_ptr()).memory);
            let len_bytes = (*this.as_ptr()).state.mapping.len_bytes;
            let backend = (*this.as_ptr()).backend;
            backend.drop_in_place();
            trace::happened(Event::Unmap { len_bytes }, Site::NONE);
            ManuallyDrop::into_inner(memory).free();
        }
    }

    /// A buffer over what [`take`](Self::take) returned.
    ///
    /// # Safety
    /// `this` is valid, and the unit that `take` added becomes the chunk's.
    pub(super) unsafe fn buffer(this: NonNull<Self>, (id, span): (u16, Span)) -> Chunk {
        // SAFETY: the table is for regions' control blocks, and the unit keeps this one.
        unsafe { Chunk::counted(this.cast(), BLOCKS, id.into(), span) }
    }

    /// The handles of a buffer's block beyond the first.
    fn part(&self, token: u32) -> Option<&AtomicU8> {
        // SAFETY: `Control`'s invariant.
        unsafe { self.parts.as_ref() }.get(token as usize)
    }

    /// Drops a handle of a buffer's block. The last one frees the block, and drops its unit.
    ///
    /// # Safety
    /// As [`drop_one`](Self::drop_one), for a unit that the handles of the block share.
    unsafe fn release(this: NonNull<Self>, token: u32) {
        {
            // SAFETY: the block's unit keeps the control block, until the last handle is gone.
            let control = unsafe { this.as_ref() };
            if !control.part(token).is_some_and(parts::last_is_gone) {
                return;
            }
            // Before `free`: a listener is the program's code, and no lock is held while it runs.
            trace::happened(Event::Release { slot: token as usize }, Site::NONE);
            #[allow(
                clippy::cast_possible_truncation,
                reason = "the token of a buffer is its block's number (`buffer`)"
            )]
            control.free(token as u16);
        }
        // SAFETY: the caller's promise; the reference above has ended.
        unsafe { Self::drop_one(this) }
    }
}
