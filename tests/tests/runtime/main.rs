//! Memory, jobs, tensors and errors, on the simulated board. Miri reads parts of this program
//! (`sources/miri.rs`).
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a test that panics has failed, which is its purpose; backends, drivers and models \
        are promises"
)]

mod audit;
mod closed_holes;
mod conformance;
mod core_smoke;
mod dlpack;
mod driver_buf;
mod errors;
mod gemm;
mod hand_over;
mod own_queue;
mod wrong_accesses;
