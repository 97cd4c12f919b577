#![allow(unsafe_code, reason = "a driver, and a kernel that may write anywhere")]
//! A kernel as a driver.

use super::{
    Gpu, Module,
    abi::{Api, CuEvent, CuFunction, CuResult, CuStream, DISABLE_TIMING, NON_BLOCKING, NOT_READY},
    driver::check,
};
use crate::{
    hw::{Irq, irq::poll_until},
    job::{Completion, Driver, OperandSpec, TypedDriver, fixed},
    linux::Spin,
    mem::{DevSlice, Port},
    types::{Error, Result, Timeout},
};
use core::{
    ffi::{CStr, c_void},
    fmt,
    marker::PhantomData,
    ptr,
};

/// How a kernel is launched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Blocks in x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y and z.
    pub block: [u32; 3],
    /// Shared memory of a block, in bytes, beside what the kernel declares.
    pub shared_bytes: u32,
    /// The parameters behind the buffers' addresses, in their order; a narrower one is the lower bytes.
    pub scalars: heapless::Vec<u64, 16>,
}

/// One kernel: its name, its parameters, its limits. This is what a program writes for a kernel of its own; streams, events, contexts, waiting
/// and what goes wrong are [`CudaKernel`]'s.
///
/// The kernel's first parameters are the `BUFFERS` operands' addresses, in their order; the others are [`Launch::scalars`].
///
/// ```
/// use contigo::{DevSlice, Error, OperandSpec, Result, cuda::{Kernel, Launch}, fixed};
/// use core::ffi::CStr;
///
/// /// `__global__ void scale(const float *from, float *to, unsigned count, float by)`
/// struct Scale;
/// struct By { count: u32, by: f32 }
///
/// // SAFETY: a thread reads `from[i]` and writes `to[i]`, where `i < count`.
/// unsafe impl Kernel<2> for Scale {
///     type Args = By;
///     type Words = [u32; 2];
///     const NAME: &'static str = "scale";
///     const ENTRY: &'static CStr = c"scale";
///     const OPERANDS: [OperandSpec; 2] = [OperandSpec::to_device(), OperandSpec::from_device()];
///     fn words(args: &By) -> [u32; 2] { [args.count, args.by.to_bits()] }
///     fn check([from, to]: &[DevSlice; 2], words: &[u32]) -> Result<()> {
///         let [count, _] = fixed(words)?;
///         let need_bytes = u64::from(*count) * 4;
///         for (index, buffer) in [from, to].into_iter().enumerate() {
///             if (buffer.len_bytes as u64) < need_bytes {
///                 return Err(Error::BufferSize { index, need_bytes, have_bytes: buffer.len_bytes });
///             }
///         }
///         Ok(())
///     }
///     fn launch(words: &[u32]) -> Result<Launch> {
///         let [count, by] = fixed(words)?;
///         let scalars = [*count, *by].map(u64::from).into_iter().collect();
///         Ok(Launch { grid: [count.div_ceil(256), 1, 1], block: [256, 1, 1], shared_bytes: 0, scalars })
///     }
/// }
/// ```
///
/// # Safety
/// Callers owe nothing.
///
/// # Implementation safety
/// With operands and words that passed `check`, launched as `launch` says, the kernel called `ENTRY` has these parameters, touches no bytes
/// but the operands', and writes only those whose direction says so. No parameter is longer than eight bytes.
pub unsafe trait Kernel<const BUFFERS: usize> {
    /// What a job needs to know beside its operands.
    type Args;
    /// The same as words: an array of them.
    type Words: AsRef<[u32]>;
    /// For messages.
    const NAME: &'static str;
    /// The kernel's name in its module: mangled, unless it is `extern "C"`.
    const ENTRY: &'static CStr;
    /// What the kernel does with each operand.
    const OPERANDS: [OperandSpec; BUFFERS];

    /// `args` as words.
    fn words(args: &Self::Args) -> Self::Words;

    /// Are these operands and arguments what the kernel takes?
    ///
    /// # Errors
    /// [`Error::BufferSize`], [`Error::BufferAlign`], [`Error::Argument`].
    fn check(operands: &[DevSlice; BUFFERS], words: &[u32]) -> Result<()>;

    /// How it is launched for these words.
    ///
    /// # Errors
    /// [`Error::Argument`]: there are more words, or fewer.
    fn launch(words: &[u32]) -> Result<Launch>;
}

/// A kernel on a stream of its own, as a [`Driver`] for an [`Engine`](crate::Engine): a launch is its doorbell, an event says that it
/// is finished.
///
/// A kernel cannot be stopped. [`stop`](Driver::stop) waits for its end, [`STOP_MS`](Self::STOP_MS) at most; one that goes on, or a context
/// that is lost (by a fault: code 700 to 799), is [`Error::WillNotStop`], and the job's buffers stay with the GPU for ever: the driver would
/// free all pinned memory of the context by resetting it, under whoever has a view of it.
pub struct CudaKernel<'m, K, const BUFFERS: usize> {
    module: &'m Module<'m>,
    function: CuFunction,
    stream: CuStream,
    event: CuEvent,
    port: Port,
    clock: Spin,
    /// It did not end when it should have, and nobody has seen its end since.
    hung: bool,
    kernel: PhantomData<fn(K)>,
}

impl<'m, K: Kernel<BUFFERS>, const BUFFERS: usize> CudaKernel<'m, K, BUFFERS> {
    /// How long a kernel is waited for where it should have been finished: longer than a display driver's watchdog allows one.
    pub const STOP_MS: u32 = 5_000;

    /// The kernel `K` of `module`.
    ///
    /// # Errors
    /// [`Error::Cuda`] with `cuModuleGetFunction` and 500: the module has none of that name.
    ///
    /// # Safety
    /// The kernel of that name in this module is the one that `K` describes.
    pub unsafe fn new(module: &'m Module<'m>) -> Result<Self> {
        const { assert!(BUFFERS <= 16, "a launch has 16 operands and 16 scalars at most") };
        let function = module.function(K::ENTRY)?;
        let (mut stream, mut event) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the pointer is a reference.
        module.gpu.within(|api| check("cuStreamCreate", unsafe { (api.stream_create)(&raw mut stream, NON_BLOCKING) }))?;
        // From here on dropping gives the stream back; an event that was not made is null, and is not given back.
        module.took();
        let mut this = Self { module, function, stream, event, port: module.gpu.port(), clock: Spin, hung: false, kernel: PhantomData };
        // SAFETY: the pointer is a reference.
        module.gpu.within(|api| check("cuEventCreate", unsafe { (api.event_create)(&raw mut event, DISABLE_TIMING) }))?;
        this.event = event;
        Ok(this)
    }

    /// Puts the kernel into the stream, with its operands at `addrs`. The context is current.
    ///
    /// # Safety
    /// The bytes at `addrs` are the kernel's as [`Driver::submit`] says, until the stream is empty; `launch` is the kernel's for its arguments.
    pub(super) unsafe fn launch(&self, api: &Api, mut addrs: [u64; BUFFERS], launch: Launch) -> Result<()> {
        let Launch { grid: [gx, gy, gz], block: [bx, by, bz], shared_bytes, mut scalars } = launch;
        let mut parameters = heapless::Vec::<*mut c_void, 32>::new();
        for value in addrs.iter_mut().chain(scalars.iter_mut()) {
            // An engine has 16 operands at most, and a launch 16 scalars.
            let _ = parameters.push(ptr::from_mut(value).cast());
        }
        // SAFETY: function and stream are this context's; as many parameters are there as the kernel has, eight bytes each, of which the driver
        // copies what the kernel declares (`Kernel`'s contract). What it touches is the caller's promise.
        check("cuLaunchKernel", unsafe {
            (api.launch)(self.function, gx, gy, gz, bx, by, bz, shared_bytes, self.stream, parameters.as_mut_ptr(), ptr::null_mut())
        })
    }

    /// Puts the event behind all that is in the stream. The context is current.
    pub(super) fn record(&self, api: &Api) -> Result<()> {
        // SAFETY: both are this context's.
        check("cuEventRecord", unsafe { (api.event_record)(self.event, self.stream) })
    }

    /// The stream.
    pub(super) const fn stream(&self) -> CuStream {
        self.stream
    }

    /// The GPU.
    pub(super) const fn gpu(&self) -> &'m Gpu<'m> {
        self.module.gpu
    }
}

impl<K, const BUFFERS: usize> CudaKernel<'_, K, BUFFERS> {
    /// How long the end of a kernel is waited for that nobody waits for any more: a job that was forgotten may be about to end.
    const DROP_MS: u32 = 100;

    /// Waits until the stream is empty, and keeps in mind where it is not. `Err` is the last answer.
    fn ended(&mut self, timeout: Timeout) -> Result<(), CuResult> {
        let (gpu, stream, clock) = (self.module.gpu, self.stream, self.clock);
        let mut answer = NOT_READY;
        let waited = poll_until(&clock, timeout, |_| {
            // SAFETY: the stream is this context's.
            answer = gpu.within(|api| Ok(unsafe { (api.stream_query)(stream) })).unwrap_or_else(|error| match error {
                Error::Cuda { code, .. } => code,
                _ => NOT_READY,
            });
            answer == 0 || is_lost(answer)
        });
        let ended = waited == Ok(true) && answer == 0;
        if self.hung == ended {
            self.hung = !ended;
            gpu.hangs(self.hung);
        }
        if ended { Ok(()) } else { Err(answer) }
    }

    /// Is nothing in the stream?
    pub(super) fn is_idle(&mut self) -> bool {
        self.ended(Timeout::ms(Self::DROP_MS)).is_ok()
    }
}

// SAFETY: 1. The kernel touches the operands only (`Kernel`'s contract). 2. `poll` says `true` when the event behind the kernel has happened, and
// `stop` returns `Ok` when the stream is empty: what the kernel wrote is then in memory, and it runs no more (CUDA Driver API, "Stream
// Management"). 3. `check` calls the kernel's check only. 4. Addresses are the GPU's, on its bus. 5. The stream is this value's.
unsafe impl<K: Kernel<BUFFERS>, const BUFFERS: usize> Driver for CudaKernel<'_, K, BUFFERS> {
    fn name(&self) -> &'static str {
        K::NAME
    }

    fn addr_bits(&self) -> u32 {
        64
    }

    fn operands(&self) -> &[OperandSpec] {
        const { &K::OPERANDS }
    }

    fn port(&self) -> &Port {
        &self.port
    }

    fn check(&self, operands: &[DevSlice], words: &[u32]) -> Result<()> {
        K::check(fixed(operands)?, words)
    }

    unsafe fn submit(&mut self, _slot: usize, operands: &[DevSlice], words: &[u32]) -> Result<()> {
        let (operands, launch) = (fixed(operands)?, K::launch(words)?);
        self.module.gpu.within(|api| {
            // SAFETY: the operands are handed over (this function's contract), at these addresses.
            unsafe { self.launch(api, operands.map(|operand| operand.addr.0), launch)? };
            self.record(api)
        })
    }

    fn poll(&mut self, timeout: Timeout) -> Result<Option<Completion>> {
        let (gpu, event, clock) = (self.module.gpu, self.event, self.clock);
        let mut answer = Ok(NOT_READY);
        poll_until(&clock, timeout, |_| {
            // SAFETY: the event is this context's.
            answer = gpu.within(|api| Ok(unsafe { (api.event_query)(event) }));
            answer != Ok(NOT_READY)
        })?;
        match answer? {
            NOT_READY => Ok(None),
            code => check("cuEventQuery", code).map(|()| Some(Completion::of(0))),
        }
    }

    fn stop(&mut self) -> Result<()> {
        let since_us = self.clock.now_us();
        self.ended(Timeout::ms(Self::STOP_MS)).map_err(|code| {
            let waited_us = u32::try_from(self.clock.now_us().saturating_sub(since_us)).unwrap_or(u32::MAX);
            Error::WillNotStop { device: K::NAME, status: status(code), waited_us }
        })
    }
}

impl<K: Kernel<BUFFERS>, const BUFFERS: usize> TypedDriver<BUFFERS> for CudaKernel<'_, K, BUFFERS> {
    type Args = K::Args;
    type Words = K::Words;
    type Report = ();
    fn words(args: &K::Args) -> K::Words {
        K::words(args)
    }
    fn report(&self, _: &Completion) {}
}

/// Is the context lost, so that no later answer is another? Faults of kernels and of the machine are; a call that is forbidden at this moment (900:
/// another thread captures a graph) is not.
const fn is_lost(code: CuResult) -> bool {
    // The driver is gone; errors of memory and of NVLink that cannot be corrected; faults of kernels.
    matches!(code, 4 | 214 | 220 | 700..=799)
}

/// A result as the status word of a message.
fn status(code: CuResult) -> u32 {
    u32::try_from(code).unwrap_or(u32::MAX)
}

impl<K, const BUFFERS: usize> Drop for CudaKernel<'_, K, BUFFERS> {
    /// Gives event and stream back; or keeps them, with the module and the context, where the kernel has not ended.
    fn drop(&mut self) {
        if !self.is_idle() {
            return;
        }
        let (event, stream) = (self.event, self.stream);
        let given_back = self.module.gpu.within(|api| {
            if !event.is_null() {
                // SAFETY: the event is one, and is destroyed once.
                let _ = unsafe { (api.event_destroy)(event) };
            }
            // SAFETY: the stream is one, and is destroyed once.
            check("cuStreamDestroy", unsafe { (api.stream_destroy)(stream) })
        });
        if given_back.is_ok() {
            self.module.gave_back();
        }
    }
}

// SAFETY: streams, events and functions may be used on any thread where their context is current.
unsafe impl<K, const BUFFERS: usize> Send for CudaKernel<'_, K, BUFFERS> {}

impl<K, const BUFFERS: usize> fmt::Debug for CudaKernel<'_, K, BUFFERS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CudaKernel").field("module", &self.module).finish_non_exhaustive()
    }
}
