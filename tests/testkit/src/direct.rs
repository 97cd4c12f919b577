#![allow(
    unsafe_code,
    reason = "a backend's syncs are unsafe to call, and these tests call them without a region"
)]
//! A backend's syncs, called by hand.

use contigo::{Backend, Direction, Result};
use std::ops::Range;

/// For tests of one backend alone. There is no region over it, so there are no views.
pub trait DirectSync: Backend {
    /// `Backend::sync_for_device`.
    fn device_sync(&self, range: Range<usize>, direction: Direction) -> Result<()> {
        // SAFETY: only a region makes views, and a backend that lies in a region cannot be reached.
        unsafe { self.sync_for_device(range, direction) }
    }

    /// `Backend::sync_for_cpu`.
    fn cpu_sync(&self, range: Range<usize>, direction: Direction) -> Result<()> {
        // SAFETY: as in `device_sync`.
        unsafe { self.sync_for_cpu(range, direction) }
    }
}

impl<B: Backend + ?Sized> DirectSync for B {}
