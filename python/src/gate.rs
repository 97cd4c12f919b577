//! The gate before a core, as a program names it.

use crate::device::Device;
use contigo::names::GateAt;
use pyo3::{exceptions::PyTypeError, prelude::*};

/// Where a gate's registers are.
pub(crate) enum GateIn<'py> {
    /// In the core's window, from there on.
    Window(usize),
    /// In a device of its own.
    Own(PyRef<'py, Device>),
}

impl<'py> GateIn<'py> {
    /// `gate`, as the program gives it.
    pub(crate) fn of(gate: &Bound<'py, PyAny>) -> PyResult<Self> {
        if let Ok(device) = gate.cast::<Device>() {
            return Ok(Self::Own(device.borrow()));
        }
        let wrong = |_| PyTypeError::new_err(format!("gate is {gate}: the offset of its registers in bytes, or a contigo.Device"));
        gate.extract().map(Self::Window).map_err(wrong)
    }

    /// The gate of a core that is driven by window `window`. A device of its own is the driver's
    /// from now on.
    pub(crate) fn at(&self, py: Python<'_>, window: u8) -> PyResult<GateAt<'_>> {
        Ok(match self {
            &Self::Window(offset) => GateAt { device: None, window, offset },
            Self::Own(gate) => {
                let (opening, window) = gate.given(py)?;
                GateAt { device: Some(&opening.device), window, offset: 0 }
            }
        })
    }
}
