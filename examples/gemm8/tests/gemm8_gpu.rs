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

use contigo::{Align, Backend, Driver, Error, Queue, Region};
use contigo_gemm8::{Gemm, Output, opencl, requantize, vulkan};
use contigo_gpu::{
    opencl::{Log, OpenClGpu, OpenClMemory},
    vulkan::{VulkanGpu, VulkanMemory},
};
use contigo_testkit::emulated;
use core::time::Duration;
use fastrand::Rng;
use std::{path::Path, process::Command};

const CRATE: &str = env!("CARGO_MANIFEST_DIR");

/// Every sum, as the contract says.
fn expected(gemm: &Gemm, a: &[i8], b: &[i8], bias: &[i32]) -> Vec<u8> {
    let [m, n, k] = [gemm.m, gemm.n, gemm.k].map(|size| size as usize);
    let mut bytes = Vec::new();
    for row in 0..m {
        for column in 0..n {
            let products = (0..k)
                .map(|inner| i32::from(a[row * k + inner]) * i32::from(b[inner * n + column]));
            let sum = products.fold(bias[column], i32::wrapping_add);
            let value = requantize(sum, gemm.output);
            match gemm.output {
                Output::Int8 { .. } => bytes.push(value.to_le_bytes()[0]),
                Output::Int32 { .. } => bytes.extend(value.to_le_bytes()),
            }
        }
    }
    bytes
}

/// Products of all outputs, also where the sums wrap, on one GPU.
fn right<B: Backend + 'static, F: Driver>(memory: B, kernel: vulkan::Gemm8Kernel<F>) {
    let mut rng = Rng::with_seed(21);
    let region = Region::new(memory).unwrap();
    let mut queue = Queue::new(kernel, 1).unwrap();
    let mut bufs =
        [64 << 10, 64 << 10, 4096, 64 << 10].map(|len| region.alloc(len, Align::LINE).unwrap());
    let outputs = [0, 1, 7, 31].map(|shift| Output::Int8 { relu: shift == 7, shift });
    let outputs = outputs.into_iter().chain([false, true].map(|relu| Output::Int32 { relu }));
    for (job, output) in outputs.cycle().take(48).enumerate() {
        let gemm =
            Gemm { m: rng.u32(1..=40), n: 16 * rng.u32(1..=6), k: 16 * rng.u32(1..=8), output };
        let lens = gemm.operand_bytes().map(|bytes| usize::try_from(bytes).unwrap());
        let a: Vec<i8> = (0..lens[0]).map(|_| rng.i8(..)).collect();
        let b: Vec<i8> = (0..lens[1]).map(|_| rng.i8(..)).collect();
        // Near the ends, where sums wrap.
        let bias: Vec<i32> =
            (0..gemm.n)
                .map(|_| {
                    if job % 3 == 0 {
                        i32::MAX - rng.i32(0..9999)
                    } else {
                        rng.i32(-99_999..99_999)
                    }
                })
                .collect();
        bufs[0].view_at_mut::<i8>(..lens[0]).unwrap().copy_from_slice(&a);
        bufs[1].view_at_mut::<i8>(..lens[1]).unwrap().copy_from_slice(&b);
        bufs[2].view_at_mut::<i32>(..lens[2]).unwrap().copy_from_slice(&bias);
        bufs[3].view_mut::<u8>().unwrap().fill(0xA5);
        let [left, right, add, c] = bufs;
        let operands = [
            left.to_device(..lens[0]),
            right.to_device(..lens[1]),
            add.to_device(..lens[2]),
            c.from_device(..lens[3]),
        ];
        bufs = queue.run(operands, &gemm.words(), Duration::from_secs(20)).unwrap().buffers;
        let (found, behind) = bufs[3].view::<u8>().unwrap().split_at(lens[3]);
        assert_eq!(found, expected(&gemm, &a, &b, &bias), "{gemm:?}");
        assert!(behind.iter().all(|byte| *byte == 0xA5), "{gemm:?}: bytes behind C");
    }
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
            emulated::skipped(test, &error.to_string());
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
        Some(3) => emulated::skipped(NAME, said.trim()),
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
