#![allow(unsafe_code, reason = "a driver, and the driver's functions are called")]
//! A kernel that works in the GPU's own memory.

use super::{CudaKernel, Kernel, Module, abi::CuDevicePtr, driver::check};
use crate::{
    job::{Completion, Driver, OperandSpec, TypedDriver, fixed},
    mem::{DevSlice, Port},
    trace::{self, Event, Site},
    types::{Error, Result, Timeout},
};
use core::fmt;

/// A kernel that works in the GPU's own memory, for a card whose kernel reads or writes an operand more than once, or at random: each of these
/// accesses would cross the bus. What the kernel reads is copied there before it, what it writes is copied back behind it, on its stream and
/// with nobody waiting; each copy is counted ([`bytes_copied`](Self::bytes_copied)) and an [`Event::CopyBytes`]. Nobody gets it unasked: it is a
/// type of its own, with the jobs, the buffers and the errors of [`CudaKernel`].
///
/// Its memory is allocated once, when it is made.
///
/// An operand that the kernel writes is copied back whole: what the kernel leaves out is what the GPU's memory held, which for
/// [`Direction::FromDevice`](crate::Direction::FromDevice) is an earlier job's; [`Direction::Bidirectional`](crate::Direction::Bidirectional) keeps it.
///
/// ```no_run
/// # use contigo::{Engine, cuda::{CopyingKernel, Kernel, Module}};
/// # fn open<K: Kernel<2>>(module: &Module<'_>) -> contigo::Result<()> {
/// // SAFETY: the module is K's.
/// let engine = Engine::new(unsafe { CopyingKernel::<K, 2>::new(module, [1 << 20, 1 << 20])? })?;   // in place of CudaKernel
/// # drop(engine);
/// # Ok(()) }
/// ```
pub struct CopyingKernel<'m, K: Kernel<BUFFERS>, const BUFFERS: usize> {
    kernel: CudaKernel<'m, K, BUFFERS>,
    /// The GPU's memory for each operand; 0 before it is allocated.
    own: [CuDevicePtr; BUFFERS],
    capacity_bytes: [usize; BUFFERS],
    bytes_copied: u64,
}

impl<'m, K: Kernel<BUFFERS>, const BUFFERS: usize> CopyingKernel<'m, K, BUFFERS> {
    /// The kernel `K` of `module`, with so many bytes of the GPU's memory for each operand.
    ///
    /// # Errors
    /// As [`CudaKernel::new`]. [`Error::Cuda`] with `cuMemAlloc`: 2, the GPU has no such memory; 1, an operand of no bytes.
    ///
    /// # Safety
    /// As [`CudaKernel::new`].
    pub unsafe fn new(module: &'m Module<'m>, capacity_bytes: [usize; BUFFERS]) -> Result<Self> {
        // SAFETY: the caller's promise.
        let kernel = unsafe { CudaKernel::new(module)? };
        let mut this = Self { kernel, own: [0; BUFFERS], capacity_bytes, bytes_copied: 0 };
        for (own, len_bytes) in this.own.iter_mut().zip(capacity_bytes) {
            // SAFETY: the pointer is a reference.
            module.gpu.within(|api| check("cuMemAlloc", unsafe { (api.device_alloc)(own, len_bytes) }))?;
            module.gpu.took();
        }
        Ok(this)
    }

    /// How many bytes were copied so far, to the GPU and back.
    #[must_use]
    pub const fn bytes_copied(&self) -> u64 {
        self.bytes_copied
    }
}

// SAFETY: 1. The kernel touches this value's memory, the copies the operands, each inside its length and in its direction: `check` compared the
// two. 2. As `CudaKernel`: the event is behind the last copy, and the stream holds them all. 3. to 5. As `CudaKernel`.
unsafe impl<K: Kernel<BUFFERS>, const BUFFERS: usize> Driver for CopyingKernel<'_, K, BUFFERS> {
    fn name(&self) -> &'static str {
        self.kernel.name()
    }

    fn addr_bits(&self) -> u32 {
        self.kernel.addr_bits()
    }

    fn operands(&self) -> &[OperandSpec] {
        self.kernel.operands()
    }

    fn port(&self) -> &Port {
        self.kernel.port()
    }

    fn check(&self, operands: &[DevSlice], words: &[u32]) -> Result<()> {
        for (buffer, capacity_bytes) in operands.iter().zip(self.capacity_bytes) {
            if buffer.len_bytes > capacity_bytes {
                return Err(Error::Exhausted { need_bytes: buffer.len_bytes, capacity_bytes });
            }
        }
        self.kernel.check(operands, words)
    }

    unsafe fn submit(&mut self, _slot: usize, operands: &[DevSlice], words: &[u32]) -> Result<()> {
        let (buffers, launch): (&[DevSlice; BUFFERS], _) = (fixed(operands)?, K::launch(words)?);
        let (kernel, own, mut copied) = (&self.kernel, self.own, 0_u64);
        let stream = kernel.stream();
        let done = kernel.gpu().within(|api| {
            let mut copy = |to: CuDevicePtr, from: CuDevicePtr, len_bytes: usize| {
                // SAFETY: so many bytes are at both (`check`); those of the operand are handed over (this function's contract).
                check("cuMemcpyAsync", unsafe { (api.copy)(to, from, len_bytes, stream) })?;
                copied += len_bytes as u64;
                trace::happened(Event::CopyBytes { len_bytes }, Site::NONE);
                Ok::<_, Error>(())
            };
            let operands = || buffers.iter().zip(own).zip(K::OPERANDS.map(|spec| spec.direction));
            for ((buffer, own), _) in operands().filter(|(_, direction)| direction.device_reads()) {
                copy(own, buffer.addr.0, buffer.len_bytes)?;
            }
            // SAFETY: this value's memory, which no other job has.
            unsafe { kernel.launch(api, own, launch)? };
            for ((buffer, own), _) in operands().filter(|(_, direction)| direction.device_writes()) {
                copy(buffer.addr.0, own, buffer.len_bytes)?;
            }
            kernel.record(api)
        });
        self.bytes_copied = self.bytes_copied.saturating_add(copied);
        done
    }

    fn poll(&mut self, timeout: Timeout) -> Result<Option<Completion>> {
        self.kernel.poll(timeout)
    }

    fn stop(&mut self) -> Result<()> {
        self.kernel.stop()
    }
}

impl<K: Kernel<BUFFERS>, const BUFFERS: usize> TypedDriver<BUFFERS> for CopyingKernel<'_, K, BUFFERS> {
    type Args = K::Args;
    type Words = K::Words;
    type Report = ();
    fn words(args: &K::Args) -> K::Words {
        K::words(args)
    }
    fn report(&self, _: &Completion) {}
}

impl<K: Kernel<BUFFERS>, const BUFFERS: usize> Drop for CopyingKernel<'_, K, BUFFERS> {
    /// Gives the GPU's memory back; or keeps it where a kernel may still use it.
    fn drop(&mut self) {
        let idle = self.kernel.is_idle();
        for own in self.own.into_iter().filter(|own| *own != 0) {
            // SAFETY: allocated in `new`, freed once, and the stream that used it is empty.
            let free = || self.kernel.gpu().within(|api| check("cuMemFree", unsafe { (api.device_free)(own) }));
            if idle && !self.kernel.gpu().is_hung() && free().is_ok() {
                self.kernel.gpu().gave_back();
            }
        }
    }
}

// SAFETY: as for `CudaKernel`; addresses are numbers.
unsafe impl<K: Kernel<BUFFERS>, const BUFFERS: usize> Send for CopyingKernel<'_, K, BUFFERS> {}

impl<K: Kernel<BUFFERS>, const BUFFERS: usize> fmt::Debug for CopyingKernel<'_, K, BUFFERS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let capacity_bytes = &self.capacity_bytes;
        f.debug_struct("CopyingKernel")
            .field("capacity_bytes", capacity_bytes)
            .field("bytes_copied", &self.bytes_copied)
            .finish_non_exhaustive()
    }
}
