#![allow(unsafe_code, reason = "registers are reached through another window")]
//! One slave port of the core inside the device's window.

use crate::hw::mmio::Mmio;

/// The registers of a window from byte `1` on.
pub(super) struct At<'d, D>(pub(super) &'d D, pub(super) usize);

// SAFETY: they are the device's registers, at other numbers.
unsafe impl<D: Mmio> Mmio for At<'_, D> {
    fn len_bytes(&self) -> usize {
        self.0.len_bytes().saturating_sub(self.1)
    }

    #[inline]
    fn read32(&self, offset: usize) -> u32 {
        self.0.read32(self.1.saturating_add(offset))
    }

    #[inline]
    unsafe fn write32(&self, offset: usize, value: u32) {
        // SAFETY: the caller's promise.
        unsafe { self.0.write32(self.1.saturating_add(offset), value) }
    }
}
