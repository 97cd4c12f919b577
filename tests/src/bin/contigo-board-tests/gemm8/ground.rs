//! The memory of a test: a block of 2 MiB that is in one piece, by what this kernel has.

use crate::machine::heaps;
use contigo::{DmaHeap, GuardMemory, HugeTlb, Result, names::OpenDevice};

/// A huge page, which is one run, and as much of a heap.
pub(super) const BYTES: usize = HugeTlb::PAGE_BYTES;

/// Memory for the device.
pub(super) enum Ground {
    /// Without the module, on a kernel without heaps.
    Huge(HugeTlb),
    /// Without the module: pagemap tells its address (before 6.9).
    Heap(DmaHeap),
    /// By the module: the device's own.
    Own(GuardMemory),
}

impl Ground {
    /// A block for the device `opened`.
    pub(super) fn of(opened: &OpenDevice) -> Result<Self> {
        match (opened.guard(), heaps().first()) {
            (Some(guard), _) => Ok(Self::Own(guard.allocate(BYTES)?)),
            (None, Some(heap)) => Ok(Self::Heap(DmaHeap::allocate(heap, BYTES)?)),
            (None, None) => Ok(Self::Huge(HugeTlb::new(BYTES)?)),
        }
    }
}
