#![allow(unsafe_code, reason = "registers of a device, passed on, and a claim about wires")]
//! The gate before a core's master, opened beside the core's driver.

use super::any_device::AnyDevice;
use super::attachment::Attach;
use super::opened::OpenDevice;
use contigo_core::hw::{Mmio, Wait};
use contigo_core::job::AnyDriver;
use contigo_core::mem::Port;
use contigo_core::types::{Bus, Error, Result};
use contigo_drivers::axi_gate::{AxiGate, Gated, WINDOW_BYTES};

/// A gate's registers: in its own device's window, or in its core's.
#[derive(Debug)]
pub(super) struct GateWindow {
    device: AnyDevice,
    from: usize,
}

// SAFETY: 1. The registers are the device's. 2. They are the gate's alone, as `Taken::behind`'s
// caller promised.
unsafe impl Mmio for GateWindow {
    fn len_bytes(&self) -> usize {
        self.device.len_bytes().saturating_sub(self.from).min(WINDOW_BYTES)
    }

    fn read32(&self, offset: usize) -> u32 {
        self.device.read32(self.from.saturating_add(offset))
    }

    unsafe fn write32(&self, offset: usize, value: u32) {
        // SAFETY: the caller's promise.
        unsafe { self.device.write32(self.from.saturating_add(offset), value) }
    }
}

/// Polls: a gate has no interrupt.
impl Wait for GateWindow {
    contigo_core::forward!(|this| this.device => now_us, wait_at_most, looks_before_clock);
}

/// The gate's registers reach no memory.
const NO_MEMORY: Port = Port {
    name: "none",
    bus: Bus::Soc,
    offset: 0,
    addr_bits: 32,
    window: (0, u32::MAX as u64),
    coherent: false,
};

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

/// A gate that was opened before its core's driver.
pub(super) struct OpenGate {
    gate: AxiGate<GateWindow>,
    /// Its offset in the driver's window, if it is there.
    at: Option<usize>,
}

impl OpenGate {
    /// Opens the gate of `core`, which is attached by `how`, behind `port`.
    ///
    /// # Safety
    /// As [`Taken::behind`](super::Taken::behind).
    pub(super) unsafe fn open(
        at: GateAt<'_>,
        core: &OpenDevice,
        how: Attach,
        port: Port,
    ) -> Result<Self> {
        let (from, gates) = (at.offset, Attach { window: at.window, interrupt: false });
        let device = match at.device {
            Some(own) => own.attach_through(Some(own.port().unwrap_or(NO_MEMORY)), gates)?,
            None => core.second(gates, port)?,
        };
        if !from.is_multiple_of(4) {
            return Err(Error::RegisterWindow {
                device: "axi_gate",
                need_bytes: from,
                have_bytes: device.len_bytes(),
            });
        }
        // SAFETY: the caller's promise.
        let gate = unsafe { AxiGate::open(GateWindow { device, from })? };
        Ok(Self { gate, at: (at.device.is_none() && at.window == how.window).then_some(from) })
    }

    /// # Safety
    /// As [`Taken::behind`](super::Taken::behind), of this driver.
    pub(super) unsafe fn before(self, driver: AnyDriver) -> Result<AnyDriver> {
        // SAFETY: the caller's promise; `open` found a gate there.
        let gated = unsafe { Gated::new(driver, self.gate) };
        AnyDriver::new(match self.at {
            // SAFETY: `open` found it at this offset of the driver's window.
            Some(offset) => unsafe { gated.in_window(offset) },
            None => gated,
        })
    }
}
