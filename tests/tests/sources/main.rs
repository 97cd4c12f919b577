//! What the compiler alone cannot see: documents, layers, sources without `std`, programs that
//! must not compile, C headers, and Miri.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that panics has failed, which is its purpose"
)]

mod compile_fail;
mod docs;
mod layers;
mod miri;
mod source;
mod std_free;
mod uapi;
