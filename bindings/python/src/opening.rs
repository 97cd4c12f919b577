#![allow(
    unsafe_code,
    reason = "ports and stops are the program's to promise, and Device's documentation asks for it"
)]
//! An opened device: its registers, its ports, its owner, its gate, and the stop that is left with
//! the kernel.

use crate::error::{Refusal, raised, raised_as};
use crate::lock::{Lock, Plain};
use crate::memory::Wiring;
use crate::shared::limit;
use contigo::job::{StopProgram, StopStep};
use contigo::linux::dev_node::DevNode;
use contigo::linux::vfio::{Interrupt, Vfio, VfioDevice};
use contigo::names::{AnyDevice, AnyModule, Attach, DeviceName, GateAt, Inventory, OpenDevice};
use contigo::{Bus, Error, Mmio, Port};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// An image, and its code.
type Loaded = (Box<[u8]>, Arc<AnyModule>);

/// One opening. What is made of it has a handle to the device, too.
pub(crate) struct Opening {
    pub(crate) device: OpenDevice,
    /// A GPU's code by its image: the same is loaded once.
    modules: Lock<Vec<Loaded>>,
    /// The stop that the kernel has is a driver's, and not the program's own.
    drivers_stop: AtomicBool,
}

impl Plain for Opening {}

impl Opening {
    pub(crate) fn of(name: &DeviceName) -> Result<Self, Refusal> {
        let opened = name.open().map_err(|error| {
            raised_as(error, format!("{name}: {}", Inventory::here().device_error(name, error)))
        })?;
        Ok(Self::new(opened))
    }

    pub(crate) fn new(device: OpenDevice) -> Self {
        let (modules, drivers_stop) = (Lock::new(Vec::new()), AtomicBool::new(false));
        Self { device, modules, drivers_stop }
    }

    /// The code of `image`, which `load` loads where the device has not got it yet.
    pub(crate) fn module(
        &self,
        image: &[u8],
        load: impl FnOnce() -> Result<AnyModule, Refusal> + Send,
    ) -> Result<Arc<AnyModule>, Refusal> {
        self.modules.with(|modules| {
            if let Some((_, module)) = modules.iter().find(|(known, _)| **known == *image) {
                return Ok(module.clone());
            }
            let module = Arc::new(load()?);
            modules.push((image.into(), module.clone()));
            Ok(module)
        })
    }

    /// The device, for one owner at a time, behind `port` where no kernel says it.
    pub(crate) fn attached(&self, port: Option<Wiring>, how: Attach) -> contigo::Result<AnyDevice> {
        const UNUSED: Port = Port {
            name: "unused",
            bus: Bus::Soc,
            offset: 0,
            addr_bits: 32,
            window: (0, u32::MAX as u64),
            coherent: false,
        };
        let device = &self.device;
        match port {
            // SAFETY: the program named the port, and its documentation says that it promises it.
            Some(Wiring(port)) => unsafe { device.attach_wired(port, how) },
            None if device.port().is_some() => device.attach(how),
            // SAFETY: the promise is about the device's accesses to memory through the port of what
            // is returned. Registers alone are used of it: `Device::driver`, which would use the
            // port, asks for one.
            None => unsafe { device.attach_wired(UNUSED, how) },
        }
    }

    /// Leaves with the kernel what stops a contigo device, a driver's program or the caller's own.
    /// A driver that has no such stop removes the last driver's, and leaves the caller's.
    ///
    /// # Safety
    /// As [`DevNode::arm`].
    pub(crate) unsafe fn arm(
        &self,
        py: Python<'_>,
        dev_node: &DevNode,
        program: &StopProgram,
        window: u32,
        by_driver: bool,
    ) -> Result<(), Refusal> {
        if by_driver && program.steps().is_empty() && !self.drivers_stop.load(Ordering::Acquire) {
            return Ok(());
        }
        // SAFETY: the caller's promise.
        py.detach(|| unsafe { dev_node.arm(program, window) }).map_err(raised)?;
        self.drivers_stop.store(by_driver, Ordering::Release);
        Ok(())
    }
}

/// The error. Where a driver has the device, it also says how to get it back.
pub(crate) fn held(error: Error) -> Refusal {
    match error {
        Error::HasDriver => raised_as(error, format!("{error} (close() gives it back)")),
        other => raised(other),
    }
}

/// A step of `Device.leave_stop`.
pub(crate) fn stop_step(step: &Bound<'_, PyTuple>) -> PyResult<StopStep> {
    const FORM: &str = "a step is (\"write\", offset, value[, mask]), (\"until\" or \"while\", \
                        offset, value, mask, seconds), or (\"else\",)";
    let wrong = || PyValueError::new_err(format!("{step}: {FORM}"));
    let kind: String = step.get_item(0).and_then(|kind| kind.extract()).map_err(|_| wrong())?;
    let word =
        |at: usize| step.get_item(at).and_then(|word| word.extract::<u32>()).map_err(|_| wrong());
    let offset = || word(1).map(|offset| offset as usize);
    let timeout_us = || -> PyResult<u32> {
        let timeout =
            limit(step.get_item(4).and_then(|seconds| seconds.extract()).map_err(|_| wrong())?)?;
        Ok(contigo::types::timeout_us(timeout).map_err(raised)?)
    };
    match (kind.as_str(), step.len()) {
        ("write", 3) => Ok(StopStep::write(offset()?, u32::MAX, word(2)?)),
        ("write", 4) => Ok(StopStep::write(offset()?, word(3)?, word(2)?)),
        ("until", 5) => Ok(StopStep::poll_until(offset()?, word(3)?, word(2)?, timeout_us()?)),
        ("while", 5) => Ok(StopStep::poll_while(offset()?, word(3)?, word(2)?, timeout_us()?)),
        ("else", 1) => Ok(StopStep::Else),
        _ => Err(wrong()),
    }
}

/// Where a gate's registers are.
pub(crate) enum GateIn {
    /// In the core's window, from there on.
    Window(usize),
    /// In a device of its own.
    Own(Arc<Opening>, u8),
}

impl GateIn {
    /// The gate of a core that is driven by window `window`.
    pub(crate) fn at(&self, window: u8) -> GateAt<'_> {
        match self {
            &Self::Window(offset) => GateAt { device: None, window, offset },
            Self::Own(opening, window) => {
                GateAt { device: Some(&opening.device), window: *window, offset: 0 }
            }
        }
    }
}

/// The register at `offset`, where there is one.
pub(crate) fn word(registers: &impl Mmio, offset: usize) -> Result<u32, Refusal> {
    inside(registers, offset)?;
    Ok(registers.read32(offset))
}

pub(crate) fn inside(registers: &impl Mmio, offset: usize) -> Result<(), Refusal> {
    let len_bytes = registers.len_bytes();
    if !offset.is_multiple_of(4) || offset >= len_bytes {
        let text = format!(
            "no register is at {offset:#x}: they are at multiples of 4, below {len_bytes:#x}"
        );
        return Err(Refusal::Value(text));
    }
    Ok(())
}

/// The same of a device that the kernel cannot reset, while it may not master the bus.
pub(crate) fn as_it_is(vfio: &Vfio, window: u8, offset: usize) -> Result<u32, Refusal> {
    let mut read = None;
    let look = |device: &mut VfioDevice| {
        read = Some(word(device, offset));
        Err(Error::Busy)
    };
    // SAFETY: `look` never returns Ok, so the device never may master the bus.
    let refused =
        unsafe { VfioDevice::open_unreset(vfio, window, Interrupt::Polled, look) }.map(drop);
    read.unwrap_or_else(|| Err(raised(refused.err().unwrap_or(Error::Busy))))
}
