#![allow(unsafe_code, reason = "registers and a port are promises, which the core's device keeps")]
//! One channel of a core, as a device for its driver.

use super::core::Core;
use crate::{
    hw::{CoreLock, Device, Mmio, Seen, Siblings, Wait},
    mem::Port,
    types::{Result, platform::forward_as_fd},
};
use core::{fmt, ops::Range};

/// One channel of a [`Core`]: registers, interrupt and port, for one driver, in any thread. It has a
/// handle to the core. The channel is given back when it is dropped; one that is forgotten stays
/// claimed, and keeps the device open.
pub struct CoreChannel<D: Device> {
    core: Core<D>,
    index: usize,
    window: Range<usize>,
    seen: Seen,
}

impl<D: Device> CoreChannel<D> {
    /// `core` has marked `index` as claimed, and found `window` inside the device's.
    pub(super) fn new(core: Core<D>, index: usize, window: Range<usize>) -> Self {
        let seen = core.siblings().baton.seen();
        Self { core, index, window, seen }
    }

    /// Which channel.
    #[must_use]
    pub const fn index(&self) -> usize {
        self.index
    }

    /// The core, for what all its channels share.
    #[must_use]
    pub const fn core(&self) -> &Core<D> {
        &self.core
    }

    /// As [`Core::lock`].
    ///
    /// # Errors
    /// As [`Core::lock`].
    pub fn lock(&self) -> Result<CoreLock<'_>> {
        self.core.lock()
    }
}

impl<D: Device> Drop for CoreChannel<D> {
    fn drop(&mut self) {
        self.core.siblings().give_back(self.index);
    }
}

// SAFETY: 1. The registers belong to the device. 2. `Core` gives each channel to one value, and
// `Core::channel`'s caller promised that drivers of channels write by its rules what they share.
unsafe impl<D: Device> Mmio for CoreChannel<D> {
    fn len_bytes(&self) -> usize {
        self.window.len()
    }

    #[inline]
    fn read32(&self, offset: usize) -> u32 {
        match offset.checked_add(4) {
            Some(end) if end <= self.window.len() => {
                self.core.device().read32(self.window.start + offset)
            }
            _ => u32::MAX,
        }
    }

    #[inline]
    unsafe fn write32(&self, offset: usize, value: u32) {
        if offset.checked_add(4).is_some_and(|end| end <= self.window.len()) {
            // SAFETY: the caller's promise.
            unsafe { self.core.device().write32(self.window.start + offset, value) }
        }
    }
}

impl<D: Device> Wait for CoreChannel<D> {
    fn now_us(&self) -> u64 {
        self.core.device().now_us()
    }

    /// In the device's interrupt, or until the sibling that is there takes it.
    fn wait_at_most(&self, timeout_us: u32) -> Result<()> {
        self.core
            .siblings()
            .baton
            .wait(&self.seen, timeout_us, || self.core.device().wait_at_most(timeout_us))
    }

    /// The device's, and with it every channel's: see [`Core`], "For callers".
    fn arm_irq(&self) -> Result<Option<i32>> {
        let armed = self.core.device().arm_irq();
        self.core.siblings().baton.wake();
        armed
    }

    fn looks_before_clock(&self) -> u32 {
        self.core.device().looks_before_clock()
    }
}

// SAFETY: every channel reaches memory through the device's port.
unsafe impl<D: Device> Device for CoreChannel<D> {
    fn port(&self) -> &Port {
        self.core.device().port()
    }

    fn simulated(&self) -> Option<&dyn crate::mem::SimulatedDevice> {
        self.core.device().simulated()
    }

    fn siblings(&self) -> Option<&Siblings> {
        Some(self.core.siblings())
    }
}

forward_as_fd!({D: Device} CoreChannel<D>, core.shared.device: D);

impl<D: Device> fmt::Debug for CoreChannel<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CoreChannel")
            .field("index", &self.index)
            .field("window", &self.window)
            .finish_non_exhaustive()
    }
}
