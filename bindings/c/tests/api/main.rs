//! The functions that C calls, on simulated boards: what each does, and each mistake's code.
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

mod channels;
mod cores;
mod design;
mod errors;
#[cfg(feature = "gpu")]
mod gpus;
mod misuse;
mod names;
#[cfg(not(all(feature = "cuda", target_pointer_width = "64")))]
mod no_cuda;
mod split;
mod structs;
mod tensor;
mod threads;
mod transfer;
