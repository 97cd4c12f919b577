#![allow(unsafe_code, reason = "an owner is reached by a pointer: a last handle frees it")]
//! The core of every buffer: some bytes of a block, and the owner that gets them back.

use crate::mem::block::State;
use crate::mem::span::Span;
use crate::mem::{Backend, Holder, Port};
use crate::types::{Align, Bus, Direction, Error};
use core::ptr::NonNull;

/// An owner behind a pointer: the functions of its type. A trait object would be called with a
/// reference, which lives until the call returns; but an owner that counts is freed *during* the
/// release of its last handle, maybe on another thread.
///
/// # Safety
/// Each function is called with the pointer that belongs to the table, and with a token that has a
/// live handle. What `state` and `backend` return is used only while that handle lives. `release`
/// ends the handle.
pub(crate) struct OwnerTable {
    pub(crate) state: unsafe fn(NonNull<()>) -> NonNull<State>,
    pub(crate) backend: unsafe fn(NonNull<()>) -> NonNull<dyn Backend>,
    pub(crate) release: unsafe fn(NonNull<()>, u32),
    pub(crate) share: unsafe fn(NonNull<()>, u32) -> Result<(), Error>,
}

/// Some bytes of a block, owned by exactly one handle.
///
/// INVARIANT: `extent` lies inside the block, and no other chunk holds any byte of it. The makers
/// of chunks guarantee it: a region's allocator (`Control::take`), its pools' bitmaps
/// (`PoolState::take`), and `split`, which divides one chunk into two.
// Aligned to 4, so that the four bytes behind `token` are no padding: a buffer keeps other fields
// there, and an operand has 128 bytes (`Operand`).
#[repr(C, packed(4))]
pub(crate) struct Chunk {
    owner: NonNull<()>,
    table: &'static OwnerTable,
    pub(crate) extent: Span,
    pub(crate) token: u32,
}

impl Chunk {
    /// A chunk of an owner that counts its handles.
    ///
    /// # Safety
    /// `table` belongs to `owner`. The owner has counted this chunk as one handle of `token`, and
    /// stays where it is until `release` was called for that handle.
    #[inline]
    pub(crate) unsafe fn counted(
        owner: NonNull<()>,
        table: &'static OwnerTable,
        token: u32,
        extent: Span,
    ) -> Self {
        Self { owner, table, extent, token }
    }

    /// The same handle, or one that [`share`](Self::share) counted, over `extent`, a part of this
    /// chunk's.
    #[inline]
    pub(super) fn with_extent(&self, extent: Span) -> Self {
        Self { owner: self.owner, table: self.table, extent, token: self.token }
    }

    #[inline]
    pub(crate) fn state(&self) -> &State {
        // SAFETY: this chunk is a handle of the owner's, and what is returned borrows it.
        unsafe { (self.table.state)(self.owner).as_ref() }
    }

    pub(crate) fn backend(&self) -> &dyn Backend {
        // SAFETY: as in `state`.
        unsafe { (self.table.backend)(self.owner).as_ref() }
    }

    /// Counts one more handle.
    pub(super) fn share(&self) -> Result<(), Error> {
        // SAFETY: this chunk is a handle of `token`.
        unsafe { (self.table.share)(self.owner, self.token) }
    }

    /// Drops this handle.
    ///
    /// # Safety
    /// This is the last use of this chunk, and of every copy of the same handle.
    #[inline]
    pub(super) unsafe fn release(&self) {
        let (owner, table, token) = (self.owner, self.table, self.token);
        // SAFETY: this chunk was a handle of `token`, and the caller uses it no more.
        unsafe { (table.release)(owner, token) }
    }

    pub(crate) fn line(&self) -> Align {
        self.state().line
    }

    /// Tells a simulated board that the devices behind `port`, or any of its devices, may touch
    /// `span`. The board counts what they touch beside it. For other memory this does nothing.
    #[inline(always)]
    pub(crate) fn give_to_device(&self, span: Span, port: Option<&Port>, direction: Direction) {
        if self.is_simulated() {
            tell(
                self.with_extent(span),
                Holder::Device { port, writes: direction.device_writes() },
            );
        }
    }

    /// Tells the board that no device may touch `span` any more.
    #[inline(always)]
    pub(crate) fn take_from_device(&self, span: Span) {
        if self.is_simulated() {
            tell(self.with_extent(span), Holder::None);
        }
    }

    fn is_simulated(&self) -> bool {
        matches!(self.state().mapping.bus, Bus::Sim(_))
    }
}

/// Kept out of the fast path, and takes the chunk by value: a reference to it would keep a job's
/// buffers in memory where they could be in registers.
#[cold]
#[inline(never)]
fn tell(chunk: Chunk, holder: Holder<'_>) {
    let span = chunk.extent;
    chunk.backend().held_by(span.range(), holder);
}
