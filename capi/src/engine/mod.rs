//! Engines and their jobs: what drives the built-in accelerators, on the simulated board and through UIO.
//!
//! ```text
//!   Station ── Guard<Machine>              idle: the station has its engine alone
//!      │ start
//!      ▼
//!   Station ── Flight: Running, and a hold on each buffer's entry        the device has them
//!      │ poll, wait, cancel
//!      ▼
//!   Station ── Guard<Machine>              the buffers are in their entries again, or lost with a device that would not stop
//! ```

mod device;
mod flight;
mod machine;
mod sim_device;
mod station;

pub(crate) use flight::{End, Part};
pub(crate) use machine::{MachineKind, Order};
pub(crate) use station::{ENGINES, Opening, Station, Wiring};
