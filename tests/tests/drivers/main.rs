//! Each driver on its model: registers compared with the model's table, modes, edges, errors, and
//! how it stops.
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "a test that panics has failed, which is its purpose; models and windows are promises"
)]

// The drivers' register tables, which `regs` includes, name the crate that they are in.
extern crate contigo as contigo_core;

mod ap_ctrl;
mod camera;
mod cores;
mod pl330;
mod prelude;
mod regs;
mod shared_core;
mod zdma;
