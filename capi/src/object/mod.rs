//! What the handles are for: each kind of object, and its table.

pub(crate) mod bitmap;
pub(crate) mod buf;
#[cfg_attr(not(all(feature = "cuda", target_pointer_width = "64")), path = "no_gpu.rs")]
pub(crate) mod gpu;
pub(crate) mod heap;
mod memory;
pub(crate) mod pool;
pub(crate) mod port;

use crate::{
    handle::Kind,
    limits,
    table::{Object, Table},
};
use contigo::{KernelPort, sim::SimBoard};

/// Simulated boards.
pub(crate) static SIMS: Table<SimBoard, { limits::SIMS }> = Table::new();
/// Bus masters that are bound to the kernel module.
pub(crate) static KERNEL_PORTS: Table<KernelPort, { limits::KERNEL_PORTS }> = Table::new();

impl Object for SimBoard {
    const KIND: Kind = Kind::Sim;
}

impl Object for KernelPort {
    const KIND: Kind = Kind::KernelPort;
}
