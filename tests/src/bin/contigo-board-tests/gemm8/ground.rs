//! The memory of a test: a block of 2 MiB that is in one piece, by what this kernel has.

use crate::machine::heaps;
use contigo::{
    Region, Result,
    linux::memory::{DmaHeap, HugeTlb},
    names::OpenDevice,
};

/// A huge page, which is one run, and as much of a heap.
pub(super) const BYTES: usize = HugeTlb::PAGE_BYTES;

/// A block for the device `opened`: by the module its own, and without it one of a heap, whose
/// address pagemap tells (before 6.9), or a huge page on a kernel without heaps.
pub(super) fn ground(opened: &OpenDevice) -> Result<Region> {
    match (opened.guard(), heaps().first()) {
        (Some(guard), _) => Ok(Region::new(guard.allocate(BYTES)?)?),
        (None, Some(heap)) => Ok(Region::new(DmaHeap::allocate(heap, BYTES)?)?),
        (None, None) => Ok(Region::new(HugeTlb::new(BYTES)?)?),
    }
}
