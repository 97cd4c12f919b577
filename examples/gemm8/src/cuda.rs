#![allow(unsafe_code, reason = "implementing `Kernel` is a promise about the code of a kernel")]
//! `gemm8` as a CUDA kernel: the same arguments, the same arithmetic bit for bit, on a GPU.

use crate::{Gemm, Output, driver::OPERANDS};
use contigo::{
    DevSlice, OperandSpec, Result,
    cuda::{CopyingKernel, CudaKernel, Gpu, Image, Kernel, Launch, Log, Module},
    fixed,
};
use core::ffi::CStr;

/// The kernels of `kernels/gemm8.cu`, as PTX for compute capability 5.3 and newer; `kernels/README.md` says how it is made.
pub const PTX: &CStr = match CStr::from_bytes_with_nul(concat!(include_str!("../kernels/gemm8.ptx"), "\0").as_bytes()) {
    Ok(text) => text,
    Err(_) => c"",
};

/// `gemm8` for [`CudaKernel`]: operands and arguments are those of the FPGA's engine
/// ([`Gemm8`](crate::Gemm8)).
///
/// ```no_run
/// use contigo::{Align, Engine, Region, Timeout};
/// use contigo_gemm8::{Gemm, Output, cuda::Gemm8Module};
/// use contigo::cuda::{Cuda, CudaHost, Gpu, Log};
/// let cuda = Cuda::load()?;
/// let gpu = Gpu::primary(&cuda, 0)?;
/// let module = Gemm8Module::load(&gpu, &mut Log::new())?;
/// let region = Region::new(CudaHost::allocate(&gpu, 1 << 20, Align::LINE)?)?;
/// let mut engine = Engine::new(module.kernel()?)?;
/// let [a, b, bias, c] = [4096, 4096, 256, 16384].map(|len| region.carve(len, Align::LINE));
/// let operands = [a?.into_buf().to_device(..), b?.into_buf().to_device(..), bias?.into_buf().to_device(..), c?.into_buf().from_device(..)];
/// let args = Gemm { m: 64, n: 64, k: 64, output: Output::Int32 { relu: false } };
/// let [_, _, _, c] = engine.start(operands, &args)?.wait(Timeout::ms(100))?.buffers;
/// println!("{:?}", c.view::<i32>()?);
/// # Ok::<(), contigo::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Gemm8Kernel;

/// [`PTX`] on a GPU.
#[derive(Debug)]
pub struct Gemm8Module<'g>(Module<'g>);

impl<'g> Gemm8Module<'g> {
    /// Loads it onto `gpu`.
    ///
    /// # Errors
    /// As [`Module::load`].
    pub fn load(gpu: &'g Gpu<'g>, log: &mut Log) -> Result<Self> {
        // SAFETY: it is PTX.
        unsafe { Module::load(gpu, Image::Ptx(PTX), log) }.map(Self)
    }

    /// `gemm8`, which reads and writes the CPU's memory.
    ///
    /// # Errors
    /// As [`CudaKernel::new`].
    pub fn kernel(&'g self) -> Result<CudaKernel<'g, Gemm8Kernel, 4>> {
        // SAFETY: the module is [`PTX`], whose `gemm8` is what `Gemm8Kernel` describes.
        unsafe { CudaKernel::new(&self.0) }
    }

    /// `gemm8` on the GPU's own memory, with so many bytes for each operand.
    ///
    /// # Errors
    /// As [`CopyingKernel::new`].
    pub fn copying(&'g self, capacity_bytes: [usize; 4]) -> Result<CopyingKernel<'g, Gemm8Kernel, 4>> {
        // SAFETY: as in `kernel`.
        unsafe { CopyingKernel::new(&self.0, capacity_bytes) }
    }

    /// The module, for its other kernels.
    #[must_use]
    pub const fn module(&self) -> &Module<'g> {
        &self.0
    }
}

/// Threads of a block: what fills a multiprocessor of every generation.
const THREADS: u32 = 256;
/// Blocks at most: the kernel goes round where there are more elements.
const MAX_BLOCKS: u64 = 1 << 16;

// SAFETY: `kernels/gemm8.cu`: the parameters are the operands and these four words; a thread reads rows of A, columns of B and a word of bias, and
// writes elements of C, all of them inside what `operand_bytes` says, which `check` compares with the operands.
unsafe impl Kernel<4> for Gemm8Kernel {
    type Args = Gemm;
    type Words = [u32; 4];
    const NAME: &'static str = "gemm8 (CUDA)";
    const ENTRY: &'static CStr = c"gemm8";
    const OPERANDS: [OperandSpec; 4] = OPERANDS;

    fn words(args: &Gemm) -> [u32; 4] {
        args.words()
    }

    fn check(operands: &[DevSlice; 4], words: &[u32]) -> Result<()> {
        Gemm::from_words(fixed(words)?).check(operands)
    }

    fn launch(words: &[u32]) -> Result<Launch> {
        let args = Gemm::from_words(fixed(words)?);
        const RELU: u32 = 1;
        const INT8: u32 = 2;
        const SHIFT_AT: u32 = 8;
        let flags = match args.output {
            Output::Int8 { relu, shift } => INT8 | shift << SHIFT_AT | if relu { RELU } else { 0 },
            Output::Int32 { relu } => u32::from(relu) * RELU,
        };
        let blocks = (u64::from(args.m) * u64::from(args.n)).div_ceil(THREADS.into()).clamp(1, MAX_BLOCKS);
        let scalars = [args.m, args.n, args.k, flags].map(u64::from).into_iter().collect();
        Ok(Launch { grid: [u32::try_from(blocks).unwrap_or(1), 1, 1], block: [THREADS, 1, 1], shared_bytes: 0, scalars })
    }
}
