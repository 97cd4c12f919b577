//! The tests of `cuda.rs`, which run on a driver that stands in for NVIDIA's, here on a real one:
//! `tests/gpu/run`. Each test is skipped by name where there is no GPU.
#![cfg(target_pointer_width = "64")]
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that panics has failed; the driver's functions are called beside the runtime"
)]

mod conformance;
mod hang;
mod jobs;
mod libcuda;
#[path = "../../../examples/gemm8/tests/products/mod.rs"]
mod products;
mod raw;

use contigo::cuda::{Cuda, Gpu};
use contigo_testkit::skipped;
use std::io::{self, Write as _};
use std::sync::{OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread;

/// Who uses the GPU: checks side by side, or one test for itself.
static USERS: RwLock<()> = RwLock::new(());

/// The driver, for the whole program; or why there is none.
fn cuda() -> Result<&'static Cuda, String> {
    static CUDA: OnceLock<Result<Cuda, String>> = OnceLock::new();
    CUDA.get_or_init(|| Cuda::load().map_err(|error| error.to_string()))
        .as_ref()
        .map_err(Clone::clone)
}

/// The first GPU, for the whole program; or why there is none.
fn gpu() -> Result<&'static Gpu, String> {
    static GPU: OnceLock<Result<Gpu, String>> = OnceLock::new();
    GPU.get_or_init(|| Gpu::primary(cuda()?, 0).map_err(|error| error.to_string()))
        .as_ref()
        .map_err(Clone::clone)
}

/// The GPU is used beside other tests, for as long as this is kept.
fn beside_others() -> RwLockReadGuard<'static, ()> {
    USERS.read().unwrap_or_else(PoisonError::into_inner)
}

/// The first GPU, for one test at a time, so that free memory and times can be compared; `None`,
/// and this thread's test is skipped, where there is none.
fn alone() -> Option<(&'static Gpu, RwLockWriteGuard<'static, ()>)> {
    match gpu() {
        Ok(gpu) => Some((gpu, USERS.write().unwrap_or_else(PoisonError::into_inner))),
        Err(why) => {
            skipped(thread::current().name().unwrap_or("gpu"), &why);
            None
        }
    }
}

/// A line of a table, past the test runner's capture, and at once: what hangs behind it is not in
/// the way.
fn say(line: &str) {
    let _ = io::stderr().write_all(format!("{line}\n").as_bytes());
}
