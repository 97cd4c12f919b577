//! A region's memory, the port behind which a device reaches it, and what the device does there.

use crate::error::{Refusal, raised_as, refused};
use crate::local::ProcessLocal;
use crate::lock::Plain;
use contigo::dlpack::abi::device;
use contigo::mem::Requirements;
use contigo::names::{Inventory, MemoryName, OpenDevice};
use contigo::{Bus, Direction, Error, Limits, Port};
use contigo_objects::{NAME_BYTES, keep};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Bytes of a block, where the program names no size.
const DEFAULT_BYTES: usize = 16 << 20;

/// How many arrays and pools of one region there can be at once: the most that the runtime keeps
/// account of, in 272 KiB.
const LIMITS: Limits = Limits { allocations: 16_384 };

/// The part of a region that its arrays and pools share. The memory is unmapped with the last of
/// them.
pub(crate) struct Memory {
    region: ProcessLocal<contigo::Region>,
    port: Option<Port>,
    /// DLPack's type of this memory's device, for the CPU's view: the CPU, or memory that CUDA
    /// pinned.
    pub(crate) device_type: i32,
}

impl Plain for Memory {}

impl Memory {
    /// Opens it, from `device` or alone. Without `bytes`, a smaller block whose size is fixed is
    /// taken as it is.
    pub(crate) fn open(
        name: &MemoryName,
        device: Option<&OpenDevice>,
        bytes: Option<usize>,
        port: Option<Wiring>,
    ) -> Result<Arc<Self>, Refusal> {
        let open = |len_bytes| {
            device.map_or_else(|| name.open(len_bytes), |device| device.memory(name, len_bytes))
        };
        let opened = match (open(bytes.unwrap_or(DEFAULT_BYTES)), bytes) {
            (Err(Error::BlockSize { len_bytes, .. }), None) => open(len_bytes),
            (opened, _) => opened,
        };
        let region = opened
            .and_then(|memory| Ok(contigo::Region::with(memory, Requirements::default(), LIMITS)?))
            .map_err(|error| {
                raised_as(error, format!("{name}: {}", Inventory::here().memory_error(name, error)))
            })?;
        let given =
            port.map(|Wiring(port)| device.map_or(port, |device| device.seen_through(port)));
        let is_cuda = region.name().starts_with("cuda");
        Ok(Arc::new(Self {
            device_type: if is_cuda { device::CUDA_HOST } else { device::CPU },
            region: ProcessLocal::new(region),
            port: given.or_else(|| device.and_then(OpenDevice::port)),
        }))
    }

    /// `ForkedError` in a child.
    pub(crate) fn region(&self) -> Result<&contigo::Region, Refusal> {
        self.region.get()
    }

    /// How a device reaches it.
    pub(crate) fn port(&self) -> Result<Port, Refusal> {
        self.port.ok_or_else(|| {
            refused(format!(
                "this region has no port: open it with the one that the accelerator's master is \
                 wired to, {}",
                Wiring::FORM
            ))
        })
    }
}

/// A port: a board's by its name ("zynq-hp0"), or (name, offset, address bits, coherent); with the
/// first and the last address that it reaches too.
#[derive(Clone, Copy)]
pub(crate) struct Wiring(pub(crate) Port);

impl Wiring {
    /// For messages.
    pub(crate) const FORM: &'static str = "port=\"zynq-hp0\" (contigo boards lists the names), \
                                           or port=(name, offset, address bits, coherent)";

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
        let six = object.extract::<(String, u64, u32, bool, u64, u64)>();
        let (name, offset, addr_bits, coherent, first, last) = six
            .or_else(|_| {
                let (name, offset, addr_bits, coherent) = object.extract()?;
                Ok((name, offset, addr_bits, coherent, 0, u64::MAX))
            })
            .map_err(|_: PyErr| {
                PyTypeError::new_err(format!("a port is written as {}", Self::FORM))
            })?;
        let (name, window) = (kept(&name)?, (first, last));
        Ok(Self(Port { name, bus: Bus::Soc, offset, addr_bits, window, coherent }))
    }
}

/// A port's name for good: an error names its port, and may outlive it.
fn kept(text: &str) -> Result<&'static str, Refusal> {
    if text.len() > NAME_BYTES {
        return Err(Refusal::Value(format!(
            "{text}: a port's name has {NAME_BYTES} bytes at most, and this one has {}",
            text.len()
        )));
    }
    keep(text).map_err(|full| Refusal::Value(format!("{text}: {full}")))
}

/// The device "reads", "writes", or does "both".
pub(crate) fn direction(text: &str) -> PyResult<Direction> {
    match text {
        "reads" => Ok(Direction::ToDevice),
        "writes" => Ok(Direction::FromDevice),
        "both" => Ok(Direction::Bidirectional),
        _ => Err(PyValueError::new_err(format!(
            "{text:?}: write \"reads\", \"writes\" or \"both\", as the device does"
        ))),
    }
}

/// The same as a word.
pub(crate) const fn word(direction: Direction) -> &'static str {
    match direction {
        Direction::ToDevice => "reads",
        Direction::FromDevice => "writes",
        Direction::Bidirectional => "both",
    }
}
