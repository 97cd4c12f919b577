//! Buffers. A buffer has one owner at a time, and its type says which. [`CpuBuf`] has views and no
//! address. [`DevBuf`] has an address and no view. [`Operand`] is on its way into a job and has
//! neither. [`DriverBuf`] belongs to a driver, for as long as the driver likes.

mod chunk;
mod cpu;
mod dev;
mod driver;
mod hand_over;
mod operand;

pub(crate) use chunk::{Chunk, Owner, OwnerTable};
pub use cpu::CpuBuf;
pub use dev::{DevBuf, DevSlice};
pub use driver::DriverBuf;
pub use operand::Operand;

use core::marker::PhantomData;

/// Marks a buffer that may move to another thread: from a [`Region`](crate::Region) or a
/// [`Pool`](crate::Pool).
#[derive(Clone, Copy, Debug)]
pub struct AnyThread;

/// Marks a buffer that stays on its thread: from a [`LocalPool`](crate::LocalPool) or an
/// [`Arena`](crate::Arena), which use no atomics.
#[derive(Clone, Copy, Debug)]
pub struct OneThread(PhantomData<*const ()>);
