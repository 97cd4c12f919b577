//! The simulated board: the embedded default, and the hostile one. No root, no hardware, no heap.
//!
//! Every region is **two memories**: the view of the CPU's cache and the view of the bus. Only a
//! sync moves bytes between them, a whole line at a time where a device writes. A line that is
//! dirty when it should not be may turn out to have been evicted over the device's output. So a
//! missing sync shows as stale data, and a line that two owners share destroys a neighbour's bytes,
//! as on a real non-coherent port.
//!
//! The board counts each access of a device to bytes that were not handed over to it
//! ([`SimCounts::unowned_accesses`]), also where memory exists, and also behind a port that snoops.
//! A driver that gets 64 bytes and lets the device write 128 shows there, with no canary in the
//! test. So does a driver that reports "stopped" too early.
//!
//! It is deterministic: one seed decides the evictions, the interrupt's delay, late or lost
//! completions, error bits, short transfers and devices that hang. Time is virtual: a register
//! access takes 100 ns, a wait as long as it needs. A failing seed reruns exactly.
//!
//! [`SimBoard`] is the bus and the clock, [`Sim`] a [`Backend`](contigo_core::Backend),
//! [`SimDevice`] a device, whose [`SimWindow`] is its registers and interrupt. All of them are
//! reference-counted handles that borrow nothing: one structure can hold a region over simulated
//! memory, a driver and its queue, and drop them in any order. A driver author writes a [`Model`]
//! of an IP core and tests the driver against it before there is a bitstream. A [`stream`] stands
//! behind a core that has one: a loopback, a source or a sink. A window's type names its model, so
//! it has a safe function for each way to open the driver (`window.driver()`), beside the driver's
//! unsafe one for any device.
//!
//! Each driver of `contigo-drivers` has a model here, under the same name. A model shares no line
//! with its driver: it has a table of registers of its own (`manual.rs`), and tests compare the
//! two. A program sees this crate as `contigo::sim`.
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(test)]
extern crate std;

pub mod ap_ctrl;
pub mod axi_cdma;
pub mod axi_dma;
pub mod axi_dmac;
pub mod axi_gate;
pub mod axi_mcdma;
pub mod axi_vdma;
mod block;
mod board;
mod bus;
mod device;
#[cfg(test)]
mod driver_regs;
mod faults;
pub mod litepcie;
mod memory;
mod model;
pub mod msgdma;
mod named;
pub mod pl330;
mod state;
pub mod stream;
pub mod zdma;

pub use board::SimBoard;
pub use bus::{SimBus, SimMemory};
pub use contigo_core::mem::{Holder, SimulatedDevice, WrongAccesses};
pub use device::{SimAccesses, SimDevice, SimWindow};
pub use faults::{Faults, Struck};
pub use memory::{OnBoard, Sim, SimSpec};
pub use model::{AnyModel, Model};
pub use named::{each_name, named, register};
pub use state::{BusError, SimCounts};
