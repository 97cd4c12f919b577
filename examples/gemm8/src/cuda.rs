#![allow(unsafe_code, reason = "which parameters a kernel has, and what it touches, is a promise")]
//! `gemm8` as a CUDA kernel: the same arguments, the same arithmetic bit for bit, on a GPU.

use crate::{Gemm, driver::OPERANDS, regs};
use contigo::{
    DevSlice, Driver, Result, TypedDriver,
    cuda::{CopyingFunction, CudaFunction, Gpu, Image, Launch, Log, Module, Parameter, Signature, Words},
    exactly, forward,
};
use core::ffi::CStr;

/// The kernels of `kernels/gemm8.cu`, as PTX for compute capability 5.3 and newer;
/// `kernels/README.md` says how it is made.
pub const PTX: &CStr = match CStr::from_bytes_with_nul(concat!(include_str!("../kernels/gemm8.ptx"), "\0").as_bytes()) {
    Ok(text) => text,
    Err(_) => c"",
};

/// `gemm8` on a GPU: operands, arguments and argument words are those of the FPGA's engine
/// ([`Gemm8`](crate::Gemm8)). `F` is the kernel: [`CudaFunction`], or [`CopyingFunction`].
///
/// ```no_run
/// use contigo::{Align, Engine, Region};
/// use core::time::Duration;
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
/// let [_, _, _, c] = engine.start(operands, &args)?.wait(Duration::from_millis(100))?.buffers;
/// println!("{:?}", c.view::<i32>()?);
/// # Ok::<(), contigo::Error>(())
/// ```
#[derive(Debug)]
pub struct Gemm8Kernel<F>(F);

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
    /// As [`CudaFunction::new`].
    pub fn kernel(&'g self) -> Result<Gemm8Kernel<CudaFunction<'g>>> {
        // SAFETY: the module is [`PTX`], whose `gemm8` has these parameters, and
        // `Gemm8Kernel::check` compares what they say.
        unsafe { CudaFunction::new(&self.0, c"gemm8", signature()?) }.map(Gemm8Kernel)
    }

    /// `gemm8` on the GPU's own memory, with so many bytes for each operand.
    ///
    /// # Errors
    /// As [`CopyingFunction::new`].
    pub fn copying(&'g self, capacity_bytes: [usize; 4]) -> Result<Gemm8Kernel<CopyingFunction<'g>>> {
        // SAFETY: as in `kernel`.
        unsafe { CopyingFunction::new(&self.0, c"gemm8", signature()?, &capacity_bytes) }.map(Gemm8Kernel)
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

/// `gemm8(a, b, bias, c, m, n, k, flags)`.
fn signature() -> Result<Signature> {
    let [a, b, bias, c] = OPERANDS.map(Parameter::Operand);
    const WORD: Parameter = Parameter::Words(1);
    Signature::new("gemm8 (CUDA)", &[a, b, bias, c, WORD, WORD, WORD, WORD])
}

/// The kernel's words for the engine's: a launch for so many elements, the sizes, and `flags`.
fn launched(words: &[u32]) -> Result<Words> {
    const RELU: u32 = 1;
    const INT8: u32 = 2;
    const SHIFT_AT: u32 = 8;
    let [m, n, k, mode] = *exactly(words)?;
    let relu = if mode & regs::MODE_RELU == 0 { 0 } else { RELU };
    let flags = relu | if mode & regs::MODE_RAW == 0 { INT8 | (mode & regs::MODE_SHIFT) << SHIFT_AT } else { 0 };
    let blocks = (u64::from(m) * u64::from(n)).div_ceil(THREADS.into()).clamp(1, MAX_BLOCKS);
    Ok(Launch::of(u32::try_from(blocks).unwrap_or(1), THREADS).with(&[m, n, k, flags]))
}

// SAFETY: all of it is the kernel's, with fewer jobs. `kernels/gemm8.cu`: a thread reads rows of A,
// columns of B and a word of bias, and writes elements of C. All of them lie inside
// `operand_bytes`, which `check` compares with the operands.
unsafe impl<F: Driver> Driver for Gemm8Kernel<F> {
    forward!(|this| this.0 => name, port, addr_bits, operands, depth, in_order, stop_program, ran_dry);
    forward!(|this| this.0 => poll, stop, arm_irq);

    fn check(&self, operands: &[DevSlice], words: &[u32]) -> Result<()> {
        self.0.check(operands, &launched(words)?)?;
        Gemm::from_words(exactly(words)?).check(exactly(operands)?)
    }

    unsafe fn submit(&mut self, slot: usize, operands: &[DevSlice], words: &[u32]) -> Result<()> {
        // SAFETY: the caller's promise; `check` let these words pass, too.
        unsafe { self.0.submit(slot, operands, &launched(words)?) }
    }
}

impl<F: Driver> TypedDriver<4> for Gemm8Kernel<F> {
    contigo::no_report!(Gemm, 4);
}

impl Gemm8Kernel<CopyingFunction<'_>> {
    /// How many bytes were copied so far, to the GPU and back.
    #[must_use]
    pub const fn bytes_copied(&self) -> u64 {
        self.0.bytes_copied()
    }
}
