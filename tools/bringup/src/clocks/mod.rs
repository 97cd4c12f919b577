//! Clocks: what they are, what they should be, and the way to set one.
//!
//! [`clocks`] reads the kernel's own account of every clock, `clk_summary` in debugfs: rate,
//! whether it runs, and which device has it. [`check`] compares the clocks that a processor gives
//! its fabric with what a design was built for, or with what the device tree asks for ([`wanted`]).
//! [`Control`] sets one, where the kernel has a driver for that: AMD's `xlnx,fclk`, or fclkcfg.
//! Mainline Linux has none, and its debugfs is for reading only.
//!
//! [`Crystal`] is the rate that all of them are reckoned from, as the board has it and as the tree
//! says it.
//!
//! Nothing here reads a register, so a clock that is off cannot hang the processor.
//!
//! # References
//! Linux, `drivers/clk/clk.c` (`clk_summary_show_one`), `drivers/clk/zynq/clkc.c` (`fclk0`),
//! `include/dt-bindings/clock/xlnx-zynqmp-clk.h` (`PL0_REF`, 71); AMD's Linux,
//! `drivers/staging/xilinx-fclk` (`set_rate`).

mod control;
mod summary;
#[cfg(test)]
mod tests;
mod tree;

pub use control::{ClockError, Control, Fabric};
pub use summary::{Checked, Clock, Verdict, Wanted, check, clocks};
pub use tree::{Crystal, wanted};
pub(crate) use tree::{fabrics, providers};
