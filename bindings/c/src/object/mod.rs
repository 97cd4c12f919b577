//! The objects that handles are for: each kind, and its table.

pub(crate) mod buf;
#[cfg_attr(not(all(feature = "cuda", target_pointer_width = "64")), path = "no_cuda.rs")]
mod cuda;
pub(crate) mod device;
pub(crate) mod gpu;
pub(crate) mod region;

use crate::fault::Fault;
use crate::handles::{CONTIGO_MAX_ENGINES, CONTIGO_MAX_PORTS, CONTIGO_MAX_SIMS};
use contigo::Port;
use contigo::design::kernel::KernelMap;
use contigo::sim::SimBoard;
use contigo_objects::{Kind, Table};

/// Simulated boards.
pub(crate) static SIMS: Table<SimBoard, { Kind::Sim as u8 }, { CONTIGO_MAX_SIMS as usize }> =
    Table::new();

/// Maps of kernels.
pub(crate) static KERNELS: Table<
    KernelMap,
    { Kind::Kernel as u8 },
    { CONTIGO_MAX_ENGINES as usize },
> = Table::new();

/// Ports. A port is a handful of numbers: each user of one has a copy, so that it can be closed at
/// any time.
pub(crate) static PORTS: Table<Port, { Kind::Port as u8 }, { CONTIGO_MAX_PORTS as usize }> =
    Table::new();

/// A copy of a handle's port.
pub(crate) fn port_of(raw: u64) -> Result<Port, Fault> {
    Ok(*PORTS.lease(raw)?)
}
