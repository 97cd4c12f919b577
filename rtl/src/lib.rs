//! RTL behind Contigo's drivers: cores in Verilog, compiled by Verilator, that run on the simulated
//! board where a hand-written model would. The same driver, engine and tests drive them.
//!
//! [`Core`] is a core and its clock, [`ports`] the wires around it. [`axi`] has the other ends of
//! these wires, and the rules that a core can break. [`RtlModel`] puts all of them behind a
//! register window, as a model of the simulated board. [`pci`] puts any model, of gates or written
//! by hand, behind a real kernel.

pub mod axi;
mod config;
pub mod core;
mod irq;
pub mod litex;
mod model;
pub mod nngen;
pub mod pci;
pub mod ports;
pub mod s2mm;
pub mod table;
mod trace;
mod twin;

pub use crate::config::RtlConfig;
pub use crate::core::{Core, NoCore, PowerOn};
pub use crate::model::RtlModel;
pub use crate::trace::Marks;
