//! `cargo lab` as its users run it, on machines that lack things, with emulators that hang and
//! kernels that panic. No kernel is booted and none is built: every program on the PATH is a
//! script.
#![allow(
    clippy::unwrap_used,
    clippy::explicit_write,
    clippy::indexing_slicing,
    reason = "a test that panics has failed, which is its purpose"
)]

mod kernels;
mod models;
mod runs;
mod tools;
mod world;
