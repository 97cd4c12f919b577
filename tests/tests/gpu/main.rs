//! What `cuda.rs` tests on a driver that stands in for NVIDIA's, on a real one: `tests/gpu/run`. Each test is skipped by name where there is no GPU.
#![cfg(target_pointer_width = "64")]
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that panics has failed, which is its purpose; the driver's functions are called beside the runtime"
)]

mod conformance;
mod jobs;
mod raw;

use contigo::cuda::{Cuda, Gpu};
use contigo_tests::emulated::skipped;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// The first GPU, for the whole program; or why there is none.
fn gpu() -> Result<&'static Gpu<'static>, String> {
    static GPU: OnceLock<Result<Gpu<'static>, String>> = OnceLock::new();
    let open = || {
        let cuda: &'static Cuda = Box::leak(Box::new(Cuda::load()?));
        Gpu::primary(cuda, 0)
    };
    GPU.get_or_init(|| open().map_err(|error| error.to_string())).as_ref().map_err(Clone::clone)
}

/// The first GPU, for one test at a time, so that free memory can be compared; `None`, and the test's name on standard error, where there is none.
fn alone(test: &str) -> Option<(&'static Gpu<'static>, MutexGuard<'static, ()>)> {
    static ALONE: Mutex<()> = Mutex::new(());
    match gpu() {
        Ok(gpu) => Some((gpu, ALONE.lock().unwrap_or_else(PoisonError::into_inner))),
        Err(why) => {
            skipped(test, &why);
            None
        }
    }
}
