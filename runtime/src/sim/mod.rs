//! The simulated board: the embedded default, and the hostile one. No root, no hardware, no heap.
//!
//! Every region is **two memories**: the view of the CPU's cache and the view of the bus. Only a
//! sync moves bytes between them, a whole line at a time where a device writes. A line that is
//! dirty when it should not be may turn out to have been evicted over the device's output. So a
//! missing sync shows as stale data, and a line that two owners share eats a neighbour, as on a
//! real non-coherent port.
//!
//! The board counts each access of a device to bytes that were not handed over to it
//! ([`SimCounts::unowned_accesses`]), also where memory exists, and also behind a port that snoops.
//! A driver that gets 64 bytes and lets the device write 128 shows there, with no canary in the
//! test. So does one that says "stopped" too early.
//!
//! It is deterministic: one seed decides the evictions, the interrupt's delay, late or lost
//! completions, error bits, short transfers and devices that hang. Time is virtual: a register
//! access takes 100 ns of it, a wait as long as it must. A failing seed reruns exactly.
//!
//! [`SimBoard`] is the bus and the clock, [`Sim`] a [`Backend`](crate::Backend), [`SimDevice`] a
//! device, whose [`SimWindow`] is its registers and interrupt. All of them are handles that count
//! and borrow nothing, so a region over simulated memory, a driver and its queue lie in one
//! structure, and are dropped in any order. A driver author writes a [`Model`]
//! of an IP core and tests the driver against it before there is a bitstream. A [`stream`] stands
//! behind a core that has one: a loopback, a source or a sink. The type of a window
//! names its model, so each driver has a safe function for it (`open_simulated`), beside the unsafe
//! one for any device. The models of this crate's drivers are beside them
//! ([`drivers`](crate::drivers)).
//!
//! Imports: `types`, `trace`, `mem`, `hw`.

mod any_model;
mod block;
mod board;
mod bus;
mod device;
mod faults;
mod holder;
mod memory;
mod model;
mod on_board;
pub mod stream;
#[cfg(all(feature = "linux", target_os = "linux"))]
mod words;

pub use crate::mem::{Holder, SimulatedDevice, WrongAccesses};
pub use any_model::AnyModel;
pub use board::{BusError, SimBoard, SimConfig, SimCounts};
pub use bus::{SimBus, SimMemory};
pub use device::{SimAccesses, SimDevice, SimWindow};
pub use faults::{Faults, Struck};
pub use memory::{Sim, SimSpec};
pub use model::Model;
pub use on_board::OnBoard;
#[cfg(all(feature = "linux", target_os = "linux"))]
pub(crate) use words::registers;
