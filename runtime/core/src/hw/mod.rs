//! One device: its registers, how to wait for it, and the port that its bus master is wired to.
//!
//! [`Mmio`] reads and writes registers, [`Wait`] waits with a clock that bounds it, and a
//! [`Device`] has both. A program makes a real one by claiming the device's wiring ([`Wired`]).

mod baton;
pub(crate) mod device;
pub mod mmio;
mod siblings;
pub mod wait;

pub(crate) use baton::Seen;
pub use device::{Device, Wired, locked, reset_all};
pub use mmio::{Mmio, MmioWindow};
pub use siblings::{CoreLock, Siblings};
pub use wait::{Wait, poll_every, poll_until};
