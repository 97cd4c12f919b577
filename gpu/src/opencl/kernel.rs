#![allow(unsafe_code, reason = "a driver, and a kernel that may write anywhere")]
//! Any kernel as a driver.

use super::error::{check, error};
use super::facts::word;
use super::launches::{self, Launches};
use super::object::SubBuffer;
use super::{OpenClGpu, OpenClModule};
use crate::common::within;
use cl3::error_codes::CL_INVALID_ARG_SIZE;
use cl3::kernel::{
    CL_KERNEL_NUM_ARGS, CL_KERNEL_WORK_GROUP_SIZE, get_kernel_data, get_kernel_work_group_data,
    set_kernel_arg,
};
use cl3::types::{cl_kernel, cl_mem};
use contigo::job::{Argument, Launch, Signature};
use contigo::mem::DevSlice;
use contigo::{Completion, Driver, Error, Port, Result};
use core::ffi::{CStr, c_void};
use core::time::Duration;
use core::{fmt, ptr};

/// **Any kernel of any program as a [`Driver`]**, on a queue of its own: a launch is its doorbell,
/// and its event says that it is finished. A [`Signature`] says what the kernel takes, so that no
/// type is written for it; a job's argument words are its launch and its scalars.
///
/// An operand is a sub-buffer, which begins at a multiple of [`OpenClGpu::align`]. A launch has
/// `grid × block` work items in groups of `block`; [`Launch::shared_bytes`] is 0, because OpenCL
/// has local memory as arguments, which a signature has not.
///
/// A [`Queue`](contigo::Queue) keeps up to [`DEPTH`](Self::DEPTH) launches in flight, and they
/// end in their order.
///
/// A look ([`poll`](Driver::poll)) calls the driver, also with a timeout of zero: the status of an
/// event is asked for. A driver may make a system call there.
///
/// A kernel cannot be stopped. [`stop`](Driver::stop) waits for its end,
/// [`STOP_LIMIT`](Self::STOP_LIMIT) at most. A kernel that goes on, or one that ended with an
/// error, is [`Error::WillNotStop`]. Then the jobs' buffers stay with the device for ever.
///
/// A kernel value that is dropped waits 100 ms for launches that were forgotten. While one goes on,
/// everything that this program drops of the device is leaked. Once it has ended well, what is
/// dropped later goes again. Of up to 16 such values this is seen; after one more, or after a
/// launch that failed, everything stays.
///
/// ```no_run
/// use contigo::{OperandSpec, Queue, Region};
/// use contigo::job::{Launch, Parameter::{Operand, Words}, Signature};
/// use contigo_gpu::opencl::{Log, OpenClGpu, OpenClKernel, OpenClMemory, OpenClModule};
/// use core::time::Duration;
/// let gpu = OpenClGpu::open(0)?;
/// let source = "kernel void scale(global const float *from, global float *to, uint count,
///                                 float by)
///               { uint i = get_global_id(0); if (i < count) to[i] = from[i] * by; }";
/// // SAFETY: it is this program's own source.
/// let module = unsafe { OpenClModule::build(gpu, source, c"", &mut Log::new())? };
/// let (from, to) = (Operand(OperandSpec::to_device()), Operand(OperandSpec::from_device()));
/// let signature = Signature::new("scale", &[from, to, Words(1), Words(1)])?;
/// let signature = signature.sized(0, 4, &[0])?.sized(1, 4, &[0])?;
/// // SAFETY: an item reads `from[i]` and writes `to[i]`, where `i < count`.
/// let scale = unsafe { OpenClKernel::new(&module, c"scale", signature)? };
///
/// let region = Region::new(OpenClMemory::allocate(gpu, 1 << 20)?)?;
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
pub struct OpenClKernel {
    launches: Launches,
    signature: Signature,
    /// Of each parameter, how many bytes the kernel takes: of a scalar narrower than a word its
    /// own.
    sizes: Vec<usize>,
    /// The most work items of a group of this kernel.
    max_group_items: usize,
    port: Port,
}

impl OpenClKernel {
    /// How many launches are in flight at once.
    pub const DEPTH: usize = launches::DEPTH;
    /// How long a kernel is waited for where it should have been finished.
    pub const STOP_LIMIT: Duration = launches::STOP_LIMIT;

    /// The kernel called `entry` in `module`.
    ///
    /// # Errors
    /// - [`Error::Gpu`] with `clCreateKernel` and -46: the program has none of that name.
    /// - [`Error::Argument`]: it has another count of parameters than `signature`.
    /// - [`Error::Gpu`] with `clSetKernelArg` and -51: a scalar has another size than there.
    ///
    /// # Safety
    /// The kernel has the parameters of `signature`, as pointers to `global` or `constant` memory
    /// and as scalars. Launched with any operands and argument words that [`check`](Driver::check)
    /// lets pass, it touches no bytes but the operands', and writes only those whose
    /// [`OperandSpec`](contigo::OperandSpec) allows it. Where a signature cannot say what the
    /// kernel asks for, the program passes no other words, or wraps this driver in one whose
    /// `check` compares them.
    pub unsafe fn new(module: &OpenClModule, entry: &CStr, signature: Signature) -> Result<Self> {
        let launches = Launches::new(module, entry)?;
        let (kernel, gpu) = (launches.kernel(), module.gpu());
        let zeros = vec![0; signature.words()];
        let (value, max) = (
            signature.arguments(&zeros)?.1.count() as u64,
            word(&check("clGetKernelInfo", get_kernel_data(kernel, CL_KERNEL_NUM_ARGS))?),
        );
        if value != max {
            return Err(Error::Argument {
                name: "the count of parameters in the signature",
                value,
                min: max,
                max,
                multiple_of: 1,
            });
        }
        let (_, arguments) = signature.arguments(&zeros)?;
        let sizes = arguments
            .zip(0..)
            .map(|(argument, index)| size(kernel, index, argument))
            .collect::<Result<Vec<_>>>()?;
        let most = get_kernel_work_group_data(kernel, gpu.device, CL_KERNEL_WORK_GROUP_SIZE);
        let max_group_items =
            usize::try_from(word(&check("clGetKernelWorkGroupInfo", most)?)).unwrap_or(usize::MAX);
        Ok(Self { launches, signature, sizes, max_group_items, port: gpu.port() })
    }

    fn gpu(&self) -> &'static OpenClGpu {
        self.launches.gpu()
    }

    /// Takes the last job's operands out of the kernel. A driver may keep an argument's object
    /// until the next one is set, and with it the block, which could not be freed so long.
    fn forget_operands(&mut self, words: &[u32]) {
        let Ok((_, arguments)) = self.signature.arguments(words) else { return };
        let nothing: cl_mem = ptr::null_mut();
        for (argument, index) in arguments.zip(0..) {
            if let Argument::Operand(_) = argument {
                // SAFETY: of a buffer it may be no object (OpenCL 3.0, 5.9.2). The launch has its
                // arguments, and each launch is given all of its own.
                let _ = unsafe {
                    set_kernel_arg(
                        self.launches.kernel(),
                        index,
                        size_of::<cl_mem>(),
                        (&raw const nothing).cast(),
                    )
                };
            }
        }
    }

    /// Sets all arguments, and launches.
    ///
    /// # Safety
    /// As [`submit`](Driver::submit).
    unsafe fn set_and_launch(
        &mut self,
        slot: usize,
        operands: &[DevSlice],
        words: &[u32],
    ) -> Result<()> {
        let (kernel, gpu) = (self.launches.kernel(), self.gpu());
        let (launch, arguments) = self.signature.arguments(words)?;
        // Released once the launch was given, which keeps them: at the end of this call.
        let mut parts = [const { None::<SubBuffer> }; contigo::job::MAX_OPERANDS];
        for ((argument, bytes), index) in arguments.zip(&self.sizes).zip(0..) {
            let buffer: cl_mem;
            let mut scalar = [0_u8; 4 * Signature::MAX_WORDS];
            let value: *const c_void = match argument {
                Argument::Operand(operand) => {
                    let missing =
                        Error::BufferSize { index: operand, need_bytes: 1, have_bytes: 0 };
                    let (slice, kept) =
                        operands.get(operand).zip(parts.get_mut(operand)).ok_or(missing)?;
                    let (block, origin) = gpu.objects.find(slice)?;
                    // SAFETY: the operand is handed over, so that its block is there.
                    buffer = kept
                        .insert(unsafe { SubBuffer::new(block, origin, slice.len_bytes)? })
                        .raw();
                    (&raw const buffer).cast()
                }
                Argument::Words(words) => {
                    let each = scalar.chunks_mut(4).zip(words);
                    // The low word first; of a narrow scalar the low bytes. On a processor whose
                    // order is another one, a scalar of two words would be the device's matter.
                    each.for_each(|(bytes, word)| bytes.copy_from_slice(&word.to_le_bytes()));
                    scalar.as_ptr().cast()
                }
            };
            // SAFETY: so many bytes are there, and the kernel takes as many (`new`). It copies them
            // before it returns (OpenCL 3.0, 5.9.2).
            check("clSetKernelArg", unsafe { set_kernel_arg(kernel, index, *bytes, value) })?;
        }
        // SAFETY: all arguments are set; the operands are handed over (this function's contract).
        unsafe { self.launches.launch(slot, &launch) }
    }

    /// Is this a launch that the device and the kernel take?
    fn check_launch(&self, launch: &Launch) -> Result<()> {
        within("the bytes of shared memory of a launch", launch.shared_bytes.into(), 0, 0)?;
        let items =
            launch.block.iter().fold(1_u64, |items, side| items.saturating_mul(u64::from(*side)));
        within("the count of work items in a group", items, 1, self.max_group_items as u64)?;
        for ((blocks, side), max) in
            launch.grid.into_iter().zip(launch.block).zip(self.gpu().facts().max_items)
        {
            within("one side of a group, in work items,", side.into(), 1, max as u64)?;
            within(
                "one side of a launch, in work items,",
                u64::from(blocks) * u64::from(side),
                1,
                usize::MAX as u64,
            )?;
        }
        Ok(())
    }
}

/// How many bytes the kernel takes for this parameter: a scalar's words, or, of one that is
/// narrower than a word, 2 or 1.
fn size(kernel: cl_kernel, index: u32, argument: Argument<'_>) -> Result<usize> {
    let zeros = [0_u8; 4 * Signature::MAX_WORDS];
    let set = |bytes: usize| {
        // SAFETY: no parameter has more bytes than these zeros. Of a buffer it is no object, which
        // may be set (OpenCL 3.0, 5.9.2). The kernel is not launched with them.
        unsafe { set_kernel_arg(kernel, index, bytes, zeros.as_ptr().cast()) }
    };
    let sizes: &[usize] = match argument {
        Argument::Operand(_) => &[size_of::<cl_mem>()],
        Argument::Words([_]) => &[4, 2, 1],
        Argument::Words(words) => &[4 * words.len()],
    };
    let mut answer = Err(CL_INVALID_ARG_SIZE);
    for bytes in sizes {
        answer = set(*bytes).map(|()| *bytes);
        if answer != Err(CL_INVALID_ARG_SIZE) {
            break;
        }
    }
    answer.map_err(|code| error("clSetKernelArg", code))
}

// SAFETY: 1. The kernel touches the operands only (`new`'s contract): sub-buffers of just these
// bytes. 2. `poll` tells of a slot when the event of its launch is complete, and `stop` returns
// `Ok` when all are, and each late transfer of a launch that was refused. Then the kernels run no
// more, and what they wrote is in the memory objects (OpenCL 3.0, 5.11). An event is that of one
// launch. 4. `check` compares numbers. 5. Addresses are
// those of the context's table. 6. The queue belongs to this value. 8. Events are looked at, for as
// long as the timeout or the constants say.
unsafe impl Driver for OpenClKernel {
    contigo::forward!(|this| this.signature => name, operands);

    fn port(&self) -> &Port {
        &self.port
    }

    fn addr_bits(&self) -> u32 {
        64
    }

    fn depth(&self) -> usize {
        Self::DEPTH
    }

    fn check(&self, operands: &[DevSlice], words: &[u32]) -> Result<()> {
        self.signature.check(operands, words)?;
        self.check_launch(&self.signature.arguments(words)?.0)?;
        let align = self.gpu().align();
        // An offset's low bits are the address's.
        match operands.iter().zip(0..).find(|(operand, _)| !align.divides(operand.addr.0)) {
            Some((operand, index)) => {
                Err(Error::BufferAlign { index, addr: operand.addr.0, align_bytes: align.bytes() })
            }
            None => Ok(()),
        }
    }

    unsafe fn submit(&mut self, slot: usize, operands: &[DevSlice], words: &[u32]) -> Result<()> {
        self.launches.begin(operands)?;
        // SAFETY: this function's contract.
        let launched = unsafe { self.set_and_launch(slot, operands, words) };
        // Also where it was refused: some were set.
        self.forget_operands(words);
        launched
    }

    fn poll(&mut self, timeout: Duration) -> Result<Option<Completion>> {
        Ok(self.launches.poll(timeout)?.map(Completion::of))
    }

    fn stop(&mut self) -> Result<()> {
        self.launches.stop(self.signature.name())
    }
}

impl fmt::Debug for OpenClKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenClKernel").field("signature", &self.signature).finish_non_exhaustive()
    }
}
