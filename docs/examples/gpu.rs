//! docs/gpus.md: it is compiled, and not run, because it wants a GPU.

use contigo::{
    Align, Queue, Region, Result,
    cuda::{Cuda, CudaHost, Gpu, Log},
};
use contigo_gemm8::cuda::Gemm8Module;

#[rustfmt::skip]
pub(crate) fn on_a_gpu() -> Result<()> {
    let mut log = Log::new();
    let cuda = Cuda::load()?;                       // NVIDIA's driver
    let gpu = Gpu::primary(&cuda, 0)?;              // the context of the CUDA runtime
    let region = Region::new(CudaHost::allocate(&gpu, 16 << 20, Align::DLPACK)?)?;
    let module = Gemm8Module::load(&gpu, &mut log)?; // PTX, or a cubin of your own
    let mut gemm = Queue::new(module.kernel()?, 8)?; // jobs, buffers and errors as ever
    gemm.stop()?;
    drop(region);
    Ok(())
}
