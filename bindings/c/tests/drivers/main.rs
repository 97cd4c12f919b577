//! Drivers that are no part of the library: written in C, registered by Rust, or in a shared
//! library. A program of its own, because the table of drivers is the process's, and others list
//! it.
#![allow(
    unsafe_code,
    clippy::undocumented_unsafe_blocks,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that panics has failed, which is its purpose; the C functions take pointers, \
              which are references here, or NULL on purpose"
)]

#[path = "../common/mod.rs"]
mod common;

mod cost;
mod jobs;
mod kernels;
mod loaded;
mod registered;
