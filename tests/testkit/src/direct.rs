#![allow(
    unsafe_code,
    reason = "a backend's syncs are unsafe to call, and these tests call them without a region"
)]
//! A backend's syncs, called by hand.

use contigo::mem::SyncRange;
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

    /// `Backend::sync_all_for_device`.
    fn device_sync_all(&self, ranges: &[SyncRange]) -> Result<()> {
        // SAFETY: as in `device_sync`.
        unsafe { self.sync_all_for_device(ranges) }
    }

    /// `Backend::sync_all_for_cpu`.
    fn cpu_sync_all(&self, ranges: &[SyncRange]) -> Result<()> {
        // SAFETY: as in `device_sync`.
        unsafe { self.sync_all_for_cpu(ranges) }
    }
}

impl<B: Backend + ?Sized> DirectSync for B {}

/// A list of ranges that change hands in one direction.
pub fn sync_list(
    direction: Direction,
    ranges: impl IntoIterator<Item = Range<usize>>,
) -> Vec<SyncRange> {
    ranges.into_iter().map(|range| SyncRange { range, direction }).collect()
}
