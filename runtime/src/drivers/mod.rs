//! Drivers, a folder a core: its registers, its driver, and with the feature `sim` its model.
//!
//! Each is a [`Driver`](crate::Driver) over a [`Device`](crate::Device). To open one
//! over registers is unsafe, because only the program knows which core is there. To open one over
//! its own model (`open_simulated`) is safe: the type of the window names the model.
//!
//! Imports: `types`, `trace`, `mem`, `hw`, `job`, `sim`.

pub mod pl330;
pub mod zdma;
