#![allow(unsafe_code, reason = "which parameters a kernel has, and what it touches, is a promise")]
//! `gemm8` as a compute shader of Vulkan: the same arguments, the same arithmetic bit for bit.

pub use crate::gpu::Gemm8Kernel;
use crate::gpu::{Threads, signature};
use contigo::Result;
use contigo_gpu::vulkan::{VulkanGpu, VulkanKernel, VulkanModule};

/// `kernels/gemm8.comp` as SPIR-V for Vulkan 1.1; `kernels/README.md` says how it is made.
pub const SPIRV: &[u8] = include_bytes!("../kernels/gemm8.spv");

/// A handle to [`SPIRV`] on a GPU; its kernels hold it.
///
/// ```no_run
/// use contigo::{Queue, Region};
/// use core::time::Duration;
/// use contigo_gemm8::{Gemm, Output, vulkan::Gemm8Module};
/// use contigo_gpu::vulkan::{VulkanGpu, VulkanMemory};
/// let gpu = VulkanGpu::open(0)?;
/// let module = Gemm8Module::load(gpu)?;
/// let region = Region::new(VulkanMemory::allocate(gpu, 1 << 20)?)?;
/// let mut queue = Queue::new(module.kernel()?, 1)?;
/// let [a, b, bias, c] = [4096, 4096, 256, 16384].map(|len| region.alloc(len, gpu.align()));
/// let operands = [a?.to_device(..), b?.to_device(..), bias?.to_device(..), c?.from_device(..)];
/// let args = Gemm { m: 64, n: 64, k: 64, output: Output::Int32 { relu: false } };
/// let [_, _, _, c] = queue.run(operands, &args.words(), Duration::from_millis(100))?.buffers;
/// println!("{:?}", c.view::<i32>()?);
/// # Ok::<(), contigo::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Gemm8Module(VulkanModule);

impl Gemm8Module {
    /// Loads it onto `gpu`.
    ///
    /// # Errors
    /// As [`VulkanModule::load`].
    pub fn load(gpu: &'static VulkanGpu) -> Result<Self> {
        // SAFETY: it is SPIR-V, which glslangValidator made.
        unsafe { VulkanModule::load(gpu, SPIRV) }.map(Self)
    }

    /// Opens `gemm8`, which reads and writes the CPU's memory.
    ///
    /// # Errors
    /// As [`VulkanKernel::new`].
    pub fn kernel(&self) -> Result<Gemm8Kernel<VulkanKernel>> {
        // SAFETY: the module is [`SPIRV`], whose bindings and push constants these are, and
        // `Gemm8Kernel::check` compares their values. `kernels/gemm8.comp`: an invocation reads
        // rows of A, columns of B and words of bias, and writes elements of C.
        unsafe {
            Ok(Gemm8Kernel::new(
                VulkanKernel::new(
                    &self.0,
                    c"main",
                    signature("gemm8 (Vulkan)")?,
                    [THREADS.per_block, 1, 1],
                )?,
                THREADS,
            ))
        }
    }
}

/// The shader's `local_size_x`; an invocation computes four elements.
const THREADS: Threads = Threads { per_block: 64, elements: 4 };
