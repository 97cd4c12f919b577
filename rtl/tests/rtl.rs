//! Cores in Verilog behind the drivers, in one program: each that is linked with all cores takes a
//! cold build seconds.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that panics has failed, which is its purpose"
)]

extern crate contigo as contigo_core;

mod cores;
mod gemm8;
mod pci;
