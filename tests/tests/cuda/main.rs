//! Memory that CUDA pins, and a GPU's kernels, on a driver that stands in for NVIDIA's and is as
//! hostile as the reference allows. The GPU's view is elsewhere than the CPU's, and pinned memory
//! is aligned to 16 bytes. Results are seen only when the driver has said so; errors come late and
//! stay. `gpu/fake-cuda/` is that driver; every call of it that fails is tried. `header` and
//! `nvidia` are about NVIDIA's own: what its `cuda.h` says, and what its driver answers where there
//! is no GPU.
#![cfg(target_pointer_width = "64")]
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that panics has failed, which is its purpose; drivers and kernels are promises"
)]

mod conformance;
mod copying;
mod functions;
mod gpus;
mod handles;
mod header;
mod jobs;
mod memory;
mod nvidia;
#[path = "../../../examples/gemm8/tests/products/mod.rs"]
mod products;
mod tensors;

use contigo::cuda::{Cuda, CudaHost, Gpu};
use contigo::{Align, Error, Result};
use fake_cuda::{Config, Controls, Counters, Function};
use std::ffi::{CString, c_void};
use std::ops::Deref;
use std::os::unix::ffi::OsStrExt;
use std::thread;

/// The driver with the settings in `config`, and the counters of its calls, which also keep the
/// other tests away.
fn driver(config: &Config) -> (Controls, Cuda) {
    let controls = Controls::take(config);
    let cuda = load().unwrap();
    (controls, cuda)
}

fn load() -> Result<Cuda> {
    let file = CString::new(fake_cuda::library().as_os_str().as_bytes()).unwrap();
    // SAFETY: it behaves as the driver's reference says; that is what it is for.
    unsafe { Cuda::load_from(&file) }
}

/// Memory for a test, at DLPack's alignment.
fn block(gpu: &Gpu) -> Result<CudaHost> {
    CudaHost::allocate(gpu, 64 * 1024, Align::DLPACK)
}

/// The functions of the driver that a program calls beside the runtime.
fn function<F: Copy>(name: &str) -> F {
    // SAFETY: loaded already; the caller names the function's type.
    unsafe {
        let library = libloading::Library::new(fake_cuda::library().to_str().unwrap()).unwrap();
        let found = *library.get::<F>(name).unwrap();
        std::mem::forget(library);
        found
    }
}

/// The context that is current on this thread.
fn current() -> *mut c_void {
    let current = function::<unsafe extern "C" fn(*mut *mut c_void) -> i32>("cuCtxGetCurrent");
    let mut context = std::ptr::null_mut();
    // SAFETY: the pointer is a reference.
    assert_eq!(unsafe { current(&raw mut context) }, 0);
    context
}

/// Nothing is left, and nothing was done that the driver had to refuse.
fn clean(controls: &Controls) {
    clean_but_for(controls, &[]);
}

/// The same, where the test itself makes calls that are refused.
fn clean_but_for(controls: &Controls, provoked: &[Function]) {
    let counters = controls.counters();
    let lost =
        [counters.freed_under_a_kernel, counters.overruns, counters.ended_with_their_context];
    assert_eq!((counters.held(), lost), (0, [0; 3]), "{counters:?}");
    for function in Function::ALL.iter().filter(|function| !provoked.contains(function)) {
        assert_eq!(counters.refused(*function), 0, "{function:?}");
    }
}

/// The driver's counters, which have to be [`clean`] at the end of a test. It is declared first, so
/// that it is dropped last.
struct Clean {
    controls: Controls,
    /// The functions that a test lets the driver refuse.
    provoked: Vec<Function>,
    /// The test leaks: it reads the counters itself.
    leaks: bool,
}

impl Deref for Clean {
    type Target = Controls;

    fn deref(&self) -> &Controls {
        &self.controls
    }
}

impl Drop for Clean {
    fn drop(&mut self) {
        if !self.leaks && !thread::panicking() {
            clean_but_for(&self.controls, &self.provoked);
        }
    }
}

/// A driver with the settings in `config`, and its first GPU.
fn opened(config: &Config) -> (Clean, Gpu) {
    let (controls, cuda) = driver(config);
    (Clean { controls, provoked: Vec::new(), leaks: false }, Gpu::primary(&cuda, 0).unwrap())
}

/// The counters where a test has leaked something: nothing was freed under a kernel, nor with its
/// context.
fn leaked(controls: &Controls) -> Counters {
    let counters = controls.counters();
    let freed = (counters.freed_under_a_kernel, counters.ended_with_their_context);
    assert_eq!(freed, (0, 0), "{counters:?}");
    counters
}

/// The code of an [`Error::Cuda`], and the function that said it.
fn code(error: Error) -> (&'static str, i32) {
    let Error::Cuda { call, code, .. } = error else { panic!("{error:?}") };
    (call, code)
}
