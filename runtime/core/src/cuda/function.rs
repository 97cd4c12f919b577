#![allow(unsafe_code, reason = "a driver, and a kernel that may write anywhere")]
//! Any kernel as a driver.

use super::packed::Packed;
use super::stream::{self, Stream};
use super::{Module, Signature};
use crate::job::{Completion, Driver, OperandSpec};
use crate::mem::{DevSlice, Port};
use crate::types::Result;
use core::ffi::CStr;
use core::fmt;
use core::time::Duration;

/// **Any kernel of any module as a [`Driver`]**, on a stream of its own: a launch is its doorbell,
/// and an event after it reports the end. A [`Signature`] lists the kernel's parameters, so no type
/// is written for it; a job's argument words are its launch and its scalars.
///
/// A [`Queue`](crate::Queue) keeps up to 8 launches in the stream, and they
/// end in order.
///
/// A kernel cannot be stopped. [`stop`](Driver::stop) waits for its end, at most
/// [`STOP_LIMIT`](Self::STOP_LIMIT), and 100 ms if an earlier wait for it failed. If the kernel
/// does not end, or its context is lost (by a fault: code 700 to 799), `stop` returns
/// [`Error::WillNotStop`](crate::Error::WillNotStop). Then the GPU keeps the jobs' buffers for
/// ever. To reset the context would free all its pinned memory, even where other code uses it.
///
/// ```no_run
/// use contigo::{Align, OperandSpec, Queue, Region};
/// use core::time::Duration;
/// use contigo::cuda::{Cuda, CudaFunction, CudaHost, Gpu, Image, Launch, Log, Module, Parameter::{Operand, Words}, Signature};
/// let cuda = Cuda::load()?;
/// let gpu = Gpu::primary(&cuda, 0)?;
/// # let ptx = c"";
/// // SAFETY: it is PTX.
/// let module = unsafe { Module::load(&gpu, Image::Ptx(ptx), &mut Log::new())? };
/// // __global__ void scale(const float *from, float *to, unsigned count, float by)
/// let (from, to) = (Operand(OperandSpec::to_device()), Operand(OperandSpec::from_device()));
/// let signature = Signature::new("scale", &[from, to, Words(1), Words(1)])?.sized(0, 4, &[0])?.sized(1, 4, &[0])?;
/// // SAFETY: a thread reads `from[i]` and writes `to[i]`, where `i < count`.
/// let scale = unsafe { CudaFunction::new(&module, c"scale", signature)? };
///
/// let region = Region::new(CudaHost::allocate(&gpu, 1 << 20, Align::DLPACK)?)?;
/// let pool = region.pool(16, 4096)?;
/// let mut queue = Queue::new(scale, 8)?;
/// let (count, by) = (1_000_u32, 0.5_f32);
/// let words = Launch::of(count.div_ceil(256), 256).with(&[count, by.to_bits()]);
/// for _ in 0..8 {
///     queue.submit([pool.take()?.to_device(..), pool.take()?.from_device(..)], &words)?;
/// }
/// while let Some(done) = queue.wait(Duration::from_millis(100))? {
///     let [_, to] = done.buffers;
///     println!("{:?}", to.view::<f32>()?);
/// }
/// # Ok::<(), contigo::Error>(())
/// ```
pub struct CudaFunction {
    pub(super) stream: Stream,
    pub(super) signature: Signature,
    port: Port,
}

impl CudaFunction {
    /// How long `stop` waits for a kernel that should have finished: longer than a display driver's
    /// watchdog allows one.
    pub const STOP_LIMIT: Duration = stream::STOP_LIMIT;

    /// Opens the kernel called `entry` in `module`: the name is mangled, unless it is `extern "C"`.
    ///
    /// # Errors
    /// [`Error::Cuda`](crate::Error::Cuda) with `cuModuleGetFunction` and 500: the module has no
    /// kernel of that name.
    ///
    /// # Safety
    /// The kernel has the parameters of `signature`, none of them longer than there. Launched with
    /// any operands and argument words that [`check`](Driver::check) accepts, it touches no bytes
    /// but the operands', and writes only those whose [`OperandSpec`] allows it. If a signature
    /// cannot express what the kernel requires, the program passes only words that satisfy it, or
    /// wraps this driver in one whose `check` compares them.
    pub unsafe fn new(module: &Module, entry: &CStr, signature: Signature) -> Result<Self> {
        Ok(Self { stream: Stream::new(module, entry)?, signature, port: module.gpu().port() })
    }
}

// SAFETY: 1. The kernel touches only the operands (`new`'s contract). 2. `poll` reports a slot when
// the event after its launch has happened, and `stop` returns `Ok` when the stream is empty. Then
// the kernels' output is in memory, and they run no more (CUDA Driver API, "Stream Management" and
// "Event Management"). `poll` queries an event only if it was recorded for that job. 4. `check`
// compares numbers. 5. Addresses are those of the GPU, on its bus. 6. The stream belongs to this
// value.
unsafe impl Driver for CudaFunction {
    fn name(&self) -> &'static str {
        self.signature.name()
    }

    fn port(&self) -> &Port {
        &self.port
    }

    fn addr_bits(&self) -> u32 {
        64
    }

    fn operands(&self) -> &[OperandSpec] {
        self.signature.operands()
    }

    fn depth(&self) -> usize {
        stream::DEPTH
    }

    fn check(&self, operands: &[DevSlice], words: &[u32]) -> Result<()> {
        self.signature.check(operands, words)
    }

    unsafe fn submit(&mut self, slot: usize, operands: &[DevSlice], words: &[u32]) -> Result<()> {
        let mut packed =
            Packed::new(&self.signature, operands.iter().map(|operand| operand.addr.0), words)?;
        // SAFETY: the signature is the kernel's (`new`), and the operands are mapped for the device
        // (this function's contract), at these addresses.
        self.stream.submit(slot, |stream, api| unsafe { stream.launch(api, &mut packed) })
    }

    fn poll(&mut self, timeout: Duration) -> Result<Option<Completion>> {
        Ok(self.stream.poll(timeout)?.map(Completion::of))
    }

    fn stop(&mut self) -> Result<()> {
        self.stream.stop(self.signature.name())
    }
}

impl fmt::Debug for CudaFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CudaFunction").field("signature", &self.signature).finish_non_exhaustive()
    }
}
