//! Block designs from files of the shape that Vivado writes.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::panic,
    reason = "a test that panics has failed, which is its purpose"
)]

#[path = "design/damaged.rs"]
mod damaged;
#[path = "design/facts.rs"]
mod facts;
#[path = "design/named.rs"]
mod named;
#[path = "design/real.rs"]
mod real;
#[path = "design/refused.rs"]
mod refused;

/// The shape of Vivado 2022.1 (as in watcag/cocotbpynq on GitHub), with a core of each kind.
const ZYNQ: &str = include_str!("design/zynq.hwh");
/// The shape of Vivado 2020.2 for Zynq UltraScale+ (as in strath-sdr/rfsoc_sam on GitHub), which
/// begins with the mark of UTF-8.
const ZYNQMP: &str = include_str!("design/zynqmp.hwh");
