//! How an accelerator reaches memory, as Python says it.

use crate::{
    error::{Refusal, refused},
    names,
};
use contigo::{Bus, Port};
use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
};
use std::collections::BTreeSet;

/// A port: a board's by its name ("zynq-hp0"), or (name, offset, address bits, coherent); with the
/// first and the last address that it reaches too.
#[derive(Clone, Copy)]
pub(crate) struct Wiring(pub(crate) Port);

impl Wiring {
    /// For messages.
    pub(crate) const FORM: &'static str = "port=\"zynq-hp0\" (contigo boards lists the names), or port=(name, offset, address bits, coherent)";

    fn called(name: &str) -> PyResult<Self> {
        contigo_boards::port(name).map(Self).ok_or_else(|| {
            let names: BTreeSet<_> = contigo_boards::ports().map(|port| port.name).collect();
            let names: Vec<_> = names.into_iter().collect();
            PyValueError::new_err(format!(
                "no board has a port {name:?}; write (name, offset, address bits, coherent), or {}",
                names.join(", ")
            ))
        })
    }
}

impl FromPyObject<'_, '_> for Wiring {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        if let Ok(name) = object.extract::<String>() {
            return Self::called(&name);
        }
        if let Ok((name, offset, addr_bits, coherent, first, last)) =
            object.extract::<(String, u64, u32, bool, u64, u64)>()
        {
            return Ok(Self(Port {
                name: names::kept(&name)?,
                bus: Bus::Soc,
                offset,
                addr_bits,
                window: (first, last),
                coherent,
            }));
        }
        let (name, offset, addr_bits, coherent) = object
            .extract::<(String, u64, u32, bool)>()
            .map_err(|_| PyTypeError::new_err(format!("a port is written as {}", Self::FORM)))?;
        let (name, window) = (names::kept(&name)?, (0, u64::MAX));
        Ok(Self(Port { name, bus: Bus::Soc, offset, addr_bits, window, coherent }))
    }
}

pub(crate) fn no_port() -> Refusal {
    refused(format!(
        "this region has no port: open it with the one that the accelerator's master is wired to, {}",
        Wiring::FORM
    ))
}
