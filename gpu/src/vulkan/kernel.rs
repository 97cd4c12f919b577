#![allow(unsafe_code, reason = "a driver, and a shader that may write anywhere")]
//! Any compute shader as a driver.

use super::lane::Lane;
use super::object::Bound;
use super::{VulkanModule, interface, launch, pipeline};
use contigo::job::{Argument, MAX_OPERANDS, Signature};
use contigo::linux::same_process;
use contigo::mem::DevSlice;
use contigo::{Completion, Direction, Driver, Error, Port, Result};
use core::ffi::CStr;
use core::fmt;
use core::time::Duration;

/// **Any compute shader as a [`Driver`]**: a job is one dispatch, and a fence behind it says that
/// it has ended. A [`Signature`] says what the shader takes, so that no type is written for it.
///
/// | in the signature | in the shader |
/// |---|---|
/// | operand number n | `layout(set = 0, binding = n) buffer`, from the operand's first byte on |
/// | argument words | one block `layout(push_constant)`, its words in their order, with no gaps |
/// | `Launch::grid` | `gl_NumWorkGroups` |
/// | `Launch::block` | `local_size_x`, `_y` and `_z`, as the shader declares them |
/// | `Launch::shared_bytes` | 0: a shader declares `shared` variables itself |
///
/// A [`Queue`](contigo::Queue) keeps up to [`DEPTH`](Self::DEPTH) jobs in the device's queue.
/// They run and end in their order, each behind the one before it: a job's output is the next one's
/// input.
///
/// Each look at a job asks the driver (`vkGetFenceStatus`), also with a timeout of zero. This code
/// makes no system call there; a driver may make one.
///
/// A dispatch cannot be stopped. [`stop`](Driver::stop) waits for its end,
/// [`STOP_LIMIT`](Self::STOP_LIMIT) at most. A job that goes on, or a lost device, is
/// [`Error::WillNotStop`]. Then the job's buffers stay with the device for ever, and so do the
/// kernel, its module and the device's other memory.
///
/// Dropping a kernel whose jobs were forgotten waits for them too, for 100 ms. The device
/// keeps everything that is dropped before they have ended, and a block of its memory stays one of
/// 256 ([`VulkanGpu::is_hung`](super::VulkanGpu::is_hung)).
///
/// ```no_run
/// use contigo::{OperandSpec, Queue, Region};
/// use contigo::job::{Launch, Parameter::{Operand, Words}, Signature};
/// use contigo_gpu::vulkan::{VulkanGpu, VulkanKernel, VulkanMemory, VulkanModule};
/// use core::time::Duration;
/// let gpu = VulkanGpu::open(0)?;
/// # let spirv = [0; 20];
/// // SAFETY: glslangValidator made it.
/// let module = unsafe { VulkanModule::load(gpu, &spirv)? };
/// // layout(local_size_x = 64) in;
/// // layout(set = 0, binding = 0) readonly buffer From { float from[]; };
/// // layout(set = 0, binding = 1) writeonly buffer To { float to[]; };
/// // layout(push_constant) uniform Words { uint count; float by; };
/// let (from, to) = (Operand(OperandSpec::to_device()), Operand(OperandSpec::from_device()));
/// let signature = Signature::new("scale", &[from, to, Words(1), Words(1)])?;
/// let signature = signature.sized(0, 4, &[0])?.sized(1, 4, &[0])?;
/// // SAFETY: a thread reads `from[i]` and writes `to[i]`, where `i < count`.
/// let scale = unsafe { VulkanKernel::new(&module, c"main", signature, [64, 1, 1])? };
///
/// let region = Region::new(VulkanMemory::allocate(gpu, 1 << 20)?)?;
/// let pool = region.pool(16, 4096)?;
/// let mut queue = Queue::new(scale, 8)?;
/// let (count, by) = (1_000_u32, 0.5_f32);
/// let words = Launch::of(count.div_ceil(64), 64).with(&[count, by.to_bits()]);
/// for _ in 0..8 {
///     queue.submit([pool.take()?.to_device(..), pool.take()?.from_device(..)], &words)?;
/// }
/// while let Some(done) = queue.wait(Duration::from_millis(100))? {
///     let [_, to] = done.buffers;
///     println!("{:?}", to.view::<f32>()?);
/// }
/// # Ok::<(), contigo::Error>(())
/// ```
pub struct VulkanKernel {
    lane: Lane,
    signature: Signature,
    local: [u32; 3],
}

impl VulkanKernel {
    /// How many jobs are in the device's queue at once.
    pub const DEPTH: usize = pipeline::DEPTH;
    /// How long a job is waited for where it should have been finished: as long as the longest
    /// watchdog of a display driver (amdgpu's `lockup_timeout` is 10 seconds).
    pub const STOP_LIMIT: Duration = Duration::from_secs(10);

    /// The entry point `entry` of `module`, most often `main`. `local` is what the shader declares
    /// as the threads of its workgroup.
    ///
    /// # Errors
    /// - [`Error::NotFound`]: no entry point of this name computes.
    /// - [`Error::Argument`]: `local` is not what the module says, or more than the device has. Or
    ///   the argument words are more bytes than
    ///   [`max_push_constant_bytes`](super::VulkanFacts::max_push_constant_bytes).
    /// - [`Error::Unsupported`], [`Error::Argument`]: the shader asks for other resources than
    ///   `signature` has, or for more. It is seen where the module has one entry point alone.
    /// - [`Error::TooMany`]: operands, for this device. [`Error::Gpu`]. [`Error::Forked`].
    ///
    /// # Safety
    /// The shader has a storage buffer at set 0 for each operand of `signature`, no other resource,
    /// and no more push constants than its words. With any operands and argument words that
    /// [`check`](Driver::check) lets pass, it touches no bytes but the operands', and writes only
    /// those whose [`OperandSpec`](contigo::OperandSpec) allows it. Where a signature cannot say
    /// what the shader asks for, the program passes no other words, or wraps this driver in one
    /// whose `check` compares them.
    pub unsafe fn new(
        module: &VulkanModule,
        entry: &CStr,
        signature: Signature,
        local: [u32; 3],
    ) -> Result<Self> {
        let facts = module.gpu().facts();
        let words = interface::words(&signature)?;
        // 64 words at most.
        let push_bytes = words.last().map_or(0, |last| u32::try_from(last.end).unwrap_or(u32::MAX));
        if let Some(declared) = module.entry(entry)?.local {
            let given = contigo::job::Launch { grid: [1; 3], block: local, shared_bytes: 0 };
            launch::launch(facts, declared, &given)?;
        }
        launch::kernel(facts, local, signature.operands().len(), push_bytes)?;
        module.check(&signature)?;
        Ok(Self {
            lane: Lane::new(
                module,
                entry,
                signature.operands().len(),
                push_bytes,
                Self::STOP_LIMIT,
            )?,
            signature,
            local,
        })
    }

    /// As it is, with another limit than [`STOP_LIMIT`](Self::STOP_LIMIT): for tests of what does
    /// not end.
    #[doc(hidden)]
    #[must_use]
    pub fn stopping_within(mut self, limit: Duration) -> Self {
        self.lane.stop_limit = limit;
        self
    }
}

// SAFETY: 1. The shader touches the operands only (`new`'s contract). 2. `poll` tells of a slot
// when the fence behind its dispatch is signalled, and `stop` returns `Ok` when all of them are. A
// fence's first scope is all that was submitted before it, with all of the device's accesses
// (Vulkan 1.3, "Fences"). The barrier at each job's end made its writes visible to the host. 4.
// `check` compares numbers. 5. Addresses are those of the GPU's objects, on its bus. 6. Command
// buffers, sets and fences belong to this value. 8. A fence is looked at and never waited for. The
// lock before vkQueueSubmit is bounded, and that call queues work without waiting for it.
// 9. Nothing here panics, and no code of the program is called.
unsafe impl Driver for VulkanKernel {
    contigo::forward!(|this| this.signature => name, operands);

    fn port(&self) -> &Port {
        &self.lane.gpu().port
    }

    fn addr_bits(&self) -> u32 {
        64
    }

    fn depth(&self) -> usize {
        Self::DEPTH
    }

    fn check(&self, operands: &[DevSlice], words: &[u32]) -> Result<()> {
        // In a child of fork a lock may be kept for ever, by a thread that is not there.
        same_process()?;
        let gpu = self.lane.gpu();
        self.signature.check(operands, words)?;
        let (launch, _) = self.signature.arguments(words)?;
        launch::launch(gpu.facts(), self.local, &launch)?;
        for (index, operand) in operands.iter().enumerate() {
            launch::operand(gpu.facts(), index, operand)?;
            gpu.objects.find(operand)?;
        }
        Ok(())
    }

    unsafe fn submit(&mut self, slot: usize, operands: &[DevSlice], words: &[u32]) -> Result<()> {
        let (launch, arguments) = self.signature.arguments(words)?;
        let (mut bound, mut push, mut pushed) =
            ([Bound::NONE; MAX_OPERANDS], [0_u8; 4 * Signature::MAX_WORDS], 0);
        for argument in arguments {
            match argument {
                Argument::Operand(index) => {
                    let none = Error::Argument {
                        name: "the count of operands",
                        value: index as u64,
                        min: 1,
                        max: 16,
                        multiple_of: 1,
                    };
                    let operand = operands.get(index).ok_or(none)?;
                    let (object, offset) = self.lane.gpu().objects.find(operand)?;
                    let direction = self
                        .signature
                        .operands()
                        .get(index)
                        .map_or(Direction::Bidirectional, |spec| spec.direction);
                    let into = bound.get_mut(index).ok_or(none)?;
                    *into = Bound {
                        object,
                        offset: offset as u64,
                        len_bytes: operand.len_bytes as u64,
                        direction,
                    };
                }
                Argument::Words(words) => {
                    for word in words {
                        // A signature has no more words than there is room for.
                        if let Some(into) = push.get_mut(pushed..pushed + 4) {
                            into.copy_from_slice(&word.to_ne_bytes());
                        }
                        pushed += 4;
                    }
                }
            }
        }
        let operands = bound.get(..self.signature.operands().len()).unwrap_or(&bound);
        // SAFETY: the shader has these operands and words (`new`), and they are handed over (this
        // function's contract).
        unsafe {
            self.lane.submit(slot, launch.grid, operands, push.get(..pushed).unwrap_or(&push))
        }
    }

    fn poll(&mut self, timeout: Duration) -> Result<Option<Completion>> {
        Ok(self.lane.poll(timeout)?.map(Completion::of))
    }

    fn stop(&mut self) -> Result<()> {
        self.lane.stop(self.signature.name())
    }
}

impl fmt::Debug for VulkanKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VulkanKernel")
            .field("signature", &self.signature)
            .field("local", &self.local)
            .finish_non_exhaustive()
    }
}
