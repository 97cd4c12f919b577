#![allow(unsafe_code, reason = "which parameters a kernel has, and what it touches, is a promise")]
//! `gemm8` as a CUDA kernel: the same arguments, the same arithmetic bit for bit, on a GPU.

pub use crate::gpu::Gemm8Kernel;
use crate::gpu::{Threads, signature};
use contigo::{
    Result,
    cuda::{CopyingFunction, CudaFunction, Gpu, Image, Log, Module},
};
use core::ffi::CStr;

/// The kernels of `kernels/gemm8.cu`, as PTX for compute capability 5.3 and newer;
/// `kernels/README.md` says how it is made.
pub const PTX: &CStr =
    match CStr::from_bytes_with_nul(concat!(include_str!("../kernels/gemm8.ptx"), "\0").as_bytes())
    {
        Ok(text) => text,
        Err(_) => c"",
    };

/// [`PTX`] on a GPU.
///
/// ```no_run
/// use contigo::{Align, Queue, Region};
/// use core::time::Duration;
/// use contigo_gemm8::{Gemm, Output, cuda::Gemm8Module};
/// use contigo::cuda::{Cuda, CudaHost, Gpu, Log};
/// let cuda = Cuda::load()?;
/// let gpu = Gpu::primary(&cuda, 0)?;
/// let module = Gemm8Module::load(&gpu, &mut Log::new())?;
/// let region = Region::new(CudaHost::allocate(&gpu, 1 << 20, Align::LINE)?)?;
/// let mut queue = Queue::new(module.kernel()?, 1)?;
/// let [a, b, bias, c] = [4096, 4096, 256, 16384].map(|len| region.alloc(len, Align::LINE));
/// let operands = [a?.to_device(..), b?.to_device(..), bias?.to_device(..), c?.from_device(..)];
/// let args = Gemm { m: 64, n: 64, k: 64, output: Output::Int32 { relu: false } };
/// let [_, _, _, c] = queue.run(operands, &args.words(), Duration::from_millis(100))?.buffers;
/// println!("{:?}", c.view::<i32>()?);
/// # Ok::<(), contigo::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Gemm8Module(Module);

impl Gemm8Module {
    /// Loads it onto `gpu`.
    ///
    /// # Errors
    /// As [`Module::load`].
    pub fn load(gpu: &Gpu, log: &mut Log) -> Result<Self> {
        // SAFETY: it is PTX.
        unsafe { Module::load(gpu, Image::Ptx(PTX), log) }.map(Self)
    }

    /// Opens `gemm8`, which reads and writes the CPU's memory.
    ///
    /// # Errors
    /// As [`CudaFunction::new`].
    pub fn kernel(&self) -> Result<Gemm8Kernel<CudaFunction>> {
        // SAFETY: the module is [`PTX`], whose `gemm8` has these parameters, and
        // `Gemm8Kernel::check` compares their values. `kernels/gemm8.cu`: a thread reads rows of A,
        // columns of B and a word of bias, and writes elements of C.
        unsafe {
            Ok(Gemm8Kernel::new(CudaFunction::new(&self.0, c"gemm8", signature(NAME)?)?, THREADS))
        }
    }

    /// Opens `gemm8` in the GPU's own memory, with this many bytes for each operand.
    ///
    /// # Errors
    /// As [`CopyingFunction::new`].
    pub fn copying(&self, capacity_bytes: [usize; 4]) -> Result<Gemm8Kernel<CopyingFunction>> {
        // SAFETY: as in `kernel`.
        unsafe {
            Ok(Gemm8Kernel::new(
                CopyingFunction::new(&self.0, c"gemm8", signature(NAME)?, &capacity_bytes)?,
                THREADS,
            ))
        }
    }

    /// Returns the module, for its other kernels.
    #[must_use]
    pub const fn module(&self) -> &Module {
        &self.0
    }
}

const NAME: &str = "gemm8 (CUDA)";
/// A block fills a multiprocessor of every generation; a thread computes one element.
const THREADS: Threads = Threads { per_block: 256, elements: 1 };

impl Gemm8Kernel<CopyingFunction> {
    /// Returns how many bytes were copied so far, to the GPU and back.
    #[must_use]
    pub const fn bytes_copied(&self) -> u64 {
        self.inner().bytes_copied()
    }
}
