//! Memory, and its owners.
//!
//! A [`Backend`] is one block of memory. A [`Region`] checks and owns it. A [`Carve`] is a planned
//! piece. [`Pool`] and [`Arena`] give out buffers. A [`CpuBuf`] has views and no address, a
//! [`DevBuf`] has an address and no views. A [`Port`] is one bus master's way to memory.
//!
//! Safety never rests on `Drop`: memory that a device may own is leaked, and never freed.
//!
//! Imports: `types`, `trace`.

pub(crate) mod arena;
pub(crate) mod backend;
pub(crate) mod buf;
pub(crate) mod handle;
mod holder;
pub(crate) mod own;
pub(crate) mod pool;
pub(crate) mod port;
pub(crate) mod region;
pub(crate) mod span;

pub use arena::Arena;
pub use backend::{Backend, Mapping, Segment, SyncScope};
pub use buf::{AnyThread, CpuBuf, DevBuf, DevSlice, DriverBuf, OneThread, Operand};
pub use handle::{Api, Handle};
pub use holder::{Holder, SimulatedDevice, WrongAccesses};
pub use pool::{LocalPool, Pool};
#[doc(hidden)]
pub use pool::{RawPool, RawSlots};
pub use port::Port;
pub use region::{Carve, Region, Requirements};
