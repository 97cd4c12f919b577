//! What the handles are for: each kind of object, and its table.

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
use contigo::sim::SimBoard;

/// The kernel module; in this crate's own tests a fake of it.
#[cfg(not(test))]
type Module = contigo::linux::guard::seam::RealPort;
#[cfg(test)]
type Module = contigo_testkit::fake_port::FakePort;
/// A bus master that is bound to it.
pub(crate) type BoundMaster = contigo::KernelPort<Module>;

/// Opens one by its name.
pub(crate) fn open_kernel_port(name: &str) -> Result<BoundMaster, contigo::Error> {
    #[cfg(not(test))]
    return BoundMaster::open(name);
    #[cfg(test)]
    return BoundMaster::open_from(Module::new(contigo_testkit::fake_port::PortConfig::default()), name);
}

/// Simulated boards.
pub(crate) static SIMS: Table<SimBoard, { limits::SIMS }> = Table::new();
/// Bus masters that are bound to the kernel module.
pub(crate) static KERNEL_PORTS: Table<BoundMaster, { limits::KERNEL_PORTS }> = Table::new();

impl Object for SimBoard {
    const KIND: Kind = Kind::Sim;
}

impl Object for BoundMaster {
    const KIND: Kind = Kind::KernelPort;
}
