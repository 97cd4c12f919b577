#![allow(unsafe_code, reason = "marks are a promise between drivers")]
//! What the drivers of one device's channels share.

use super::shared_interrupt::SharedInterrupt;
use crate::types::{Error, Result, barrier, lock};
use core::fmt;
use core::sync::atomic::{AtomicU32, Ordering};
use spin::{Mutex, MutexGuard};

/// The most channels of a core.
const CHANNELS_MAX: usize = 32;

/// What the drivers of one device's channels share beside its registers: a lock, the count of its
/// resets, and its one interrupt. [`Device::siblings`](crate::Device::siblings) gives it to the
/// driver of a [`CoreChannel`](crate::job::CoreChannel).
pub struct Siblings {
    block: Mutex<()>,
    /// Bit N: channel N is claimed.
    claimed: AtomicU32,
    epoch: AtomicU32,
    /// A bit for each channel, or whatever else the drivers of one kind agree on.
    marks: AtomicU32,
    pub(crate) shared_interrupt: SharedInterrupt,
}

/// The lock on the registers that channels share. Dropping it releases the lock.
#[derive(Debug)]
#[must_use = "the lock is held as long as this lives"]
pub struct CoreLock<'s>(#[allow(dead_code, reason = "held for its drop")] MutexGuard<'s, ()>);

impl Siblings {
    pub(crate) fn new() -> Self {
        let [claimed, epoch, marks] = [const { AtomicU32::new(0) }; 3];
        Self {
            block: Mutex::new(()),
            claimed,
            epoch,
            marks,
            shared_interrupt: SharedInterrupt::new(),
        }
    }

    /// Locks the shared registers against the other channels' drivers, and against a reset.
    ///
    /// # Errors
    /// [`Error::Contended`]: another thread has held it for a second.
    pub fn lock(&self) -> Result<CoreLock<'_>> {
        lock::acquire(&self.block).map(CoreLock)
    }

    /// As [`reset_all`](super::reset_all).
    ///
    /// # Errors
    /// [`Error::Contended`], or what `act` returns.
    pub(crate) fn reset<R>(&self, act: impl FnOnce() -> Result<R>) -> Result<R> {
        let _locked = self.lock()?;
        // The epoch changes before and after the reset. So a reset ends a job that is polled while
        // the registers change, and one whose doorbell came before the lock was taken. A driver
        // compares the epoch once more under the lock.
        self.epoch.fetch_add(1, Ordering::AcqRel);
        barrier::before_doorbell();
        // Dropped before the lock in any case, so that siblings learn of a reset that panicked too.
        let _ends = ResetEnds(self);
        act()
    }

    /// A number that each reset changes, loaded after the registers that the caller read before.
    pub(crate) fn epoch(&self) -> u32 {
        barrier::after_completion();
        self.epoch.load(Ordering::Acquire)
    }

    /// A word for the drivers' own use, 0 at first.
    ///
    /// # Safety
    /// The caller is a driver of one of the channels, and changes only that channel's part.
    #[doc(hidden)]
    #[must_use]
    pub const unsafe fn marks(&self) -> &AtomicU32 {
        &self.marks
    }

    fn bit(index: usize) -> Option<u32> {
        u32::try_from(index).ok().and_then(|index| 1_u32.checked_shl(index))
    }

    pub(crate) fn claim(&self, index: usize) -> Result<()> {
        let (value, max) = (index as u64, CHANNELS_MAX as u64 - 1);
        let bit = Self::bit(index).ok_or(Error::Argument {
            name: "channel",
            value,
            min: 0,
            max,
            multiple_of: 1,
        })?;
        if self.claimed.fetch_or(bit, Ordering::Acquire) & bit != 0 {
            return Err(Error::HasDriver);
        }
        Ok(())
    }

    pub(crate) fn give_back(&self, index: usize) {
        self.claimed.fetch_and(!Self::bit(index).unwrap_or(0), Ordering::Release);
    }
}

/// Ends a reset when it is dropped.
struct ResetEnds<'s>(&'s Siblings);

impl Drop for ResetEnds<'_> {
    fn drop(&mut self) {
        barrier::before_doorbell();
        self.0.epoch.fetch_add(1, Ordering::AcqRel);
        self.0.shared_interrupt.wake();
    }
}

impl fmt::Debug for Siblings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Siblings")
            .field("claimed", &self.claimed.load(Ordering::Relaxed))
            .field("epoch", &self.epoch.load(Ordering::Relaxed))
            .finish_non_exhaustive()
    }
}
