#![allow(unsafe_code, reason = "which parameters a kernel has, and what it touches, is a promise")]
//! `gemm8` as a kernel of OpenCL: the same arguments, the same arithmetic bit for bit.

pub use crate::gpu::Gemm8Kernel;
use crate::gpu::{Threads, signature};
use contigo::Result;
use contigo_gpu::opencl::{Log, OpenClGpu, OpenClKernel, OpenClModule};

/// The source, which the GPU's own driver compiles.
pub const SOURCE: &str = include_str!("../kernels/gemm8.cl");

/// A handle to [`SOURCE`], built for a GPU. Its kernels keep it.
///
/// ```no_run
/// use contigo::{Queue, Region};
/// use core::time::Duration;
/// use contigo_gemm8::{Gemm, Output, opencl::Gemm8Module};
/// use contigo_gpu::opencl::{Log, OpenClGpu, OpenClMemory};
/// let gpu = OpenClGpu::open(0)?;
/// let module = Gemm8Module::build(gpu, &mut Log::new())?;
/// let region = Region::new(OpenClMemory::allocate(gpu, 1 << 20)?)?;
/// let mut queue = Queue::new(module.kernel()?, 1)?;
/// let [a, b, bias, c] = [4096, 4096, 256, 16384].map(|len| region.alloc(len, gpu.align()));
/// let operands = [a?.to_device(..), b?.to_device(..), bias?.to_device(..), c?.from_device(..)];
/// let args = Gemm { m: 64, n: 64, k: 64, output: Output::Int32 { relu: false } };
/// let [_, _, _, c] = queue.run(operands, &args.words(), Duration::from_millis(100))?.buffers;
/// println!("{:?}", c.view::<i32>()?);
/// # Ok::<(), contigo::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Gemm8Module(OpenClModule);

impl Gemm8Module {
    /// Builds it for `gpu`.
    ///
    /// # Errors
    /// As [`OpenClModule::build`].
    pub fn build(gpu: &'static OpenClGpu, log: &mut Log) -> Result<Self> {
        // SAFETY: it is OpenCL C, and includes nothing.
        unsafe { OpenClModule::build(gpu, SOURCE, c"-cl-std=CL1.2", log) }.map(Self)
    }

    /// Opens `gemm8`, which reads and writes the CPU's memory.
    ///
    /// # Errors
    /// As [`OpenClKernel::new`].
    pub fn kernel(&self) -> Result<Gemm8Kernel<OpenClKernel>> {
        // SAFETY: the module is [`SOURCE`], whose `gemm8` has these parameters, and
        // `Gemm8Kernel::check` compares their values. A work-item reads rows of A, columns of B and
        // words of bias, and writes elements of C.
        unsafe {
            Ok(Gemm8Kernel::new(
                OpenClKernel::new(&self.0, c"gemm8", signature("gemm8 (OpenCL)")?)?,
                THREADS,
            ))
        }
    }
}

/// A work-group size that every GPU supports; a work-item computes four elements.
const THREADS: Threads = Threads { per_block: 64, elements: 4 };
