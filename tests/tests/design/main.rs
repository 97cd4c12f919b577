//! Block designs from files of the shape that Vivado writes, and devices and memory by their names.
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::panic,
    reason = "a test that panics has failed, which is its purpose; a fake tree is a promise"
)]

mod facts;
mod named;
mod names;
mod real;
mod refused;

/// The shape of Vivado 2022.1 (as in watcag/cocotbpynq on GitHub), with a core of each kind.
const ZYNQ: &str = include_str!("zynq.hwh");
/// The shape of Vivado 2020.2 for Zynq UltraScale+ (as in strath-sdr/rfsoc_sam on GitHub), which
/// begins with the mark of UTF-8.
const ZYNQMP: &str = include_str!("zynqmp.hwh");
