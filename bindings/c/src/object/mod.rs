//! The objects that handles are for: each kind, and its table.

pub(crate) mod buf;
#[cfg_attr(not(all(feature = "cuda", target_pointer_width = "64")), path = "no_cuda.rs")]
mod cuda;
pub(crate) mod device;
pub(crate) mod gpu;
pub(crate) mod pool;
pub(crate) mod port;
pub(crate) mod region;

use crate::limits;
use contigo::{design::kernel::KernelMap, sim::SimBoard};
use contigo_objects::{Kind, Table};

/// Simulated boards.
pub(crate) static SIMS: Table<SimBoard, { Kind::Sim as u8 }, { limits::SIMS }> = Table::new();

/// Maps of kernels.
pub(crate) static KERNELS: Table<KernelMap, { Kind::Kernel as u8 }, { limits::ENGINES }> =
    Table::new();
