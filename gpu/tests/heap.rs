//! A job takes nothing of this program's heap, through either interface. The driver's own is C's,
//! and is not counted.
#![cfg(all(feature = "opencl", feature = "vulkan"))]
#![allow(unsafe_code, reason = "a kernel and a shader")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that panics has failed")]

use contigo::job::Parameter::Operand;
use contigo::job::{Launch, Signature};
use contigo::{CpuBuf, Driver, Error, OperandSpec, Queue, Region};
use contigo_exerciser::{CountingHeap, on_this_thread};
use contigo_gpu::opencl::{Log, OpenClGpu, OpenClKernel, OpenClMemory, OpenClModule};
use contigo_gpu::vulkan::{VulkanGpu, VulkanKernel, VulkanMemory, VulkanModule};
use contigo_testkit::skipped;
use std::time::Duration;

#[path = "vulkan/shaders.rs"]
#[allow(dead_code, reason = "one of them is used here")]
mod shaders;

#[global_allocator]
static HEAP: CountingHeap = CountingHeap;

/// Twenty jobs that work in place, none of which takes a byte.
fn twenty_jobs(kernel: impl Driver, region: &Region, words: &[u32]) -> CpuBuf {
    let mut queue = Queue::new(kernel, 1).unwrap();
    let mut buf = region.alloc(4096, region.line()).unwrap();
    let before = on_this_thread();
    for _ in 0..20 {
        [buf] = queue.run([buf.in_out(..)], words, Duration::from_secs(30)).unwrap().buffers;
    }
    assert_eq!(on_this_thread() - before, 0);
    // The count counts.
    drop(vec![0_u8; 1]);
    assert_eq!(on_this_thread() - before, 1);
    buf
}

#[test]
fn a_job_of_opencl_takes_nothing_of_the_heap() {
    const TEST: &str = "heap::a_job_of_opencl_takes_nothing_of_the_heap";
    let gpu = match OpenClGpu::open(0) {
        Ok(gpu) => gpu,
        Err(error @ (Error::NoLibrary { .. } | Error::NotFound { .. })) => {
            return skipped(TEST, &error.to_string());
        }
        Err(error) => panic!("{error}"),
    };
    let source = "kernel void flip(global uchar *bytes) { bytes[get_global_id(0)] ^= 0xFF; }";
    // SAFETY: the source above.
    let module = unsafe { OpenClModule::build(gpu, source, c"", &mut Log::new()) }.unwrap();
    let signature = Signature::new("flip", &[Operand(OperandSpec::in_out())]).unwrap();
    // SAFETY: it is launched with as many items as there are bytes.
    let kernel = unsafe { OpenClKernel::new(&module, c"flip", signature) }.unwrap();
    let region = Region::new(OpenClMemory::allocate(gpu, 1 << 16).unwrap()).unwrap();
    let buf = twenty_jobs(kernel, &region, &Launch::of(64, 64).with(&[]));
    assert_eq!(buf.view::<u8>().unwrap(), [0; 4096]);
}

#[test]
fn a_job_of_vulkan_takes_nothing_of_the_heap() {
    const TEST: &str = "heap::a_job_of_vulkan_takes_nothing_of_the_heap";
    let gpu = match VulkanGpu::open(0) {
        Ok(gpu) => gpu,
        Err(
            error
            @ (Error::NoLibrary { .. } | Error::NotFound { .. } | Error::Gpu { code: -9, .. }),
        ) => {
            return skipped(TEST, &error.to_string());
        }
        Err(error) => panic!("{error}"),
    };
    let spirv = match shaders::compiled(shaders::SCALE) {
        Ok(spirv) => spirv,
        Err(why) => return skipped(TEST, &why),
    };
    // SAFETY: glslangValidator made it.
    let module = unsafe { VulkanModule::load(gpu, &spirv) }.unwrap();
    // SAFETY: a thread touches the elements that the signature sizes.
    let kernel =
        unsafe { VulkanKernel::new(&module, c"main", shaders::scale(), [64, 1, 1]) }.unwrap();
    let region = Region::new(VulkanMemory::allocate(gpu, 1 << 16).unwrap()).unwrap();
    let buf = twenty_jobs(kernel, &region, &Launch::of(16, 64).with(&[1_024, 2]));
    assert_eq!(buf.view::<u32>().unwrap(), [(1 << 20) - 1; 1024]);
}
