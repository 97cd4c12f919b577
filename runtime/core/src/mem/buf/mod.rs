//! Buffers. A buffer has one owner at a time, and its type says which. [`CpuBuf`] has views and no
//! address. [`DevBuf`] has an address and no view. [`Operand`] is on its way into a job and has
//! neither. [`DriverBuf`] belongs to a driver, for as long as the driver likes.

mod chunk;
mod cpu;
mod dev;
mod driver;
mod hand_over;
mod maintenance;
mod operand;
mod syncs;

pub(crate) use chunk::{Chunk, OwnerTable};
pub use cpu::CpuBuf;
pub use dev::{DevBuf, DevSlice};
pub use driver::DriverBuf;
pub use operand::Operand;
pub(crate) use syncs::{Cleaning, Syncs};
