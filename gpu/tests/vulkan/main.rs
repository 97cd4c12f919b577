//! Vulkan's half of the crate, on whatever device this machine has: Mesa's lavapipe will do. Each
//! test is skipped by name where there is no device, or nothing that compiles shaders.
#![cfg(feature = "vulkan")]
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that panics has failed; shaders are promised to be what they are"
)]

mod conformance;
mod fork;
mod hang;
mod jobs;
mod machines;
mod memory;
mod refused;
mod shaders;
mod validation;

use contigo::{Error, Region, job::Signature};
use contigo_gpu::vulkan::{VulkanGpu, VulkanKernel, VulkanMemory, VulkanModule};
use std::{
    io::{self, Write as _},
    time::Duration,
};

/// How long a job may take: long enough for two slow cores with other work.
const LIMIT: Duration = Duration::from_secs(20);

/// Says that `test` was skipped, and why, past the test runner's capture; in one piece, for tests
/// run side by side.
fn skipped(test: &str, why: &str) {
    let _ = io::stderr().write_all(format!("SKIPPED: vulkan::{test}: {why}\n").as_bytes());
}

/// Does the error of opening the first device say that this machine has none? Any other one is a
/// fault of this crate or of the driver.
fn is_nothing_there(error: &Error) -> bool {
    const INCOMPATIBLE_DRIVER: i32 = -9;
    match error {
        Error::NoLibrary { .. }
        | Error::NotFound { .. }
        | Error::Argument { name: "the GPU's ordinal", value: 0, .. } => true,
        Error::Gpu { code, .. } => *code == INCOMPATIBLE_DRIVER,
        _ => false,
    }
}

#[test]
fn a_test_is_skipped_only_where_no_device_is() {
    let argument =
        Error::Argument { name: "the GPU's ordinal", value: 0, min: 0, max: 0, multiple_of: 1 };
    let gpu = |code| Error::Gpu { call: "vkCreateInstance", code, name: "" };
    let nothing = [
        Error::NoLibrary { name: "", fix: "" },
        Error::NotFound { what: "", among: 0.into() },
        argument,
        gpu(-9),
    ];
    assert!(nothing.iter().all(is_nothing_there));
    let faults = [
        gpu(-3),
        gpu(-4),
        Error::Contended { tries: 1 },
        Error::Forked { owner_pid: 1 },
        Error::Unsupported { what: "", fix: "" },
    ];
    assert!(!faults.iter().any(is_nothing_there));
}

/// The first device; `None`, and the test's name on standard error, where there is none.
///
/// # Panics
/// It does not open.
fn gpu(test: &str) -> Option<&'static VulkanGpu> {
    match VulkanGpu::open(0) {
        Ok(gpu) => Some(gpu),
        Err(error) if is_nothing_there(&error) => {
            skipped(test, &error.to_string());
            None
        }
        Err(error) => panic!("the first device does not open: {error}"),
    }
}

/// The first device and a shader, as [`gpu`].
fn with_shader(test: &str, glsl: &str) -> Option<(&'static VulkanGpu, VulkanModule)> {
    let gpu = gpu(test)?;
    let spirv = shaders::compiled(glsl).inspect_err(|why| skipped(test, why)).ok()?;
    // SAFETY: glslangValidator made it.
    Some((gpu, unsafe { VulkanModule::load(gpu, &spirv) }.unwrap()))
}

/// A kernel of 64 threads.
fn kernel(module: &VulkanModule, signature: Signature) -> VulkanKernel {
    // SAFETY: each shader here touches the elements that its signature sizes.
    unsafe { VulkanKernel::new(module, c"main", signature, [64, 1, 1]) }.unwrap()
}

/// A region of `len_bytes` or a little more.
fn region(gpu: &'static VulkanGpu, len_bytes: usize) -> Region {
    Region::new(VulkanMemory::allocate(gpu, len_bytes).unwrap()).unwrap()
}
