//! Any kernel that AMD's Vitis HLS made, from data: what its registers are is a
//! [`KernelMap`](contigo_design::kernel::KernelMap).
//!
//! | what | how |
//! |---|---|
//! | operands | the kernel's pointers, in the map's order, each with a direction, an alignment and a rule for its length |
//! | argument words | its scalars in the map's order; one with more than 32 bits takes two words, low first |
//! | [`Completion::words`](contigo_core::Completion) | its results in the map's order: the return value, and outputs |
//! | jobs in flight | 1 with `ap_ctrl_hs`, 2 with `ap_ctrl_chain`; they end in their order |
//!
//! A map is a table in Rust, or what the tools write anyway: JSON, HLS' `x<name>_hw.h`, Vivado's
//! `.hwh` ([`contigo_design::kernel`]).
//!
//! **Lengths.** A kernel believes its scalars. A rule such as `4*n` in the map keeps a job whose
//! operand is too short from starting. Without a rule, that every job stays inside its operands is
//! the program's claim.
//!
//! **No errors.** A kernel does not tell that a read or a write was answered with an error.
//!
//! **Stopping.** A kernel cannot be aborted. Stopping waits for the end of the jobs under way, at
//! most as long as [`ApCtrl::stops_within`] says; then only the reset line helps.
//!
//! **Auto-restart.** A kernel that a program left with bit 7 of CTRL on runs again and again. It is
//! never idle. Each write of this driver to CTRL turns it off, and stopping begins with such a
//! write. A run that the kernel had begun by itself ends before the driver opens.
//!
//! # References
//! UG1399, "S_AXILITE Control Register Map" and "Block-Level Control Protocols"; the control block
//! that HLS writes (`<kernel>_control_s_axi.v`).

mod driver;
pub(crate) mod registry;
pub mod regs;

pub use driver::ApCtrl;
