#![allow(unsafe_code, reason = "a handle is a pointer that counts")]
//! Equal slots of a region, for any number of threads.

use super::pool_state::{self, PoolState};
use crate::mem::CpuBuf;
use crate::trace::Site;
use crate::types::Result;
use core::fmt;
use core::ptr::NonNull;

/// A handle to equal slots of a [`Region`](super::Region). A take and a drop are one atomic
/// operation each, with no system call and no heap. Clones are the same pool.
///
/// The pool's memory goes back to the region when its last handle is gone and every slot came back.
/// The drop of the last of them unmaps the pool's control block, which is a system call. A buffer
/// may outlive all handles:
///
/// ```
/// use contigo::{Error, Region, sim::SimBoard};
/// let board = SimBoard::new(1);
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
    /// INVARIANT: this is one of the pool's handles.
    state: NonNull<PoolState>,
}

impl Pool {
    /// # Safety
    /// The caller has a handle of the pool, which this becomes.
    pub(super) unsafe fn of(state: NonNull<PoolState>) -> Self {
        Self { state }
    }

    fn state(&self) -> &PoolState {
        // SAFETY: this handle keeps the pool's control block.
        unsafe { self.state.as_ref() }
    }

    /// How many bytes [`Region::pool_with_memory`](super::Region::pool_with_memory) needs for a
    /// pool of `slots`, wherever they begin. It can be computed at compile time, for a static.
    ///
    /// # Errors
    /// [`Error::Argument`](crate::Error::Argument): no slots, or more than 1,048,576.
    pub const fn control_bytes(slots: usize) -> Result<usize> {
        pool_state::pool_control_bytes(slots)
    }

    /// Takes a free slot. It holds whatever its last owner left.
    ///
    /// # Errors
    /// [`Error::NoSlots`](crate::Error::NoSlots) when all are taken.
    #[inline]
    #[cfg_attr(feature = "audit", track_caller)]
    pub fn take(&self) -> Result<CpuBuf> {
        // SAFETY: `self` is a handle, and stays one until the slot is out.
        unsafe { PoolState::take(self.state, Site::here()) }.map(CpuBuf::new)
    }

    /// How many bytes a slot has: what was asked for, rounded up to whole cache lines.
    #[must_use]
    pub fn slot_bytes(&self) -> usize {
        self.state().slot_bytes
    }

    /// How many slots it has.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.state().slots
    }

    /// How many slots are taken now.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.slots() - self.state().state().free()
    }
}

impl Clone for Pool {
    /// # Panics
    /// If there are 16,777,216 handles: in a program that forgets clones
    /// in a loop.
    fn clone(&self) -> Self {
        // PANIC: `clone` cannot refuse, and a count that wraps would free memory under a device.
        assert!(self.state().hot.handles.add(), "too many handles of one pool");
        Self { state: self.state }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // SAFETY: this handle is counted, `drop` runs once, and uses nothing after it.
        unsafe { PoolState::drop_handle(self.state) }
    }
}

// SAFETY: a handle reads numbers and atomics of the pool's control block; the region's memory is
// reached through buffers only. The last one may free the pool and the region on any thread: a
// backend is `Send`.
unsafe impl Send for Pool {}
// SAFETY: as for `Send`.
unsafe impl Sync for Pool {}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("slots", &self.slots())
            .field("slot_bytes", &self.slot_bytes())
            .field("taken", &self.taken())
            .finish()
    }
}
