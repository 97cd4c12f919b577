//! Contigo's C ABI: `include/contigo.h`, a static and a shared library. A mistake that Rust's types
//! forbid is an error code here. So it is with a buffer that is used after it was given away,
//! released twice, looked at while a device has it, or used by two threads at once.
//!
//! ```text
//!   C program            ffi/                object/, engine/                the runtime
//!   a number ──────► checks pointers ─────► the table's entry ─────────► Region, CpuBuf, Queue
//!                    and structures         is it that one? who has it?
//!                          ▲                                                    │
//!                          └── status, and the thread's text  ◄── Fault ◄───────┘
//! ```
//!
//! | file | what it is |
//! |---|---|
//! | `object/` | simulated boards, GPUs, ports, devices, regions, pools, buffers |
//! | `engine/` | engines and their jobs |
//! | `fault.rs`, `status/`, `last_error.rs` | refusals, their codes and their text |
//! | `ffi/` | the functions that C calls, one file for each kind of object |
//! | `handles.rs` | the handles' types, and how many of each there are |
//!
//! # Who keeps what
//!
//! The entries hold the runtime's handles that own, so that no memory goes away
//! under a buffer or a device, in whatever order things are closed. The order is refused all the
//! same, because a program that closes a region too early has a mistake in it: each buffer has a
//! lease on its pool or its region beside it, and an entry is emptied only where it has no lease,
//! by one compare and exchange. Tables and handles, who has a buffer, and the ledger of an engine's
//! jobs are `contigo-objects`, which Python stands on, too.
//!
//! Nothing allocates from the heap, nothing waits for another thread, and no panic leaves a
//! function.
#![allow(
    clippy::large_enum_variant,
    reason = "they live in static tables, and there is no heap to put a box in"
)]

mod engine;
mod fault;
mod ffi;
mod handles;
mod last_error;
mod object;
mod status;
#[cfg(test)]
mod tests;

pub use engine::{contigo_engine_options, contigo_operand};
pub use ffi::*;
pub use handles::*;
pub use object::region::contigo_region_options;
pub use status::*;
