//! The gate before a core, as a program names it.

use crate::{device::Device, opening::Opening};
use contigo::names::GateAt;
use pyo3::{exceptions::PyTypeError, prelude::*};
use std::sync::Arc;

/// Where a gate's registers are.
pub(crate) enum GateIn {
    /// In the core's window, from there on.
    Window(usize),
    /// In a device of its own.
    Own(Arc<Opening>, u8),
}

impl GateIn {
    /// `gate`, as the program gives it. A device of its own is the driver's from now on.
    pub(crate) fn of(gate: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(device) = gate.cast::<Device>() {
            let (opening, window) = device.get().given(gate.py())?;
            return Ok(Self::Own(opening, window));
        }
        let wrong = |_| PyTypeError::new_err(format!("gate is {gate}: the offset of its registers in bytes, or a contigo.Device"));
        gate.extract().map(Self::Window).map_err(wrong)
    }

    /// The gate of a core that is driven by window `window`.
    pub(crate) fn at(&self, window: u8) -> GateAt<'_> {
        match self {
            &Self::Window(offset) => GateAt { device: None, window, offset },
            Self::Own(opening, window) => GateAt { device: Some(&opening.device), window: *window, offset: 0 },
        }
    }
}
