//! Launches: the memory that a kernel may use, which the fake knows exactly of `gemm8`,
//! `copy_bytes` and `fill_bytes`. Its PTX says how it uses that memory.

use crate::{
    Launch,
    codes::code,
    ptx::{Entry, Grid, Progress, Window},
    state::{Answer, Handle, State},
};
use std::{collections::BTreeSet, ffi::c_void, ptr, sync::Arc};

/// So many statements in a launch of a kernel that the fake knows: minutes.
const STATEMENTS_MAX: u64 = 1 << 34;
/// So many of another whenever it is looked at, a fraction of a millisecond: it may wait for the
/// CPU, which needs the lock meanwhile.
const STATEMENTS_AT_ONCE: u64 = 1 << 14;

/// `gemm8`'s flag for int8 output.
const INT8: u64 = 1 << 1;

/// A launch, with its parameters as they were then.
#[derive(Debug)]
pub(crate) struct Kernel {
    entry: Arc<Entry>,
    known: bool,
    progress: Progress,
    params: Vec<u64>,
    operands: Vec<Operand>,
}

/// Memory that a kernel uses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operand {
    pub(crate) addr: u64,
    pub(crate) len: u64,
    align: u64,
    written: bool,
}

/// The operands of a kernel by its name and the bytes of its parameters, which
/// `examples/gemm8/kernels/gemm8.cu` declares.
fn known(entry: &Entry, params: &[u64]) -> Option<Vec<Operand>> {
    let read = |addr, len, align| Operand { addr, len, align, written: false };
    let written = |addr, len, align| Operand { addr, len, align, written: true };
    Some(match (entry.name(), entry.params(), params) {
        ("gemm8", [8, 8, 8, 8, 4, 4, 4, 4], &[a, b, bias, c, m, n, k, flags]) => {
            let element = if flags & INT8 == 0 { 4 } else { 1 };
            vec![
                read(a, m.saturating_mul(k), 1),
                read(b, k.saturating_mul(n), 1),
                read(bias, 4 * n, 4),
                written(c, m.saturating_mul(n).saturating_mul(element), element),
            ]
        }
        ("copy_bytes", [8, 8, 8], &[dst, src, len]) => {
            vec![written(dst, len, 1), read(src, len, 1)]
        }
        ("fill_bytes", [8, 4, 8], &[dst, _, len]) => vec![written(dst, len, 1)],
        _ => return None,
    })
}

impl Kernel {
    /// The kernel with its parameters.
    ///
    /// # Safety
    ///
    /// `params` is null or has the pointers that the kernel's declaration needs, each to a value of
    /// its type.
    pub(crate) unsafe fn with_params(
        entry: Arc<Entry>,
        launch: Launch,
        params: *const *const c_void,
        state: &State,
        context: Handle,
    ) -> Answer<Self> {
        if params.is_null() && !entry.params().is_empty() {
            return Err(code::INVALID_VALUE);
        }
        let value = |(index, len_bytes): (usize, &usize)| {
            // SAFETY: the caller's promise.
            let at = unsafe { params.add(index).read() };
            if at.is_null() {
                return Err(code::INVALID_VALUE);
            }
            let mut bytes = [0; 8];
            // SAFETY: the caller's promise: a value of as many bytes as the PTX says, which are 8
            // at most.
            unsafe { ptr::copy_nonoverlapping(at.cast(), bytes.as_mut_ptr(), *len_bytes) };
            Ok(u64::from_le_bytes(bytes))
        };
        let params = entry.params().iter().enumerate().map(value).collect::<Answer<Vec<_>>>()?;
        let known = known(&entry, &params);
        let progress = entry.start(Grid { blocks: launch.grid, threads: launch.block });
        let operands = known.clone().unwrap_or_else(|| {
            // Every block that a parameter points into, all of it.
            let blocks: BTreeSet<_> =
                params.iter().filter_map(|addr| state.block(context, *addr)).collect();
            blocks
                .into_iter()
                .map(|(addr, len)| Operand { addr, len, align: 1, written: true })
                .collect()
        });
        Ok(Self { entry, known: known.is_some(), progress, params, operands })
    }

    /// One of those whose operands are known by its name, and which does not wait for the CPU.
    pub(crate) const fn is_known(&self) -> bool {
        self.known
    }

    pub(crate) fn operands(&self) -> &[Operand] {
        &self.operands
    }

    /// The error that it would fail with, now.
    pub(crate) fn check(&self, state: &State, context: Handle) -> Answer {
        for operand in &self.operands {
            if !state.check_range(context, operand.addr, operand.len) {
                return Err(code::ILLEGAL_ADDRESS);
            }
            if !operand.addr.is_multiple_of(operand.align) {
                return Err(code::MISALIGNED_ADDRESS);
            }
        }
        Ok(())
    }

    /// Its effect on memory: on its operands and no other, of which it writes its output only.
    /// Whether it has ended: one that is not known, which may wait for the CPU, goes on from there
    /// when it is looked at again.
    pub(crate) fn run(&mut self, state: &mut State, context: Handle) -> Answer<bool> {
        self.check(state, context)?;
        let window = |operand: &Operand| {
            Ok(Window::new(
                operand.addr,
                state.read(context, operand.addr, operand.len)?,
                operand.written,
            ))
        };
        let mut windows = self.operands.iter().map(window).collect::<Answer<Vec<_>>>()?;
        let statements_max = if self.known { STATEMENTS_MAX } else { STATEMENTS_AT_ONCE };
        let ended =
            self.entry.run(&mut self.progress, &self.params, &mut windows, statements_max)?;
        if !ended && self.known {
            return Err(code::LAUNCH_TIMEOUT);
        }
        for (addr, bytes) in windows.iter().map(Window::written) {
            state.write(context, addr, bytes)?;
        }
        Ok(ended)
    }
}
