//! Clocks: their rates, the rates that they should have, and the control that sets one.
//!
//! [`clocks`] reads the kernel's own summary of all clocks, `clk_summary` in debugfs: each clock's
//! rate, whether it runs, and the devices that use it. [`check`] compares the clocks that a
//! processor gives its fabric with those that a design was built for, or that the device tree asks
//! for ([`wanted`]). [`Control`] sets one, if the kernel has a driver for that: AMD's `xlnx,fclk`,
//! or fclkcfg. Mainline Linux has none, and its debugfs is read-only.
//!
//! [`Crystal`] is the rate from which all of them are computed, by the board and by the tree.
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
