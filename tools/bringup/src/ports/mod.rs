//! Registers around the fabric's ports: widths, level shifters, resets, snooping.
//!
//! A port between processor and fabric has two sides. The bitstream sets one; the boot code sets
//! the other, for the design that it was built with. If they differ, half of each word is missing,
//! or an access never ends, and no error is reported.
//!
//! [`read`] reads the processor's side, and compares it with a design and with the manager's state.
//! [`plan`] lists the writes that make wrong fields right, and [`apply`] makes them. Only boot code
//! can set some fields: [`Setter::Boot`] explains how.
//!
//! **Each register is the processor's own**, with a clock from the processor. A block that is held
//! in reset is not read ([`Reading::Held`]). A port of Zynq-7000 is read only if a design uses it,
//! a bitstream runs, and the level shifters are on ([`Reading::Closed`]). A read that nothing
//! answers ends a child process ([`AccessError::Bus`]). A write that the secure world refuses may
//! end an arm64 kernel: only registers are written that were just read, and that AMD's boot code
//! writes. PYNQ writes ZynqMP's, too, and none of Zynq-7000's ports. An access that does not end is
//! the last one ([`AccessError::NoAnswer`]).
//!
//! If an isolation (XPPU) answers reads with zeros, a zero is no fact: see the boot code's.
//!
//! ```
//! use contigo_bringup::ports::{self, AccessError, Known, Registers, Verdict};
//! use contigo_bringup::bitstream::Family;
//!
//! /// Registers that all read 0.
//! struct Zeros;
//! impl Registers for Zeros {
//!     fn read(&self, _addr: u64) -> Result<u32, AccessError> { Ok(0) }
//!     fn write(&self, addr: u64, _: u32) -> Result<(), AccessError> {
//!         Err(AccessError::Bus { addr })
//!     }
//! }
//!
//! let facts = ports::read(Family::Zynq7000, &Zeros, &Known { running: true, ..Known::default() });
//! let shifters = facts.iter().find(|fact| fact.field.name == "level shifters");
//! assert_eq!(shifters.map(|fact| fact.verdict), Some(Verdict::Wrong)); // while a bitstream runs
//! assert_eq!(ports::plan(&facts).len(), 1);
//! ```
//!
//! # References
//! Each row of the table has its own, in [`Field::source`].

mod access;
mod cores;
mod error;
mod fact;
mod plan;
mod table;
#[cfg(test)]
mod tests;

pub use access::{DevMem, Registers};
pub use cores::Cores;
pub use error::{AccessError, PortsError};
pub use fact::{Fact, Known, Parameters, Reading, Verdict, read, stuck};
pub use plan::{Step, apply, plan, prepare};
pub(crate) use table::BROADCAST;
pub use table::{Field, Setter, fields};

use crate::bitstream::Family;
use crate::clocks::{Clock, Fabric, clocks};
use crate::fpga::{Fpga, State};
use crate::known::family_of;
use crate::machine::Machine;

/// Finds the family of a machine, by its device tree.
///
/// # Errors
/// [`PortsError::NoFamily`]: the registers of the machine's SoC are not known here.
pub fn family(machine: &Machine) -> Result<Family, PortsError> {
    family_of(machine).ok_or(PortsError::NoFamily)
}

/// Whether the kernel reports that no clock of the fabric runs: it knows some, and all are off.
#[must_use]
pub fn is_stopped(machine: &Machine) -> bool {
    let mut all = clocks(machine).unwrap_or_default();
    all.retain(|clock| Fabric::named(&clock.name).is_some());
    !all.is_empty() && all.iter().all(Clock::is_off)
}

/// Whether the kernel's manager reports that a bitstream runs.
#[must_use]
pub fn is_running(machine: &Machine) -> bool {
    Fpga::find(machine, None, None).is_ok_and(|fpga| fpga.state() == State::Operating)
}
