//! A window whose registers read otherwise than the model says.

use super::*;

/// A device whose registers do not all say what the model says.
pub(super) struct Bent<D, F> {
    pub(super) inner: D,
    pub(super) len_bytes: usize,
    pub(super) bend: F,
}

impl<D: Device, F: Fn(usize, u32) -> u32> Bent<D, F> {
    pub(super) fn new(inner: D, bend: F) -> Self {
        Self { inner, len_bytes: 0x1000, bend }
    }
}

// SAFETY: the registers belong to `inner`. A test that bends their answers about being finished
// gives no memory back.
unsafe impl<D: Device, F: Fn(usize, u32) -> u32> Mmio for Bent<D, F> {
    forward!(|this| this.inner => write32);
    fn len_bytes(&self) -> usize {
        self.len_bytes
    }
    fn read32(&self, offset: usize) -> u32 {
        (self.bend)(offset, self.inner.read32(offset))
    }
}

impl<D: Device, F> Wait for Bent<D, F> {
    forward!(|this| this.inner => now_us, wait_at_most);
}

// SAFETY: `inner`'s.
unsafe impl<D: Device, F: Fn(usize, u32) -> u32> Device for Bent<D, F> {
    forward!(|this| this.inner => port, simulated);
}
