//! Launches: the memory that a kernel may use, which is every block that a parameter points into.
//! Its PTX says how it uses that memory.

use crate::ptx::{Entry, Progress, Window};
use crate::state::{Answer, Handle, State};
use crate::{Launch, code};
use std::collections::BTreeSet;
use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

/// So many statements in a launch: minutes.
const STATEMENTS_MAX: u64 = 1 << 34;
/// So many whenever a kernel that may wait for the CPU is looked at, a fraction of a millisecond:
/// the CPU needs the lock meanwhile.
const STATEMENTS_AT_ONCE: u64 = 1 << 14;

/// A launch, with its parameters as they were then.
#[derive(Debug)]
pub(crate) struct Kernel {
    entry: Arc<Entry>,
    progress: Progress,
    params: Vec<u64>,
    /// Addresses and lengths.
    blocks: BTreeSet<(u64, u64)>,
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
        if params.is_null() && !entry.params.is_empty() {
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
        let params = entry.params.iter().enumerate().map(value).collect::<Answer<Vec<_>>>()?;
        let progress = entry.start(launch);
        let blocks = params.iter().filter_map(|addr| state.block(context, *addr)).collect();
        Ok(Self { entry, progress, params, blocks })
    }

    /// May it wait for the CPU?
    pub(crate) fn waits(&self) -> bool {
        self.entry.waits
    }

    pub(crate) const fn blocks(&self) -> &BTreeSet<(u64, u64)> {
        &self.blocks
    }

    /// Its effect on memory: on those blocks and no other. Whether it has ended: one that may wait
    /// for the CPU goes on from there when it is looked at again.
    pub(crate) fn run(&mut self, state: &mut State, context: Handle) -> Answer<bool> {
        let window = |&(addr, len)| Ok(Window::new(addr, state.read(context, addr, len)?, true));
        let mut windows = self.blocks.iter().map(window).collect::<Answer<Vec<_>>>()?;
        let statements_max = if self.waits() { STATEMENTS_AT_ONCE } else { STATEMENTS_MAX };
        let ended =
            self.entry.run(&mut self.progress, &self.params, &mut windows, statements_max)?;
        if !ended && !self.waits() {
            return Err(code::LAUNCH_TIMEOUT);
        }
        for (addr, bytes) in windows.iter().map(Window::written) {
            state.write(context, addr, bytes)?;
        }
        Ok(ended)
    }
}
