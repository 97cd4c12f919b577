//! Memory, and its owners.
//!
//! A [`Backend`] is one block of memory. A [`Region`] checks and owns it. [`Pool`] has equal slots
//! of it. A [`CpuBuf`] has views and no address, a [`DevBuf`] has an address and no views. A
//! [`Port`] is one bus master's way to memory.
//!
//! Safety never rests on `Drop`: memory that a device may own is leaked, and never freed.

pub(crate) mod backend;
pub(crate) mod block;
pub(crate) mod buf;
pub(crate) mod handle;
mod holder;
pub(crate) mod port;
pub(crate) mod region;
pub(crate) mod span;

pub use backend::{Backend, MAX_SYNC_RANGES, Mapping, Segment, SyncRange, SyncScope};
pub use block::Requirements;
pub use buf::{CpuBuf, DevBuf, DevSlice, DriverBuf, Operand};
pub use handle::{Api, Handle};
pub use holder::{Holder, SimulatedDevice, WrongAccesses};
pub use port::Port;
pub use region::{Limits, Pool, Region};
