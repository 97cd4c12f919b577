//! One device: its registers, how to wait for it, and the port that its bus master is wired to.
//!
//! [`Mmio`] reads and writes registers, [`Irq`] waits with a clock that bounds it, and a
//! [`Device`] has both. A real device becomes one where a program claims its wiring ([`Wired`]).
//!
//! Imports: `types`, `mem`.

pub(crate) mod device;
pub mod irq;
pub mod mmio;

pub use device::{Device, Wired};
pub use irq::{Irq, poll_every, poll_until};
pub use mmio::{Mmio, MmioWindow};
