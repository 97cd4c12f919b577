//! Launches: what the fake knows of `gemm8`, `copy_bytes` and `fill_bytes`, which is the memory that they may use; what they do with it is
//! what their PTX says.

use crate::{
    Launch,
    codes::code,
    memory::overlap,
    ptx::{Entry, Grid, Window},
    state::{Answer, Handle, State},
};
use std::{ffi::c_void, ptr, sync::Arc};

/// `gemm8`'s flag for int8 output.
const INT8: u64 = 1 << 1;

/// A launch, with its parameters as they were then.
#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    entry: Arc<Entry>,
    known: Known,
    grid: Grid,
    params: Vec<u64>,
}

/// A kernel by its name; its declaration in `boards/kernels/gemm8.cu` says what the parameters are.
#[derive(Clone, Copy, Debug)]
enum Known {
    Gemm8,
    CopyBytes,
    FillBytes,
}

/// Memory that a kernel uses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operand {
    pub(crate) addr: u64,
    pub(crate) len: u64,
    align: u64,
    written: bool,
}

impl Known {
    /// The kernel of this name with parameters of so many bytes.
    fn find(entry: &Entry) -> Option<Self> {
        match (entry.name(), entry.params()) {
            ("gemm8", [8, 8, 8, 8, 4, 4, 4, 4]) => Some(Self::Gemm8),
            ("copy_bytes", [8, 8, 8]) => Some(Self::CopyBytes),
            ("fill_bytes", [8, 4, 8]) => Some(Self::FillBytes),
            _ => None,
        }
    }
}

impl Kernel {
    /// The kernel with its parameters; `NOT_SUPPORTED` for one that the fake does not know.
    ///
    /// # Safety
    ///
    /// `params` is null or has the pointers that the kernel's declaration needs, each to a value of its type.
    pub(crate) unsafe fn with_params(entry: Arc<Entry>, launch: Launch, params: *const *const c_void) -> Answer<Self> {
        let known = Known::find(&entry).ok_or(code::NOT_SUPPORTED)?;
        if params.is_null() {
            return Err(code::INVALID_VALUE);
        }
        let value = |(index, len_bytes): (usize, &usize)| {
            // SAFETY: the caller's promise.
            let at = unsafe { params.add(index).read() };
            if at.is_null() {
                return Err(code::INVALID_VALUE);
            }
            let mut bytes = [0; 8];
            // SAFETY: the caller's promise: a value of 4 or 8 bytes, as `Known::find` saw.
            unsafe { ptr::copy_nonoverlapping(at.cast(), bytes.as_mut_ptr(), *len_bytes) };
            Ok(u64::from_le_bytes(bytes))
        };
        let params = entry.params().iter().enumerate().map(value).collect::<Answer<_>>()?;
        Ok(Self { entry, known, grid: Grid { blocks: launch.grid, threads: launch.block }, params })
    }

    pub(crate) fn operands(&self) -> Vec<Operand> {
        let read = |addr, len, align| Operand { addr, len, align, written: false };
        let written = |addr, len, align| Operand { addr, len, align, written: true };
        match (self.known, self.params.as_slice()) {
            (Known::Gemm8, &[a, b, bias, c, m, n, k, flags]) => {
                let element = if flags & INT8 == 0 { 4 } else { 1 };
                vec![
                    read(a, m.saturating_mul(k), 1),
                    read(b, k.saturating_mul(n), 1),
                    read(bias, 4 * n, 4),
                    written(c, m.saturating_mul(n).saturating_mul(element), element),
                ]
            }
            (Known::CopyBytes, &[dst, src, len]) => vec![written(dst, len, 1), read(src, len, 1)],
            (Known::FillBytes, &[dst, _, len]) => vec![written(dst, len, 1)],
            _ => Vec::new(),
        }
    }

    /// What it writes; `None` where it reads there as well.
    pub(crate) fn output(&self) -> Option<Operand> {
        let (outputs, inputs): (Vec<_>, Vec<_>) = self.operands().into_iter().partition(|operand| operand.written);
        let output = outputs.first().copied()?;
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

    /// What it does to memory: to its operands and no other, of which it writes its output only.
    pub(crate) fn run(&self, state: &mut State, context: Handle) -> Answer {
        self.check(state, context)?;
        let window = |operand: Operand| {
            let bytes = state.read(context, operand.addr, operand.len)?;
            Ok(Window { addr: operand.addr, bytes, writable: operand.written })
        };
        let mut windows = self.operands().into_iter().map(window).collect::<Answer<Vec<_>>>()?;
        self.entry.run(self.grid, &self.params, &mut windows)?;
        windows.iter().filter(|window| window.writable).try_for_each(|window| state.write(context, window.addr, &window.bytes))
    }
}
