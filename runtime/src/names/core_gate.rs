#![allow(unsafe_code, reason = "registers of a device, passed on, and a claim about wires")]
//! The gate before a core's master, opened beside the core's driver.

use super::{AnyDevice, Attach, OpenDevice};
use crate::{
    drivers::axi_gate::{AxiGate, regs},
    hw::{Mmio, Wait},
    job::{AnyDriver, Driver},
    mem::Port,
    types::{Bus, Error, Result},
};

/// A gate's registers: in its own device's window, or in its core's.
#[derive(Debug)]
pub struct GateWindow<'o> {
    device: AnyDevice<'o>,
    from: usize,
}

// SAFETY: 1. The registers are the device's. 2. They are the gate's alone, as `GateAt::before`'s
// caller promised.
unsafe impl Mmio for GateWindow<'_> {
    fn len_bytes(&self) -> usize {
        self.device.len_bytes().saturating_sub(self.from).min(regs::WINDOW_BYTES)
    }

    fn read32(&self, offset: usize) -> u32 {
        self.device.read32(self.from.saturating_add(offset))
    }

    unsafe fn write32(&self, offset: usize, value: u32) {
        // SAFETY: the caller's promise.
        unsafe { self.device.write32(self.from.saturating_add(offset), value) }
    }
}

/// By looking again and again: a gate has no interrupt.
impl Wait for GateWindow<'_> {
    crate::types::forward::forward!(|this| this.device => now_us, wait_at_most, looks_before_clock);
}

/// The gate's registers reach no memory.
const NO_MEMORY: Port = Port { name: "none", bus: Bus::Soc, offset: 0, addr_bits: 32, window: (0, u32::MAX as u64), coherent: false };

/// Which device has a gate's registers, and where in its window.
#[derive(Clone, Copy, Debug)]
pub struct GateAt<'o> {
    /// The gate's own device; `None`: the core's.
    pub device: Option<&'o OpenDevice>,
    /// Which window of that device, as [`Attach::window`].
    pub window: u8,
    /// Where the gate's registers begin, in bytes.
    pub offset: usize,
}

impl<'o> GateAt<'o> {
    /// `driver`, which has `core` attached by `how`, with the gate before it. Nothing is written
    /// yet: the engine stops the core first, by the gate.
    ///
    /// Where gate and core are in one window, the driver's stop program shuts the gate.
    ///
    /// # Errors
    /// - [`Error::RegisterWindow`], [`Error::WrongDevice`]: no gate is there.
    /// - [`Error::HasDriver`]: a driver has the gate's own device.
    /// - [`Error::Unsupported`]: `driver` has a gate, or shares its device (`channel`); or a device
    ///   behind an IOMMU has the gate in the core's window.
    /// - The errors of [`OpenDevice::attach`].
    ///
    /// # Safety
    /// As [`Gated::new`](crate::drivers::axi_gate::Gated::new). In the core's window nobody but
    /// this gate writes its registers.
    pub unsafe fn before(self, driver: AnyDriver<'o>, core: &'o OpenDevice, how: Attach) -> Result<AnyDriver<'o>> {
        let (from, gates) = (self.offset, Attach { window: self.window, interrupt: false });
        let device = match self.device {
            Some(own) => own.attach_through(Some(own.port().unwrap_or(NO_MEMORY)), gates)?,
            None => core.second(gates, *driver.port())?,
        };
        if !from.is_multiple_of(4) {
            return Err(Error::RegisterWindow { device: "axi_gate", need_bytes: from, have_bytes: device.len_bytes() });
        }
        // SAFETY: the caller's promise.
        let gate = unsafe { AxiGate::open(GateWindow { device, from })? };
        let in_window = self.device.is_none() && self.window == how.window;
        // SAFETY: the caller's promise.
        unsafe { driver.with_gate(gate, in_window.then_some(from)) }
    }
}
