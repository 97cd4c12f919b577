//! Vulkan's half of the crate, on whatever device this machine has: Mesa's lavapipe will do. Each
//! test is skipped by name where there is no device, or nothing that compiles shaders.
#![cfg(feature = "vulkan")]
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that panics has failed; shaders are promised to be what they are"
)]

#[path = "../child/mod.rs"]
mod child;
mod conformance;
mod fork;
#[path = "../fork/mod.rs"]
mod forks;
mod hang;
#[path = "../jobs/mod.rs"]
mod jobs;
mod machines;
mod memory;
mod operands;
mod refused;
mod shaders;
mod validation;

use child::skipped;
use contigo::job::Signature;
use contigo::{Align, Error, Region};
use contigo_gpu::vulkan::{
    KIND, VulkanGpu, VulkanGpu as Gpu, VulkanKernel, VulkanKernel as Kernel, VulkanMemory,
    VulkanMemory as Memory, VulkanModule,
};
use std::ffi::CStr;
use std::time::Duration;

/// How long a job may take: long enough for two slow cores with other work.
const LIMIT: Duration = Duration::from_secs(20);

/// Does the error of opening the first device say that this machine has none? Any other one is a
/// fault of this crate or of the driver.
fn is_nothing_there(error: &Error) -> bool {
    const INCOMPATIBLE_DRIVER: i32 = -9;
    match error {
        Error::NoLibrary { .. }
        | Error::NotFound { .. }
        | Error::Argument { name: "the GPU's ordinal", value: 0, .. } => true,
        Error::Gpu { code, .. } => *code == INCOMPATIBLE_DRIVER,
        _ => false,
    }
}

/// The first device; `None`, and this thread's test is skipped, where there is none.
///
/// # Panics
/// It does not open.
fn gpu() -> Option<&'static VulkanGpu> {
    match VulkanGpu::open(0) {
        Ok(gpu) => Some(gpu),
        Err(error) if is_nothing_there(&error) => {
            skipped(&error.to_string());
            None
        }
        Err(error) => panic!("the first device does not open: {error}"),
    }
}

/// The first device and a shader, as [`gpu`].
fn with_shader(glsl: &str) -> Option<(&'static VulkanGpu, VulkanModule)> {
    let gpu = gpu()?;
    let spirv = shaders::compiled(glsl).inspect_err(|why| skipped(why)).ok()?;
    // SAFETY: glslangValidator made it.
    Some((gpu, unsafe { VulkanModule::load(gpu, &spirv) }.unwrap()))
}

/// A kernel of 64 threads.
fn kernel(module: &VulkanModule, signature: Signature) -> VulkanKernel {
    // SAFETY: each shader here touches the elements that its signature sizes.
    unsafe { VulkanKernel::new(module, c"main", signature, [64, 1, 1]) }.unwrap()
}

/// A region of `len_bytes` or a little more.
fn region(gpu: &'static VulkanGpu, len_bytes: usize) -> Region {
    Region::new(VulkanMemory::allocate(gpu, len_bytes).unwrap()).unwrap()
}

/// The device with the kernels of `jobs`.
struct Opened {
    gpu: &'static VulkanGpu,
    xor: VulkanModule,
    scale: VulkanModule,
}

fn opened() -> Option<Opened> {
    let ((gpu, xor), (_, scale)) = (with_shader(shaders::XOR)?, with_shader(shaders::SCALE)?);
    Some(Opened { gpu, xor, scale })
}

impl Opened {
    fn align(&self) -> Align {
        self.gpu.align()
    }

    fn region(&self, len_bytes: usize) -> Region {
        region(self.gpu, len_bytes)
    }

    fn xor(&self) -> Kernel {
        kernel(&self.xor, shaders::xor())
    }

    fn scale(&self) -> Kernel {
        kernel(&self.scale, shaders::scale())
    }

    /// The code of `scale`, its entry point and its signature.
    fn code_of_scale(&self) -> (Vec<u8>, &'static CStr, Signature) {
        (shaders::compiled(shaders::SCALE).unwrap(), c"main", shaders::scale())
    }
}
