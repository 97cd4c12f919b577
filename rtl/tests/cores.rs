//! Cores in Verilog: they are found by name, they break no rule of AXI, and each fault is found.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that panics has failed, which is its purpose"
)]

extern crate contigo as contigo_core;

#[path = "cores/breaches.rs"]
mod breaches;
#[path = "cores/gate.rs"]
mod gate;
#[allow(dead_code, unreachable_pub, reason = "the driver uses what these tests do not")]
#[path = "../../runtime/drivers/src/axi_gate/regs.rs"]
mod gate_regs;
#[path = "cores/litex.rs"]
mod litex;
#[path = "cores/nngen.rs"]
mod nngen;
#[path = "cores/rig.rs"]
mod rig;
#[path = "cores/s2mm.rs"]
mod s2mm;
#[path = "cores/skip.rs"]
mod skip;
#[path = "cores/split.rs"]
mod split;
#[path = "cores/streams.rs"]
mod streams;
#[path = "cores/suite.rs"]
mod suite;
