//! One device: its registers, how to wait for it, and the port that its bus master is wired to.
//!
//! [`Mmio`] reads and writes registers, [`Wait`] waits with a clock that bounds it, and a
//! [`Device`] has both. A program makes a real one by claiming the device's wiring ([`Wired`]).

pub(crate) mod device;
pub mod mmio;
mod shared_interrupt;
mod siblings;
pub mod wait;

pub use device::{Device, Wired, locked, reset_all};
pub use mmio::{Mmio, MmioWindow};
pub(crate) use shared_interrupt::Seen;
pub use siblings::{CoreLock, Siblings};
pub use wait::{Wait, poll_every, poll_until};
