//! RTL behind Contigo's drivers: cores in Verilog, compiled by Verilator, that run on the simulated
//! board where a hand-written model would. The same driver, engine and tests drive them.
//!
//! [`Core`] is a core and its clock, [`ports`] the wires around it.

pub mod core;
pub mod ports;

pub use crate::core::{Core, NoCore, PowerOn};
