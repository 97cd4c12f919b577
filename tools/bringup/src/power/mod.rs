//! Power: the rails that a board measures, and the energy that a piece of work takes.
//!
//! The kernel's own driver reads a monitor (INA226, INA260, INA3221, or a regulator on PMBus), and
//! calibrates it by the board's device tree. Its files are below `/sys/class/hwmon` (Linux,
//! `Documentation/hwmon/sysfs-interface.rst`), and need no privilege. A [`Monitor`] without a
//! kernel driver is read through its bus, by a driver of embedded-hal's ([`Chip`]): INA226, INA260,
//! and INA233 behind PMBus. A regulator on PMBus needs the kernel's driver: its numbers have a
//! format of their own, and the registry's PMBus crate (`pmbus-adapter`) waits for its bus by
//! `async`.
//!
//! ```
//! use contigo_bringup::{machine::Machine, power};
//! use std::time::Duration;
//!
//! let rails = power::rails(&Machine::this());
//! let (sum, energies) = power::beside(&rails, power::STEP, || (0..1_000_u64).sum::<u64>());
//! assert_eq!(sum, 499_500);
//! for energy in energies {
//!     println!("{}: {:?} J", energy.rail, energy.joules());
//! }
//! ```

mod chip;
mod meter;
mod rail;
#[cfg(test)]
mod tests;

pub use chip::{Chip, ChipError, Model, Monitor};
pub use meter::{Energy, STEP, beside};
pub use rail::{Gauge, PowerError, Rail, rails};
