#![allow(unsafe_code, reason = "a kernel's parameters are the C program's promise")]
//! GPUs of whatever interface: their ports, their code, and the drivers of their kernels.
//!
//! A GPU stays open until the program ends; an object of it that is closed gives back its own.

use super::cuda;
use crate::fault::{Fault, Misuse};
use crate::handles::CONTIGO_MAX_ENGINES;
use crate::last_error::ForeignWords;
use contigo::job::{AnyDriver, Parameter, Signature};
use contigo::names::{self, AnyModule, DeviceName, NO_PORT};
use contigo::{Bus, Error, Port};
use contigo_objects::{Kind, Lease, Table, keep};
use core::ffi::CStr;

/// Code on GPUs, whose kernels engines have.
pub(crate) static MODULES: Table<
    AnyModule,
    { Kind::Module as u8 },
    { CONTIGO_MAX_ENGINES as usize },
> = Table::new();

/// Brings the names of GPUs that are another crate's. A second call changes nothing.
pub(crate) fn bring() -> Result<(), Error> {
    #[cfg(feature = "gpu")]
    contigo_gpu::register()?;
    Ok(())
}

/// A GPU's way to memory that was made for it, where `name` is a GPU's: `cuda`, `vulkan:1`.
pub(crate) fn port(name: &str) -> Result<Option<Port>, Fault> {
    let Ok(name) = name.parse::<DeviceName>() else { return Ok(None) };
    match name.kind() {
        "cuda" => cuda::port(name.ordinal()).map(Some),
        "vulkan" | "opencl" => {
            bring()?;
            let gpu = name.open().map_err(|error| Fault::Device { name, error })?;
            gpu.port().ok_or(NO_PORT.into()).map(Some)
        }
        _ => Ok(None),
    }
}

/// Loads code for the GPU that `port` belongs to.
///
/// # Safety
/// As `OpenDevice::load`.
pub(crate) unsafe fn load(port: &Port, image: &[u8]) -> Result<u64, Fault> {
    let claimed = MODULES.claim()?;
    let mut log = ForeignWords::of("the compiler of the GPU's driver");
    let loaded = match port.bus {
        // SAFETY: the caller's promise.
        Bus::Gpu(ordinal) => unsafe { cuda::load(ordinal, image, &mut log) },
        _ => match names::gpu_behind(port)? {
            // SAFETY: the caller's promise.
            Some(gpu) => unsafe { gpu.load(image, &mut log) },
            None => return Err(Misuse::NoGpu { is: port.name }.into()),
        },
    };
    Ok(claimed.put(loaded.map_err(|error| log.refusal(error))?))
}

/// The driver of one of its kernels, and the module's lease: a module is not closed while it has
/// engines.
///
/// # Safety
/// As `AnyModule::kernel`.
pub(crate) unsafe fn kernel(
    module: u64,
    entry: &CStr,
    parameters: &[Parameter],
) -> Result<(AnyDriver, Lease<AnyModule>), Fault> {
    let module = MODULES.lease(module)?;
    let signature = Signature::new(keep(entry.to_str().unwrap_or("kernel"))?, parameters)?;
    // SAFETY: the caller's promise.
    let driver = unsafe { module.kernel(entry, signature)? };
    Ok((driver, module))
}
