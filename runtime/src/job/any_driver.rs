#![allow(unsafe_code, reason = "a driver of any type is put in its place, and passes its promises on")]
//! A driver of any type as one type.

use super::{Completion, Driver, Gate, Shut, StopProgram};
#[cfg(all(feature = "linux", target_os = "linux"))]
use crate::types::Error;
use crate::{
    mem::DevSlice,
    types::{Result, in_place::InPlace},
};
use core::{
    fmt,
    mem::{self, ManuallyDrop},
    time::Duration,
};

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
    /// Dropped where the core may be touched.
    driver: ManuallyDrop<InPlace<dyn Driver + Send + 'a, { AnyDriver::MAX_BYTES }>>,
    gate: Option<PlacedGate<'a>>,
    /// INVARIANT: dropped after the driver, which borrows from the core that it keeps.
    core: Option<KeepAlive<'a>>,
}

/// The gate before the core's master.
struct PlacedGate<'a> {
    gate: InPlace<dyn Gate + Send + 'a, { PlacedGate::MAX_BYTES }>,
    shut: Shut,
    /// Where its registers are in the driver's own window, if they are there.
    at: Option<usize>,
}

impl PlacedGate<'_> {
    /// A window of registers and its interrupt, of whatever kind.
    const MAX_BYTES: usize = 1024;
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
        let driver: InPlace<dyn Driver + Send + 'a, _> = unsafe { InPlace::new::<D>(driver, |place| place.cast::<D>()) };
        Self { driver: ManuallyDrop::new(driver), gate: None, core: None }
    }

    /// The same driver, whose core has `gate` before its master. `at` is where the gate's registers
    /// are in the driver's own window, if they are there.
    ///
    /// # Errors
    /// [`Error::Unsupported`]: it has a gate already.
    ///
    /// # Safety
    /// As [`Gated::new`](crate::drivers::axi_gate::Gated::new).
    #[cfg(all(feature = "linux", target_os = "linux"))]
    pub(crate) unsafe fn with_gate<G: Gate + Send + 'a>(mut self, gate: G, at: Option<usize>) -> Result<Self> {
        if self.gate.is_some() {
            return Err(Error::Unsupported { what: "the driver has a gate", fix: "join the core's masters before one gate" });
        }
        // SAFETY: it casts to `G`, and that becomes what a `G` is.
        let gate: InPlace<dyn Gate + Send + 'a, _> = unsafe { InPlace::new::<G>(gate, |place| place.cast::<G>()) };
        self.gate = Some(PlacedGate { gate, shut: Shut::NOT, at });
        Ok(self)
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

// SAFETY: every method is the driver's own, which stays in its place. With a gate they are those of
// `drivers::axi_gate::Gated`.
unsafe impl Driver for AnyDriver<'_> {
    crate::types::forward::forward!(|this| *this.driver.get() => name, port, simulated, addr_bits, operands, depth, in_order, check, arm_irq, ran_dry);
    unsafe fn submit(&mut self, slot: usize, operands: &[DevSlice], words: &[u32]) -> Result<()> {
        if let Some(placed) = &self.gate {
            placed.shut.refuse(placed.gate.get())?;
        }
        // SAFETY: the caller's promise.
        unsafe { self.driver.get_mut().submit(slot, operands, words) }
    }

    fn poll(&mut self, timeout: Duration) -> Result<Option<Completion>> {
        let driver = self.driver.get_mut();
        match &self.gate {
            None => driver.poll(timeout),
            Some(placed) => placed.shut.poll(placed.gate.get(), driver.depth(), || driver.poll(timeout)),
        }
    }

    fn stop(&mut self) -> Result<()> {
        let driver = self.driver.get_mut();
        match &mut self.gate {
            None => driver.stop(),
            Some(placed) => placed.shut.stop(placed.gate.get(), || driver.stop()),
        }
    }

    /// None of a driver that shares its device: the kernel runs one program for a device, and this
    /// driver's leaves the siblings at work. Nor of one whose gate is elsewhere.
    fn stop_program(&self) -> StopProgram {
        match &self.gate {
            _ if self.core.is_some() => StopProgram::default(),
            Some(placed) => placed.at.map(|at| placed.gate.get().program(at)).unwrap_or_default(),
            None => self.driver.get().stop_program(),
        }
    }
}

impl Drop for AnyDriver<'_> {
    fn drop(&mut self) {
        if self.gate.as_ref().is_none_or(|placed| placed.shut.lets_go(placed.gate.get())) {
            // SAFETY: once, and it is not used after it.
            unsafe { ManuallyDrop::drop(&mut self.driver) }
        } else {
            // The driver that is leaked borrows from it.
            mem::forget(self.core.take());
        }
    }
}

impl fmt::Debug for AnyDriver<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AnyDriver").field(&self.name()).finish()
    }
}
