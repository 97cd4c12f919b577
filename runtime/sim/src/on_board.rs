#![allow(unsafe_code, reason = "a backend promises that its mapping is valid")]
//! Memory that is real, on a board that is not.

use super::{SimBoard, block::SimBlock};
use contigo_core::forward;
use contigo_core::{
    mem::{Backend, Holder, Mapping, WrongAccesses},
    types::{
        Direction, Result,
        platform::{Anonymous, HAS_MEMORY},
    },
};
use core::{mem::ManuallyDrop, ops::Range, ptr::NonNull};

/// Any other backend's block on the simulated board's bus, so that simulated devices work on real
/// memory: `contigo demo --memory hugetlb`. Its addresses are for this board then, and for no real
/// device. Such a device is a program on the CPU: it reads and writes through the caches. The
/// backend's own maintenance is still done, on memory that is not coherent too: what the device
/// wrote is cleaned before it is invalidated.
#[derive(Debug)]
pub struct OnBoard<B: Backend> {
    board: SimBoard,
    inner: ManuallyDrop<B>,
    block: SimBlock,
    /// Who holds each byte. Freed with `inner`.
    marks: ManuallyDrop<Option<Anonymous>>,
}

impl<B: Backend> OnBoard<B> {
    /// Puts `inner`'s block on `board`'s bus, at its own address.
    ///
    /// # Errors
    /// [`Error::TooMany`](contigo_core::Error::TooMany) past 32 blocks. `inner` is dropped: no
    /// device has seen it.
    pub fn new(board: &SimBoard, inner: B) -> Result<Self> {
        let Mapping { cpu, len_bytes, base, .. } = inner.mapping();
        let mut mapped = if HAS_MEMORY { Some(Anonymous::zeroed(len_bytes)?) } else { None };
        let marks = mapped.as_mut().and_then(|mapped| NonNull::new(mapped.as_mut_ptr()));
        let block = board.attach(SimBlock { id: 0, base, len_bytes, cpu, behind: None, marks })?;
        Ok(Self {
            board: board.clone(),
            inner: ManuallyDrop::new(inner),
            block,
            marks: ManuallyDrop::new(mapped),
        })
    }
}

// SAFETY: every method is `inner`'s, except that the addresses are for the board's bus, on which
// the block is. The simulated devices reach it only by addresses that the region gave them.
unsafe impl<B: Backend> Backend for OnBoard<B> {
    forward!(|this| *this.inner => name, segment, settled);

    fn mapping(&self) -> Mapping {
        Mapping { bus: self.board.bus(), ..self.inner.mapping() }
    }
    unsafe fn sync_for_device(&self, range: Range<usize>, direction: Direction) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.inner.sync_for_device(range, direction) }
    }
    unsafe fn sync_for_cpu(&self, range: Range<usize>, direction: Direction) -> Result<()> {
        if direction.device_writes() {
            // A simulated device wrote through the CPU's caches: an invalidate would throw that
            // away, so it is cleaned first. SAFETY: the caller's promise; the same range, and a
            // direction that writes as well.
            unsafe { self.inner.sync_for_device(range.clone(), Direction::Bidirectional)? }
        }
        // SAFETY: the caller's promise.
        unsafe { self.inner.sync_for_cpu(range, direction) }
    }
    fn held_by(&self, range: Range<usize>, holder: Holder<'_>) {
        self.board.hold(&self.block, range, holder);
    }
    fn wrong_accesses(&self) -> Result<WrongAccesses> {
        self.board.wrong_accesses(None)
    }
}

impl<B: Backend> Drop for OnBoard<B> {
    fn drop(&mut self) {
        self.board.detach(self.block.id);
        if !self.board.is_attached(self.block.id) {
            // SAFETY: `drop` runs once, and the board knows the memory no more.
            unsafe { ManuallyDrop::drop(&mut self.inner) }
            // SAFETY: as above.
            unsafe {
                ManuallyDrop::drop(&mut self.marks);
            }
        }
    }
}
