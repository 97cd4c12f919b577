//! `gemm8` on GPUs that Vulkan and OpenCL reach, Mesa's and pocl's of the CPU among them: each sum
//! is compared with the runtime's arithmetic.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that panics has failed, which is its purpose"
)]

#[allow(clippy::all, clippy::unwrap_used, unsafe_code, reason = "quoted by pages")]
#[path = "../../../docs/examples/byte_offset.rs"]
mod byte_offset;
#[allow(clippy::all, clippy::unwrap_used, reason = "quoted by pages")]
#[path = "../../../docs/examples/integrated_gpu.rs"]
mod integrated_gpu;
mod products;

use contigo::{Backend, Driver, Error, Queue, Region};
use contigo_gemm8::{opencl, vulkan};
use contigo_gpu::{
    opencl::{Log, OpenClGpu, OpenClMemory},
    vulkan::{VulkanGpu, VulkanMemory},
};
use products::{OPERAND_BYTES, products};
use std::{path::Path, process::Command};

const CRATE: &str = env!("CARGO_MANIFEST_DIR");

/// Products on one GPU.
fn right<B: Backend + 'static, F: Driver>(memory: B, kernel: vulkan::Gemm8Kernel<F>) {
    let region = Region::new(memory).unwrap();
    let mut queue = Queue::new(kernel, 1).unwrap();
    products(&mut queue, &region.pool(4, OPERAND_BYTES).unwrap(), 48, 21);
}

/// The GPU, or `None` after the test's name and the reason.
fn here<G>(test: &str, opened: Result<G, Error>) -> Option<G> {
    match opened {
        Ok(gpu) => Some(gpu),
        Err(
            error @ (Error::NoLibrary { .. }
            | Error::NotFound { .. }
            | Error::Argument { .. }
            | Error::Gpu { .. }),
        ) => {
            contigo_testkit::skipped(test, &error.to_string());
            None
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn every_sum_is_right_through_vulkan() {
    let Some(gpu) = here("gemm8_gpu::every_sum_is_right_through_vulkan", VulkanGpu::open(0)) else {
        return;
    };
    let module = vulkan::Gemm8Module::load(gpu).unwrap();
    right(VulkanMemory::allocate(gpu, 1 << 20).unwrap(), module.kernel().unwrap());
}

#[test]
fn every_sum_is_right_through_opencl() {
    let Some(gpu) = here("gemm8_gpu::every_sum_is_right_through_opencl", OpenClGpu::open(0)) else {
        return;
    };
    let mut log = Log::new();
    let module = opencl::Gemm8Module::build(gpu, &mut log)
        .unwrap_or_else(|error| panic!("{error}: {}", log.as_str()));
    right(OpenClMemory::allocate(gpu, 1 << 20).unwrap(), module.kernel().unwrap());
}

/// The source is in the module, and the module is what Debian's compiler makes of it.
#[test]
fn the_spirv_is_what_the_source_compiles_to() {
    const NAME: &str = "gemm8_gpu::the_spirv_is_what_the_source_compiles_to";
    let source = include_str!("../kernels/gemm8.comp");
    assert!(
        vulkan::SPIRV.windows(source.len()).any(|part| part == source.as_bytes()),
        "run examples/gemm8/kernels/spirv"
    );
    let output =
        Command::new(Path::new(CRATE).join("kernels/spirv")).arg("--check").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    match output.status.code() {
        Some(0) => {}
        Some(3) => contigo_testkit::skipped(NAME, said.trim()),
        _ => panic!("{}\n{said}", output.status),
    }
}

#[test]
fn the_programs_of_pages_run() {
    const NAME: &str = "gemm8_gpu::the_programs_of_pages_run";
    if here(NAME, VulkanGpu::open(0)).is_some() {
        integrated_gpu::run().unwrap();
    }
    if here(NAME, OpenClGpu::open(0)).is_some() {
        byte_offset::run().unwrap();
    }
}
