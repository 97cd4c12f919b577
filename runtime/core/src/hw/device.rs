#![allow(
    unsafe_code,
    reason = "how a device is wired is a fact about the board, which a program can only claim"
)]
//! One device as a program holds it: its registers, its interrupt, and the port that its bus master
//! is wired to.

use crate::hw::mmio::Mmio;
use crate::hw::siblings::Siblings;
use crate::hw::wait::Wait;
use crate::mem::Port;
use crate::types::Result;
use crate::types::forward::forward;
use crate::types::platform::forward_as_fd;

/// One device: registers ([`Mmio`]), waiting ([`Wait`]), and the port that its bus master reaches
/// memory through. A driver owns one.
///
/// A simulated device knows its port. The port of a real device is a fact of the block design that
/// no register tells: a program claims it with [`Wired`].
///
/// # Safety
/// Callers owe nothing.
///
/// # Implementation safety
/// Every address that this device puts on its bus goes through [`port`](Self::port). The port's
/// offset, window and coherency are true of this device, and `port` answers the same for ever.
pub unsafe trait Device: Mmio + Wait {
    /// The port that the device's bus master is wired to.
    fn port(&self) -> &Port;

    /// What this channel's driver shares with the drivers of the device's other channels. `None`,
    /// the default: one driver has the device to itself.
    fn siblings(&self) -> Option<&Siblings> {
        None
    }

    /// A number that changes when a sibling resets the device ([`reset_all`]), which ends all jobs.
    /// Read it after registers: if it has changed, their values cannot be trusted. It is 0 if one
    /// driver has the device to itself.
    fn reset_epoch(&self) -> u32 {
        self.siblings().map_or(0, Siblings::epoch)
    }

    /// This device, if it is simulated: its board counts the accesses to memory that was not handed
    /// over ([`WrongAccesses`](crate::mem::WrongAccesses)). `None`, the default: it is real, or it
    /// does not pass on the device below it, and is counted with all of the board.
    fn simulated(&self) -> Option<&dyn crate::mem::SimulatedDevice> {
        None
    }
}

/// Runs `act` while no sibling of this channel's driver does so, and none resets the device.
///
/// # Errors
/// [`Error::Contended`](crate::Error::Contended), or what `act` returns.
#[inline]
pub fn locked<R>(device: &impl Device, act: impl FnOnce() -> Result<R>) -> Result<R> {
    let _lock = device.siblings().map(Siblings::lock).transpose()?;
    act()
}

/// Runs `act`, which ends all drivers' jobs; if the device has siblings, under their lock. Drivers
/// that have jobs in flight see the [epoch](Device::reset_epoch) change before `act` begins, and
/// also if it fails; drivers that sleep are woken. The epoch says that a reset was tried: `act` may
/// have failed or done nothing, so a driver's `stop` must stop its channel all the same.
///
/// # Errors
/// As [`locked`].
pub fn reset_all<R>(device: &impl Device, act: impl FnOnce() -> Result<R>) -> Result<R> {
    match device.siblings() {
        Some(siblings) => siblings.reset(act),
        None => act(),
    }
}

/// A real device: a register window and an interrupt from the kernel, and a port that the program
/// claims. `Uio::wired` and `PciFunction::wired` (feature `linux`) make one of a device that the
/// kernel gives to user space. It is `AsFd` if its interrupt is.
///
/// ```
/// use contigo::{Bus, Device, Error, Mmio, Port, Wait, drivers::zdma::Zdma, hw::Wired};
/// /// UG1085, "I/O Coherency": not coherent, and never; 40 bits, no offset.
/// const GDMA: Port = Port { name: "gdma", bus: Bus::Soc, offset: 0, addr_bits: 40, window: (0, (1 << 40) - 1), coherent: false };
///
/// /// # Safety
/// /// `window` and `irq` are a channel of GDMA, and no other code drives it.
/// unsafe fn open(window: impl Mmio, irq: impl Wait) -> Result<Zdma<impl Device>, Error> {
///     // SAFETY: GDMA's master goes past the CCI and no IOMMU is on.
///     let device = unsafe { Wired::new(window, irq, GDMA) };
///     // SAFETY: the caller's promise.
///     unsafe { Zdma::simple(device) }
/// }
/// ```
#[derive(Debug)]
pub struct Wired<W, I> {
    window: W,
    irq: I,
    port: Port,
}

impl<W: Mmio, I: Wait> Wired<W, I> {
    /// # Safety
    /// The device behind `window` reaches memory through `port` and no other way: the port's
    /// offset, window and coherency are those of the hardware as it is configured now. No IOMMU and
    /// no `dma-ranges` translates its addresses, unless all memory given to its queue has a
    /// [`BaseAddr::Dev`](crate::types::BaseAddr::Dev) made for it.
    #[must_use]
    pub const unsafe fn new(window: W, irq: I, port: Port) -> Self {
        Self { window, irq, port }
    }
}

// SAFETY: the window implements `Mmio`, and every access goes to it unchanged.
unsafe impl<W: Mmio, I> Mmio for Wired<W, I> {
    forward!(|this| this.window => len_bytes, read32, write32);
}

impl<W, I: Wait> Wait for Wired<W, I> {
    forward!(|this| this.irq => now_us, wait_at_most, arm_irq, looks_before_clock);
}

// SAFETY: the caller of `new` guarantees it.
unsafe impl<W: Mmio, I: Wait> Device for Wired<W, I> {
    fn port(&self) -> &Port {
        &self.port
    }
}

forward_as_fd!({W, I} Wired<W, I>, irq: I);
