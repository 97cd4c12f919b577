//! A job of Vulkan takes nothing of this program's heap. The driver's own is C's, and is not
//! counted.
#![cfg(feature = "vulkan")]
#![allow(unsafe_code, reason = "a shader")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that panics has failed")]

use contigo::{Error, Queue, Region, job::Launch};
use contigo_exerciser::{CountingHeap, on_this_thread};
use contigo_gpu::vulkan::{VulkanGpu, VulkanKernel, VulkanMemory, VulkanModule};
use contigo_testkit::emulated::skipped;
use std::time::Duration;

#[path = "vulkan/shaders.rs"]
#[allow(dead_code, reason = "one of them is used here")]
mod shaders;

#[global_allocator]
static HEAP: CountingHeap = CountingHeap;

#[test]
fn a_job_takes_nothing_of_the_heap() {
    const TEST: &str = "vulkan_heap::a_job_takes_nothing_of_the_heap";
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
    let mut queue = Queue::new(kernel, 1).unwrap();
    let region = Region::new(VulkanMemory::allocate(gpu, 1 << 16).unwrap()).unwrap();
    let mut buf = region.alloc(4096, gpu.align()).unwrap();
    let words = Launch::of(16, 64).with(&[1_024, 2]);
    let before = on_this_thread();
    for _ in 0..20 {
        [buf] = queue.run([buf.in_out(..)], &words, Duration::from_secs(30)).unwrap().buffers;
    }
    assert_eq!(on_this_thread() - before, 0);
    assert_eq!(buf.view::<u32>().unwrap(), [(1 << 20) - 1; 1024]);
    // The count counts.
    drop(vec![0_u8; 1]);
    assert_eq!(on_this_thread() - before, 1);
}
