//! They are found by name, they break no rule of AXI, and each fault is found.

mod breaches;
mod demo;
mod gate;
#[allow(dead_code, unreachable_pub, reason = "the driver uses what these tests do not")]
#[path = "../../../runtime/drivers/src/axi_gate/regs.rs"]
mod gate_regs;
mod kept;
mod litex;
mod memory;
mod nngen;
pub(crate) mod rig;
mod s2mm;
pub(crate) mod skip;
mod split;
mod streams;
pub(crate) mod suite;
mod table;
