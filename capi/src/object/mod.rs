//! The objects that handles are for: each kind, and its table.

pub(crate) mod buf;
#[cfg_attr(not(all(feature = "cuda", target_pointer_width = "64")), path = "no_cuda.rs")]
mod cuda;
pub(crate) mod device;
pub(crate) mod gpu;
pub(crate) mod pool;
pub(crate) mod port;
pub(crate) mod region;
mod tensor;

use crate::{
    handle::Kind,
    limits,
    table::{Object, Table},
};
use contigo::{drivers::ap_ctrl::KernelMap, sim::SimBoard};

/// Simulated boards.
pub(crate) static SIMS: Table<SimBoard, { limits::SIMS }> = Table::new();

/// Maps of kernels.
pub(crate) static KERNELS: Table<KernelMap, { limits::ENGINES }> = Table::new();

impl Object for KernelMap {
    const KIND: Kind = Kind::Kernel;
}

impl Object for SimBoard {
    const KIND: Kind = Kind::Sim;
}
