#![allow(unsafe_code, reason = "code is loaded, and a kernel may write anywhere")]
//! CUDA's GPUs by their numbers, and their code.

use super::any_module::{AnyModule, GpuModule};
use contigo_core::cuda::{Cuda, CudaFunction, Gpu, Image, Log, Module};
use contigo_core::job::{AnyDriver, Signature};
use contigo_core::types::{Error, lock};
use core::ffi::CStr;
use core::fmt;
use spin::{Mutex, Once};

/// NVIDIA's driver, from its first use until the program ends: it stays loaded anyway.
static DRIVER: Once<Cuda> = Once::new();
/// Held while the driver is loaded, so that no thread waits in `DRIVER` without a bound.
static LOADING: Mutex<()> = Mutex::new(());

/// GPU number `ordinal`.
pub(super) fn open(ordinal: u32) -> Result<Gpu, Error> {
    let driver = match DRIVER.get() {
        Some(driver) => driver,
        None => {
            let _one_at_a_time = lock::acquire(&LOADING)?;
            match DRIVER.get() {
                Some(driver) => driver,
                None => {
                    let loaded = Cuda::load()?;
                    DRIVER.call_once(|| loaded)
                }
            }
        }
    };
    Gpu::primary(driver, ordinal)
}

/// Loads code for a CUDA GPU that the program has opened itself, as
/// [`OpenDevice::load`](super::OpenDevice::load) does.
///
/// # Errors
/// As [`Module::load`].
///
/// # Safety
/// As [`Module::load`].
pub unsafe fn load_cuda(
    gpu: &Gpu,
    code: &[u8],
    log: &mut dyn fmt::Write,
) -> Result<AnyModule, Error> {
    let mut said = Log::new();
    // SAFETY: the caller's promise.
    let module = unsafe { Module::load(gpu, Image::of(code), &mut said) };
    // A log that is full is truncated.
    AnyModule::new(module.inspect_err(|_| _ = log.write_str(&said))?)
}

impl GpuModule for Module {
    unsafe fn kernel(&self, entry: &CStr, signature: Signature) -> Result<AnyDriver, Error> {
        // SAFETY: the caller's promise.
        AnyDriver::new(unsafe { CudaFunction::new(self, entry, signature)? })
    }
}
