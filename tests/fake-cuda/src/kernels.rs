//! The kernels that the fake knows by their names: `gemm8` as `boards/gemm8.md` has its arithmetic, `copy_bytes` and `fill_bytes`.

use crate::{
    codes::code,
    memory::overlap,
    state::{Answer, Handle, State},
};
use std::{ffi::c_void, ptr};

/// `gemm8`'s flags.
const RELU: u32 = 1 << 0;
const INT8: u32 = 1 << 1;
const SHIFT_AT: u32 = 8;
const SHIFT_MASK: u32 = 31;

/// A launch, with its parameters as they were then.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kernel {
    /// `gemm8(const int8_t *a, const int8_t *b, const int32_t *bias, void *c, uint32_t m, uint32_t n, uint32_t k, uint32_t flags)`
    Gemm8(Gemm8),
    /// `copy_bytes(void *dst, const void *src, uint64_t len)`
    Copy { dst: u64, src: u64, len: u64 },
    /// `fill_bytes(void *dst, uint32_t value, uint64_t len)`
    Fill { dst: u64, value: u32, len: u64 },
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Gemm8 {
    a: u64,
    b: u64,
    bias: u64,
    c: u64,
    m: u32,
    n: u32,
    k: u32,
    flags: u32,
}

/// Memory that a kernel uses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operand {
    pub(crate) addr: u64,
    pub(crate) len: u64,
    align: u64,
}

/// `cuLaunchKernel`'s `kernelParams`: an array of pointers to the values.
#[derive(Clone, Copy, Debug)]
struct Params(*const *const c_void);

impl Params {
    /// # Safety
    ///
    /// The array has more than `index` pointers, and this one is to a `T`.
    unsafe fn value<T: Copy>(self, index: usize) -> Answer<T> {
        // SAFETY: the caller's promise.
        let at = unsafe { self.0.add(index).read() };
        // SAFETY: the caller's promise; a null pointer is looked for first.
        if at.is_null() { Err(code::INVALID_VALUE) } else { Ok(unsafe { at.cast::<T>().read_unaligned() }) }
    }
}

impl Kernel {
    /// The kernel of this name with its parameters; `None` for a name that the fake does not know.
    ///
    /// # Safety
    ///
    /// `params` is null or has the pointers that the kernel's declaration above needs, each to a value of its type.
    pub(crate) unsafe fn with_params(name: &str, params: *const *const c_void) -> Option<Answer<Self>> {
        if !["gemm8", "copy_bytes", "fill_bytes"].contains(&name) {
            return None;
        }
        if ptr::eq(params, ptr::null()) {
            return Some(Err(code::INVALID_VALUE));
        }
        let params = Params(params);
        // SAFETY: the caller's promise, in the order of the declarations.
        Some(unsafe {
            match name {
                "gemm8" => Gemm8::with_params(params).map(Self::Gemm8),
                "copy_bytes" => {
                    let values = (params.value(0), params.value(1), params.value(2));
                    if let (Ok(dst), Ok(src), Ok(len)) = values { Ok(Self::Copy { dst, src, len }) } else { Err(code::INVALID_VALUE) }
                }
                _ => {
                    let values = (params.value(0), params.value(1), params.value(2));
                    if let (Ok(dst), Ok(value), Ok(len)) = values { Ok(Self::Fill { dst, value, len }) } else { Err(code::INVALID_VALUE) }
                }
            }
        })
    }

    pub(crate) fn operands(&self) -> Vec<Operand> {
        let bytes = |addr, len| Operand { addr, len, align: 1 };
        match *self {
            Self::Gemm8(Gemm8 { a, b, bias, c, m, n, k, flags }) => {
                let (m, n, k) = (u64::from(m), u64::from(n), u64::from(k));
                let element = if flags & INT8 == 0 { 4 } else { 1 };
                vec![
                    bytes(a, m.saturating_mul(k)),
                    bytes(b, k.saturating_mul(n)),
                    Operand { addr: bias, len: 4 * n, align: 4 },
                    Operand { addr: c, len: m.saturating_mul(n).saturating_mul(element), align: element },
                ]
            }
            Self::Copy { dst, src, len } => vec![bytes(dst, len), bytes(src, len)],
            Self::Fill { dst, len, .. } => vec![bytes(dst, len)],
        }
    }

    /// What it writes; `None` where it reads there as well.
    pub(crate) fn output(&self) -> Option<Operand> {
        let mut inputs = self.operands();
        let output = match self {
            Self::Gemm8(_) => inputs.pop()?,
            Self::Copy { .. } | Self::Fill { .. } => inputs.remove(0),
        };
        inputs.iter().all(|input| !overlap(input.addr, input.len, output.addr, output.len)).then_some(output)
    }

    /// What it would fail with, now.
    pub(crate) fn check(&self, state: &State, context: Handle) -> Answer {
        for operand in self.operands() {
            if !state.check_range(context, operand.addr, operand.len) {
                return Err(code::ILLEGAL_ADDRESS);
            }
            if !operand.addr.is_multiple_of(operand.align) {
                return Err(code::MISALIGNED_ADDRESS);
            }
        }
        Ok(())
    }

    /// What it does to memory.
    pub(crate) fn run(&self, state: &mut State, context: Handle) -> Answer {
        self.check(state, context)?;
        match *self {
            Self::Gemm8(gemm) => gemm.run(state, context),
            Self::Copy { dst, src, len } => {
                let bytes = state.read(context, src, len)?;
                state.write(context, dst, &bytes)
            }
            Self::Fill { dst, value, len } => state.fill(context, dst, value.to_le_bytes()[0], len),
        }
    }
}

impl Gemm8 {
    /// # Safety
    ///
    /// As for [`Kernel::with_params`].
    unsafe fn with_params(params: Params) -> Answer<Self> {
        // SAFETY: the caller's promise, in the order of the declaration.
        unsafe {
            Ok(Self {
                a: params.value(0)?,
                b: params.value(1)?,
                bias: params.value(2)?,
                c: params.value(3)?,
                m: params.value(4)?,
                n: params.value(5)?,
                k: params.value(6)?,
                flags: params.value(7)?,
            })
        }
    }

    fn run(&self, state: &mut State, context: Handle) -> Answer {
        let (m, n, k) = (u64::from(self.m), u64::from(self.n), u64::from(self.k));
        let a = state.read(context, self.a, m * k)?;
        let b = state.read(context, self.b, k * n)?;
        let bias = state.read(context, self.bias, 4 * n)?;
        let bias: Vec<i32> = bias.as_chunks::<4>().0.iter().map(|word| i32::from_le_bytes(*word)).collect();
        let (row_bytes, inner) = (self.n as usize, self.k as usize);
        let mut c = Vec::new();
        for row in 0..self.m as usize {
            let mut sums = bias.clone();
            let left = a.iter().skip(row * inner).take(inner);
            for (left, right) in left.zip(b.chunks_exact(row_bytes.max(1))) {
                for (sum, right) in sums.iter_mut().zip(right) {
                    *sum = sum.wrapping_add(i32::from(left.cast_signed()) * i32::from(right.cast_signed()));
                }
            }
            for sum in sums {
                self.store(sum, &mut c);
            }
        }
        state.write(context, self.c, &c)
    }

    /// Steps 2 and 3 of `boards/gemm8.md`, "Arithmetic", written apart from the runtime's own.
    fn store(&self, sum: i32, c: &mut Vec<u8>) {
        let sum = if self.flags & RELU != 0 { sum.max(0) } else { sum };
        if self.flags & INT8 == 0 {
            c.extend(sum.to_le_bytes());
            return;
        }
        let shift = (self.flags >> SHIFT_AT) & SHIFT_MASK;
        let rounding = if shift == 0 { 0 } else { 1_i64 << (shift - 1) };
        let shifted = (i64::from(sum) + rounding) >> shift;
        c.push(shifted.clamp(-128, 127).to_le_bytes()[0]);
    }
}
