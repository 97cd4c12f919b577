#![allow(unsafe_code, reason = "a driver, and the driver's functions are called")]
//! A kernel that works in the GPU's own memory.

use super::abi::CuDevicePtr;
use super::driver::check;
use super::packed::Packed;
use super::{CudaFunction, Module, Signature};
use crate::job::{Driver, MAX_OPERANDS};
use crate::mem::DevSlice;
use crate::trace::{self, Event, Site};
use crate::types::{Error, Result};
use core::ffi::CStr;
use core::fmt;
use heapless::Vec;

/// A kernel that works in the GPU's own memory: for a card whose kernel reads or writes an operand
/// more than once, or at random, where each access would cross the bus. The runtime copies operands
/// that the kernel reads to the GPU before it, and operands that it writes back after it, on the
/// kernel's stream, asynchronously. Each copy is counted ([`bytes_copied`](Self::bytes_copied)) and
/// is an [`Event::CopyBytes`]. A program must ask for it by this type, which has the jobs, buffers
/// and errors of [`CudaFunction`].
///
/// The GPU's memory is allocated once, when this value is made. Launches in the stream use it one
/// after the other.
///
/// An operand that the kernel writes is copied back whole. Bytes that the kernel does not write
/// hold whatever the GPU's memory held. With
/// [`Direction::FromDevice`](crate::Direction::FromDevice) these are bytes of an earlier job;
/// [`Direction::Bidirectional`](crate::Direction::Bidirectional) keeps the operand's own.
///
/// ```no_run
/// # use contigo::{cuda::{CopyingFunction, Module, Signature}, Queue};
/// # fn open(module: &Module, signature: Signature) -> contigo::Result<()> {
/// // SAFETY: the kernel is what the signature says.
/// let copying = unsafe { CopyingFunction::new(module, c"scale", signature, &[1 << 20, 1 << 20])? };
/// let queue = Queue::new(copying, 8)?; // in place of CudaFunction
/// # drop(queue);
/// # Ok(()) }
/// ```
pub struct CopyingFunction {
    function: CudaFunction,
    /// The GPU's memory for each operand, and its size in bytes.
    own: Vec<(CuDevicePtr, usize), MAX_OPERANDS>,
    bytes_copied: u64,
}

impl CopyingFunction {
    /// Opens the kernel called `entry` in `module`, with this many bytes of the GPU's memory for
    /// each operand.
    ///
    /// # Errors
    /// As [`CudaFunction::new`]. [`Error::Argument`]: another number of operands. [`Error::Cuda`]
    /// with `cuMemAlloc`: 2, the GPU has too little memory; 1, an operand of 0 bytes.
    ///
    /// # Safety
    /// As [`CudaFunction::new`].
    pub unsafe fn new(
        module: &Module,
        entry: &CStr,
        signature: Signature,
        capacity_bytes: &[usize],
    ) -> Result<Self> {
        let (value, n) = (capacity_bytes.len() as u64, signature.operands().len() as u64);
        if value != n {
            return Err(Error::Argument {
                name: "the count of operands",
                value,
                min: n,
                max: n,
                multiple_of: 1,
            });
        }
        // SAFETY: the caller's promise.
        let function = unsafe { CudaFunction::new(module, entry, signature)? };
        let mut this = Self { function, own: Vec::new(), bytes_copied: 0 };
        for &len_bytes in capacity_bytes {
            let mut own = 0;
            module.gpu().within(|api| {
                // SAFETY: the pointer comes from a reference.
                check("cuMemAlloc", unsafe { (api.device_alloc)(&raw mut own, len_bytes) })
            })?;
            module.gpu().took();
            // There is room for as many operands as a kernel has.
            let _ = this.own.push((own, len_bytes));
        }
        Ok(this)
    }

    /// Returns how many bytes were copied so far, to the GPU and back.
    #[must_use]
    pub const fn bytes_copied(&self) -> u64 {
        self.bytes_copied
    }
}

// SAFETY: 1. The kernel touches this value's memory, and the copies touch the operands, each inside
// its length and in its direction: `check` compared the two. 2. As `CudaFunction`: the event
// follows the last copy, and the stream orders them all. 4. to 6. As `CudaFunction`.
unsafe impl Driver for CopyingFunction {
    crate::types::forward::forward!(|this| this.function =>
        name, port, addr_bits, operands, depth, in_order, stop_program, underruns
    );
    crate::types::forward::forward!(|this| this.function => poll, stop, arm_irq);

    fn check(&self, operands: &[DevSlice], words: &[u32]) -> Result<()> {
        for (operand, (_, capacity_bytes)) in operands.iter().zip(&self.own) {
            let (need_bytes, capacity_bytes) = (operand.len_bytes, *capacity_bytes);
            if need_bytes > capacity_bytes {
                return Err(Error::Exhausted { need_bytes, capacity_bytes });
            }
        }
        self.function.check(operands, words)
    }

    unsafe fn submit(&mut self, slot: usize, operands: &[DevSlice], words: &[u32]) -> Result<()> {
        let CudaFunction { stream, signature, .. } = &mut self.function;
        let (own, mut copied) = (&self.own, 0_u64);
        let mut packed = Packed::new(signature, own.iter().map(|(own, _)| *own), words)?;
        let done = stream.submit(slot, |stream, api| {
            let mut copy = |to: CuDevicePtr, from: CuDevicePtr, len_bytes: usize| {
                // SAFETY: both addresses have this many bytes (`check`); the operand's are mapped
                // for the device (this function's contract).
                check("cuMemcpyAsync", unsafe { (api.copy)(to, from, len_bytes, stream.raw()) })?;
                copied += len_bytes as u64;
                trace::happened(Event::CopyBytes { len_bytes }, Site::NONE);
                Ok::<_, Error>(())
            };
            let operands = || {
                operands.iter().zip(own).zip(signature.operands().iter().map(|spec| spec.direction))
            };
            for ((operand, (own, _)), _) in
                operands().filter(|(_, direction)| direction.device_reads())
            {
                copy(*own, operand.addr.0, operand.len_bytes)?;
            }
            // SAFETY: the signature is the kernel's (`new`), and the memory belongs to this value.
            // The earlier jobs are done with it when the kernel runs.
            unsafe { stream.launch(api, &mut packed)? };
            for ((operand, (own, _)), _) in
                operands().filter(|(_, direction)| direction.device_writes())
            {
                copy(operand.addr.0, *own, operand.len_bytes)?;
            }
            Ok(())
        });
        self.bytes_copied = self.bytes_copied.saturating_add(copied);
        done
    }
}

impl Drop for CopyingFunction {
    /// Frees the GPU's memory; or keeps it if a kernel may still use it.
    fn drop(&mut self) {
        let idle = self.function.stream.is_idle();
        let gpu = self.function.stream.gpu();
        for (own, _) in &self.own {
            // SAFETY: allocated in `new`, freed once, and the stream that used it is empty.
            let free = || gpu.within(|api| check("cuMemFree", unsafe { (api.device_free)(*own) }));
            if idle && !gpu.is_hung() && free().is_ok() {
                gpu.gave_back();
            }
        }
    }
}

impl fmt::Debug for CopyingFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CopyingFunction")
            .field("function", &self.function)
            .field("bytes_copied", &self.bytes_copied)
            .finish_non_exhaustive()
    }
}
