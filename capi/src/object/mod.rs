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
/// The kernel's node of a device.
pub(crate) use contigo::linux::guard::Guard;
use contigo::{drivers::ap_ctrl::KernelMap, sim::SimBoard};

/// Opens a guard by its name; in this crate's own tests a fake's.
pub(crate) fn open_guard(name: &str) -> Result<Guard, contigo::Error> {
    #[cfg(not(test))]
    return Guard::open(name);
    #[cfg(test)]
    return Guard::open_from(std::sync::Arc::new(contigo_testkit::fake_guard::FakeGuard::new(Default::default())), name);
}

/// Simulated boards.
pub(crate) static SIMS: Table<SimBoard, { limits::SIMS }> = Table::new();
/// Guards.
pub(crate) static GUARDS: Table<Guard, { limits::GUARDS }> = Table::new();

/// Maps of kernels.
pub(crate) static KERNELS: Table<KernelMap, { limits::ENGINES }> = Table::new();

impl Object for KernelMap {
    const KIND: Kind = Kind::Kernel;
}

impl Object for SimBoard {
    const KIND: Kind = Kind::Sim;
}

impl Object for Guard {
    const KIND: Kind = Kind::Guard;
}
