//! What the handles are for: each kind of object, and its table.

pub(crate) mod buf;
pub(crate) mod device;
#[cfg_attr(not(all(feature = "cuda", target_pointer_width = "64")), path = "no_gpu.rs")]
pub(crate) mod gpu;
pub(crate) mod heap;
mod lent;
pub(crate) mod pool;
pub(crate) mod port;

use crate::{
    handle::Kind,
    limits,
    table::{Object, Table},
};
/// A bus master that is bound to the kernel module.
pub(crate) use contigo::KernelPort as BoundMaster;
use contigo::{drivers::ap_ctrl::KernelMap, sim::SimBoard};

/// Opens one by its name; in this crate's own tests a fake's.
pub(crate) fn open_kernel_port(name: &str) -> Result<BoundMaster, contigo::Error> {
    #[cfg(not(test))]
    return BoundMaster::open(name);
    #[cfg(test)]
    return BoundMaster::open_from(std::sync::Arc::new(contigo_testkit::fake_port::FakePort::new(Default::default())), name);
}

/// Simulated boards.
pub(crate) static SIMS: Table<SimBoard, { limits::SIMS }> = Table::new();
/// Bus masters that are bound to the kernel module.
pub(crate) static KERNEL_PORTS: Table<BoundMaster, { limits::KERNEL_PORTS }> = Table::new();

/// Maps of kernels.
pub(crate) static KERNELS: Table<KernelMap, { limits::ENGINES }> = Table::new();

impl Object for KernelMap {
    const KIND: Kind = Kind::Kernel;
}

impl Object for SimBoard {
    const KIND: Kind = Kind::Sim;
}

impl Object for BoundMaster {
    const KIND: Kind = Kind::KernelPort;
}
