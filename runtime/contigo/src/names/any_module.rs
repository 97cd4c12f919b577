#![allow(unsafe_code, reason = "a kernel may write anywhere: its parameters are a program's claim")]
//! Code on a GPU, through any interface.

use contigo_core::job::{AnyDriver, Signature};
use contigo_core::types::Result;
use contigo_core::types::boxed::Boxed;
use core::ffi::CStr;
use core::fmt;

/// A handle to code on a GPU, as it was loaded: a CUDA or Vulkan module, an OpenCL program. Each of
/// its kernels holds another handle: the code is unloaded when the last is dropped.
pub trait GpuModule: Send + Sync {
    /// The driver of the kernel called `entry`.
    ///
    /// # Errors
    /// There is no such kernel, or it has other parameters: the interface's own error.
    ///
    /// # Safety
    /// The kernel has the parameters of `signature`. With any operands and argument words that the
    /// driver's [`check`](crate::Driver::check) lets pass, it touches no bytes but the operands',
    /// and writes only those whose [`OperandSpec`](crate::OperandSpec) declares it. If a signature
    /// cannot express what the kernel requires, the program passes only words that satisfy it.
    unsafe fn kernel(&self, entry: &CStr, signature: Signature) -> Result<AnyDriver>;
}

/// **Code on a GPU, through any interface**: a [`GpuModule`] for a program whose user names the
/// GPU. [`OpenDevice::load`](super::OpenDevice::load) makes one. It uses no heap.
///
/// ```no_run
/// use contigo::{OperandSpec, Queue, job::{Parameter::{Operand, Words}, Signature}};
/// use contigo::names::DeviceName;
/// # let code: &[u8] = &[];
/// let mut log = String::new();
/// let gpu = "cuda:0".parse::<DeviceName>()?.open()?; // or "vulkan", or "opencl:1"
/// // SAFETY: a compiler made it, and it is whole.
/// let module = unsafe { gpu.load(code, &mut log)? };
/// let (from, to) = (Operand(OperandSpec::to_device()), Operand(OperandSpec::from_device()));
/// let signature = Signature::new("scale", &[from, to, Words(1), Words(1)])?;
/// // SAFETY: these are its parameters, and it stays inside them.
/// let queue = Queue::new(unsafe { module.kernel(c"scale", signature)? }, 8)?;
/// # let _ = queue;
/// # Ok::<(), contigo::Error>(())
/// ```
pub struct AnyModule(Boxed<dyn GpuModule>);

impl AnyModule {
    /// `module`, in pages from the kernel.
    ///
    /// # Errors
    /// [`Error::Os`](crate::Error::Os): the kernel has no memory. The module is dropped.
    pub fn new<M: GpuModule + 'static>(module: M) -> Result<Self> {
        // SAFETY: the pointer is unsized, and returned.
        unsafe { Boxed::<dyn GpuModule>::unsized_by(module, |inner| inner) }.map(Self)
    }

    /// The driver of the kernel called `entry`.
    ///
    /// # Errors
    /// As [`GpuModule::kernel`].
    ///
    /// # Safety
    /// As [`GpuModule::kernel`].
    pub unsafe fn kernel(&self, entry: &CStr, signature: Signature) -> Result<AnyDriver> {
        // SAFETY: the caller's promise.
        unsafe { self.0.kernel(entry, signature) }
    }
}

impl fmt::Debug for AnyModule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyModule").finish_non_exhaustive()
    }
}
