#![allow(unsafe_code, reason = "a driver of any type is put in its place, and passes its promises on")]
//! A driver of any type as one type.

use super::{Driver, StopProgram};
use crate::types::in_place::InPlace;
#[cfg(all(feature = "linux", target_os = "linux"))]
use crate::types::{Error, Result};
use core::fmt;

/// **A driver of any type, which it owns**, in a place of fixed size: so that C, Python and the
/// tool have one type for all drivers, with no heap.
///
/// ```
/// use contigo::{AnyDriver, Driver, Queue, drivers::zdma::{SimZdma, Zdma}, sim::SimBoard};
/// let board = SimBoard::new(1);
/// let channel = SimZdma::new(&board, board.port());
/// let driver = AnyDriver::new(Zdma::simple_simulated(channel.window()?)?);
/// assert_eq!((driver.name(), driver.operands().len()), ("zdma", 2));
/// let queue: Queue<'_, _, 4, 2> = Queue::new(driver)?;
/// # let _ = queue;
/// # Ok::<(), contigo::Error>(())
/// ```
pub struct AnyDriver<'a> {
    driver: InPlace<dyn Driver + Send + 'a, { AnyDriver::MAX_BYTES }>,
    /// INVARIANT: dropped after the driver, which borrows from the core that it keeps.
    core: Option<KeepAlive<'a>>,
}

/// A shared core that counts its drivers.
pub(crate) trait DriverCount: Sync {
    /// One driver less.
    fn one_less(&self);
}

/// Keeps a shared core for one driver, until it is dropped.
pub(crate) struct KeepAlive<'a>(&'a dyn DriverCount);

impl<'a> KeepAlive<'a> {
    /// `core` has counted one driver more.
    #[cfg(all(feature = "linux", target_os = "linux"))]
    pub(crate) const fn new(core: &'a dyn DriverCount) -> Self {
        Self(core)
    }
}

impl Drop for KeepAlive<'_> {
    fn drop(&mut self) {
        self.0.one_less();
    }
}

impl<'a> AnyDriver<'a> {
    /// The largest driver: that of an HLS kernel holds the map of 16 pointers and 16 scalars.
    pub const MAX_BYTES: usize = 4096;

    /// `driver`, in a fixed place. A driver that is too large, or aligned to more than 16 bytes, is
    /// refused by the compiler.
    #[must_use]
    pub fn new<D: Driver + Send + 'a>(driver: D) -> Self {
        // SAFETY: it casts to `D`, and that becomes what a `D` is.
        Self { driver: unsafe { InPlace::new::<D>(driver, |place| place.cast::<D>()) }, core: None }
    }

    /// The same driver, which keeps `core` until its end. It is one of several on one device.
    ///
    /// # Errors
    /// [`Error::Unsupported`]: it keeps a core already, and borrows from that one. The second in its
    /// place would let go of the first.
    #[cfg(all(feature = "linux", target_os = "linux"))]
    pub(crate) fn keeping(mut self, core: KeepAlive<'a>) -> Result<Self> {
        const FIX: &str = "open the device that has the channel";
        if self.core.is_some() {
            // The driver first: it borrows from the new core too.
            drop(self);
            drop(core);
            return Err(Error::Unsupported { what: "the core opened a channel of another device", fix: FIX });
        }
        self.core = Some(core);
        Ok(self)
    }
}

// SAFETY: every method is the driver's own, which stays in its place.
unsafe impl Driver for AnyDriver<'_> {
    crate::types::forward::forward!(|this| *this.driver.get() => name, port, addr_bits, operands, depth, in_order, check, arm_irq, ran_dry);
    crate::types::forward::forward!(|this| *this.driver.get_mut() => submit, poll, stop);

    /// None of a driver that shares its device: the kernel runs one program for a device, and this
    /// driver's leaves the siblings at work.
    fn stop_program(&self) -> StopProgram {
        if self.core.is_some() { StopProgram::default() } else { self.driver.get().stop_program() }
    }
}

impl fmt::Debug for AnyDriver<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AnyDriver").field(&self.name()).finish()
    }
}
