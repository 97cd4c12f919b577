//! Contigo's C ABI: `include/contigo.h`, a static and a shared library. A mistake that Rust's types
//! forbid is an error code here. So it is with a buffer that is used after it was given away,
//! released twice, looked at while a device has it, or used by two threads at once.
//!
//! ```text
//!   C program            ffi/                object/, engine/                the runtime
//!   a number ──────► checks pointers ─────► the table's entry ─────────► Region, CpuBuf, Engine
//!                    and structures         is it that one? who has it?
//!                          ▲                                                    │
//!                          └── status, and the thread's text  ◄── Fault ◄───────┘
//! ```
//!
//! | file | what it is |
//! |---|---|
//! | `handle.rs` | the meaning of a handle's bits |
//! | `table/` | fixed tables in statics: an entry never moves, and one atomic word says who uses it |
//! | `object/` | simulated boards, GPUs, ports, guards, regions, pools, buffers |
//! | `engine/` | devices, engines and their jobs |
//! | `fault.rs`, `status.rs`, `last_error.rs` | refusals, their codes and their text |
//! | `ffi/` | the functions that C calls, one file for each kind of object |
//!
//! # Why the runtime's lifetimes hold
//!
//! In Rust a buffer borrows its region. Here both live in tables. A region's entry counts the
//! leases on it, and each thing that borrows from the region has a lease beside it, which is
//! dropped after it. The entry is emptied only where its count is zero, by one compare and
//! exchange. A pool's slot that is out has no lease: its bit keeps the pool (`object/pool.rs`), and
//! the pool's lease keeps the region. So `'static` stands for "as long as the lease", and memory
//! that a device may still write keeps its lease for ever.
//!
//! Nothing allocates from the heap, nothing waits for another thread, and no panic leaves a
//! function.
#![allow(clippy::large_enum_variant, reason = "they live in static tables, and there is no heap to put a box in")]

mod engine;
mod fault;
mod ffi;
mod handle;
mod last_error;
mod limits;
mod object;
mod status;
mod table;

pub use ffi::*;
pub use limits::{
    CONTIGO_MAX_ARGS, CONTIGO_MAX_BUFS, CONTIGO_MAX_DEVICES, CONTIGO_MAX_DIMS, CONTIGO_MAX_ENGINES, CONTIGO_MAX_GPUS, CONTIGO_MAX_GUARDS,
    CONTIGO_MAX_JOBS, CONTIGO_MAX_NAME_BYTES, CONTIGO_MAX_POOL_SLOTS, CONTIGO_MAX_POOLS, CONTIGO_MAX_PORT_NAMES, CONTIGO_MAX_PORTS,
    CONTIGO_MAX_REGIONS, CONTIGO_MAX_SIMS, CONTIGO_MAX_TENSORS,
};
pub use status::*;
