#![allow(unsafe_code, reason = "implementing `Driver` is a promise about the kernel")]
//! `gemm8` as a GPU kernel, for every interface that launches it: the same arguments as the FPGA's
//! engine, the same arithmetic bit for bit.

use crate::{Gemm, driver::OPERANDS, regs};
use contigo::{
    Driver, Result, forward,
    job::{Launch, Parameter, Signature, Words, exactly},
    mem::DevSlice,
};

/// `gemm8` on a GPU, with the operands, arguments and argument words of the FPGA's engine
/// ([`Gemm8`](crate::Gemm8)). `F` is the kernel: CUDA's `CudaFunction` or `CopyingFunction`,
/// Vulkan's `VulkanKernel`, or OpenCL's `OpenClKernel`.
#[derive(Debug)]
pub struct Gemm8Kernel<F> {
    kernel: F,
    threads: Threads,
}

/// How a kernel is divided into blocks and threads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Threads {
    /// How many threads a block has.
    pub(crate) per_block: u32,
    /// How many elements of C a thread computes.
    pub(crate) elements: u64,
}

/// The most blocks, which every GPU accepts (Vulkan 1.3, table "Required Limits"): if there are
/// more elements, the kernel loops.
const MAX_BLOCKS: u64 = (1 << 16) - 1;

/// `gemm8(a, b, bias, c, m, n, k, flags)`.
pub(crate) fn signature(name: &'static str) -> Result<Signature> {
    let [a, b, bias, c] = OPERANDS.map(Parameter::Operand);
    const WORD: Parameter = Parameter::Words(1);
    Signature::new(name, &[a, b, bias, c, WORD, WORD, WORD, WORD])
}

impl<F> Gemm8Kernel<F> {
    /// # Safety
    /// `kernel` is made of [`signature`], and computes what `examples/gemm8/README.md` says in any
    /// grid of blocks of this many threads, inside `Gemm::operand_bytes`.
    pub(crate) const unsafe fn new(kernel: F, threads: Threads) -> Self {
        Self { kernel, threads }
    }

    /// The kernel inside.
    #[cfg(all(feature = "cuda", target_os = "linux", target_pointer_width = "64"))]
    pub(crate) const fn inner(&self) -> &F {
        &self.kernel
    }

    /// Converts the engine's words to a launch for all elements, the sizes, and `flags`.
    fn launched(&self, words: &[u32]) -> Result<Words> {
        const RELU: u32 = 1;
        const INT8: u32 = 2;
        const SHIFT_AT: u32 = 8;
        let [m, n, k, mode] = *exactly(words)?;
        let relu = if mode & regs::MODE_RELU == 0 { 0 } else { RELU };
        let flags = relu
            | if mode & regs::MODE_RAW == 0 {
                INT8 | (mode & regs::MODE_SHIFT) << SHIFT_AT
            } else {
                0
            };
        let Threads { per_block, elements } = self.threads;
        let blocks = (u64::from(m) * u64::from(n))
            .div_ceil(elements * u64::from(per_block))
            .clamp(1, MAX_BLOCKS);
        Ok(Launch::of(u32::try_from(blocks).unwrap_or(1), per_block).with(&[m, n, k, flags]))
    }
}

// SAFETY: every point is the kernel's own, for fewer jobs: its threads touch bytes inside
// `operand_bytes` (`new`), which `check` compares with the operands.
unsafe impl<F: Driver> Driver for Gemm8Kernel<F> {
    forward!(|this| this.kernel => name, port, simulated, addr_bits, operands, depth, in_order);
    forward!(|this| this.kernel => stop_program, underruns, poll, stop, arm_irq);

    fn check(&self, operands: &[DevSlice], words: &[u32]) -> Result<()> {
        self.kernel.check(operands, &self.launched(words)?)?;
        Gemm::from_words(exactly(words)?).check(exactly(operands)?)
    }

    unsafe fn submit(&mut self, slot: usize, operands: &[DevSlice], words: &[u32]) -> Result<()> {
        let words = self.launched(words)?;
        // SAFETY: the caller's promise; `check` accepted these words, too.
        unsafe { self.kernel.submit(slot, operands, &words) }
    }
}
