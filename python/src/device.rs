#![allow(unsafe_code, reason = "the port and the rest of a device of which nothing but registers is read")]
//! A device, opened by its name: one opening for its registers and its memory.

use crate::{
    error::{raised, raised_as},
    mine::Mine,
    names,
    region::{Region, Wiring},
};
use contigo::{
    Bus, Error, Mmio, Port,
    linux::vfio::{Interrupt, Vfio, VfioDevice},
    names::{AnyDevice, Attach, DeviceName, Inventory, OpenDevice},
    same_process,
};
use pyo3::{exceptions::PyValueError, prelude::*};
use std::sync::{Arc, Mutex, PoisonError};

/// One opening, as long as somebody counts on it.
pub(crate) struct Opening(Arc<OpenDevice>);

impl Opening {
    pub(crate) fn of(name: &DeviceName) -> PyResult<Self> {
        let opened = name.open().map_err(|error| raised_as(error, format!("{name}: {}", Inventory::here().device_error(name, error))))?;
        Ok(Self(Arc::new(opened)))
    }

    /// Open until the process ends, as what is made of it is: one count is never given back.
    pub(crate) fn for_good(&self) -> &'static OpenDevice {
        Box::leak(Box::new(Arc::clone(&self.0)))
    }
}

/// A device, opened once, by its name: "uio:axi_dma@40400000", "guard:f8003000",
/// "pci:0000:01:00.0", "vfio:0000:01:00.0", "cuda:0", "sim:zdma"; `inventory()` lists those that
/// this machine has.
///
/// It is closed with its last handle. Once memory was opened from it, or a register was read, it
/// stays open until the process ends, as the memory does.
#[pyclass(frozen, module = "contigo")]
pub(crate) struct Device {
    name: DeviceName,
    opening: Mine<Opening>,
    /// Once a register was read.
    registers: Mine<Mutex<Option<AnyDevice<'static>>>>,
}

#[pymethods]
impl Device {
    #[new]
    fn new(name: &str) -> PyResult<Self> {
        same_process().map_err(raised)?;
        let name = names::device(name)?;
        Ok(Self { opening: Mine::new(Opening::of(&name)?), registers: Mine::new(Mutex::default()), name })
    }

    /// Memory for this device: its own ("vfio:0000:01:00.0"), a dma-heap's block, through its guard
    /// where that is what was opened, or memory that belongs to no device. `bytes` and `port` as
    /// `open_memory` has them; what the kernel knows of the device's way to memory goes before
    /// `port`.
    #[pyo3(signature = (name, bytes=None, *, port=None))]
    fn memory(&self, name: &str, bytes: Option<usize>, port: Option<Wiring>) -> PyResult<Region> {
        Region::open(name, Some(self.opening.get()?), bytes, port)
    }

    /// The register at `offset`, a multiple of 4 in bytes. The first read takes the device as a
    /// driver does: what is behind an IOMMU is reset, and a simulated one begins as after power-on.
    /// What the kernel cannot reset is read as it is, and may not master the bus.
    fn read32(&self, offset: usize) -> PyResult<u32> {
        let (opening, registers) = (self.opening.get()?, self.registers.get()?);
        let mut registers = registers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(vfio) = opening.0.vfio().filter(|vfio| !vfio.can_reset()) {
            return as_it_is(vfio, offset);
        }
        let device = match &mut *registers {
            Some(device) => device,
            none => none.insert(attached(opening.for_good()).map_err(raised)?),
        };
        word(device, offset)
    }

    /// Its name, as it was opened.
    #[getter]
    fn name(&self) -> String {
        self.name.to_string()
    }

    /// Where its first register is; None where the kernel does not say it.
    #[getter]
    fn address(&self) -> PyResult<Option<u64>> {
        Ok(self.opening.get()?.0.addr().map(|address| address.0))
    }

    fn __repr__(&self) -> String {
        format!("contigo.Device('{}')", self.name)
    }
}

/// The register at `offset`, where there is one.
fn word(registers: &impl Mmio, offset: usize) -> PyResult<u32> {
    let len_bytes = registers.len_bytes();
    if !offset.is_multiple_of(4) || offset >= len_bytes {
        let text = format!("no register is at {offset:#x}: they are at multiples of 4, below {len_bytes:#x}");
        return Err(PyValueError::new_err(text));
    }
    Ok(registers.read32(offset))
}

/// The same of a device that the kernel cannot reset, while it may not master the bus.
fn as_it_is(vfio: &Vfio, offset: usize) -> PyResult<u32> {
    let mut read = None;
    let look = |device: &mut VfioDevice<'_>| {
        read = Some(word(device, offset));
        Err(Error::Busy)
    };
    // SAFETY: `look` never returns Ok, so the device never may master the bus.
    let refused = unsafe { VfioDevice::open_unreset(vfio, READ_ONLY.window, Interrupt::Polled, look) }.map(drop);
    read.unwrap_or_else(|| Err(raised(refused.err().unwrap_or(Error::Busy))))
}

const READ_ONLY: Attach = Attach { window: 0, interrupt: false };

/// Its registers, to read them.
fn attached(device: &'static OpenDevice) -> contigo::Result<AnyDevice<'static>> {
    const NOBODY: Port = Port { name: "unused", bus: Bus::Soc, offset: 0, addr_bits: 32, window: (0, u32::MAX as u64), coherent: false };
    if device.port().is_some() {
        return device.attach(READ_ONLY);
    }
    // SAFETY: the promise is about the device's accesses to memory through the port of what is
    // returned. `Device::read32` alone uses that: it reads registers, starts nothing, and no driver
    // asks it for its port.
    unsafe { device.attach_wired(NOBODY, READ_ONLY) }
}
