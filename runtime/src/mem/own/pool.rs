#![allow(unsafe_code, reason = "a handle is a pointer that counts")]
//! Equal slots of a region, for any number of threads.

use super::{CpuBuf, cell::Cell};
use crate::{mem::buf::CpuBuf as Buf, trace::Site, types::Result};
use core::{fmt, ptr::NonNull};

/// A handle to equal slots of a [`Region`](super::Region). A take and a drop are one atomic
/// operation each, with no system call and no heap. Clones are the same pool.
///
/// The pool's memory goes back to the region when its last handle is gone and every slot came back.
/// A buffer may outlive all handles:
///
/// ```
/// use contigo::{Error, own::Region, sim::SimBoard};
/// # let board: &'static SimBoard = Box::leak(Box::new(SimBoard::new(1))); // for the example only
/// let region = Region::new(board.memory(64 * 1024)?)?;
/// let frames = region.pool(2, 4096)?;
/// let (mut one, two) = (frames.take()?, frames.take()?);
/// assert_eq!(frames.take().unwrap_err(), Error::NoSlots { slots: 2 });
/// drop(two); // free again
/// drop((frames, region));
/// one.view_mut::<u8>()?.fill(7); // still there; the last one out unmaps the memory
/// # Ok::<(), contigo::Error>(())
/// ```
pub struct Pool {
    /// INVARIANT: this is one of the cell's handles.
    cell: NonNull<Cell>,
}

impl Pool {
    /// # Safety
    /// The caller has a handle of the cell, which this becomes.
    pub(super) unsafe fn of(cell: NonNull<Cell>) -> Self {
        Self { cell }
    }

    fn cell(&self) -> &Cell {
        // SAFETY: this handle keeps the cell.
        unsafe { self.cell.as_ref() }
    }

    /// A free slot. It holds whatever its last owner left.
    ///
    /// # Errors
    /// [`Error::NoSlots`](crate::Error::NoSlots) when all are taken.
    #[inline]
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn take(&self) -> Result<CpuBuf> {
        // SAFETY: `self` is a handle, and stays one until the slot is out.
        unsafe { Cell::take(self.cell, Site::here()) }.map(Buf::new)
    }

    /// How many bytes a slot has: what was asked for, rounded up to whole cache lines.
    #[must_use]
    pub fn slot_bytes(&self) -> usize {
        self.cell().slot_bytes
    }

    /// How many slots it has.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.cell().slots
    }

    /// How many slots are taken now.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.slots() - self.cell().state().free()
    }
}

impl Clone for Pool {
    /// # Panics
    /// Where there are 16,777,216 handles: a program that forgets clones in a loop.
    fn clone(&self) -> Self {
        // PANIC: `clone` cannot refuse, and a count that wraps would free memory under a device.
        assert!(self.cell().handles.add(), "too many handles of one pool");
        Self { cell: self.cell }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // SAFETY: this handle is counted, `drop` runs once, and uses nothing after it.
        unsafe { Cell::drop_handle(self.cell) }
    }
}

// SAFETY: a handle reads numbers and atomics of the cell; the region's memory is reached through
// buffers only. The last one may free the pool and the region on any thread: a backend is `Send`.
unsafe impl Send for Pool {}
// SAFETY: as for `Send`.
unsafe impl Sync for Pool {}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("slots", &self.slots()).field("slot_bytes", &self.slot_bytes()).field("taken", &self.taken()).finish()
    }
}
