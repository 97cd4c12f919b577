//! docs/gpus.md.

use contigo::{Queue, Region, Result};
use contigo_gemm8::{Gemm, Output, vulkan::Gemm8Module};
use contigo_gpu::vulkan::{VulkanGpu, VulkanMemory};
use core::time::Duration;

#[rustfmt::skip]
pub(crate) fn run() -> Result<()> {
    let gpu = VulkanGpu::open(0)?;                              // an APU, a Mali, an Adreno; or Mesa's of the CPU
    let region = Region::new(VulkanMemory::allocate(gpu, 1 << 20)?)?;   // ::import takes memory that you have
    let module = Gemm8Module::load(gpu)?;                       // a compute shader; yours is a VulkanKernel
    let mut queue = Queue::new(module.kernel()?, 1)?;
    let [mut a, mut b, mut bias, c] = [64, 1024, 64, 64].map(|len| region.alloc(len, gpu.align()));
    a.as_mut().unwrap().view_at_mut::<i8>(..64)?.fill(1);       // the CPU writes where the GPU will read
    b.as_mut().unwrap().view_at_mut::<i8>(..1024)?.fill(2);
    bias.as_mut().unwrap().view_at_mut::<i32>(..64)?.fill(100);
    let operands = [a?.to_device(..64), b?.to_device(..1024), bias?.to_device(..64), c?.from_device(..64)];
    let gemm = Gemm { m: 1, n: 16, k: 64, output: Output::Int32 { relu: false } };
    let [_, _, _, c] = queue.run(operands, &gemm.words(), Duration::from_secs(10))?.buffers;
    assert_eq!(c.view_at::<i32>(..64)?, [228; 16]);             // and reads where the GPU wrote
    assert_eq!(region.stats().bytes_copied, 0);
    Ok(())
}
