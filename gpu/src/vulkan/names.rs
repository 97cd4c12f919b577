#![allow(unsafe_code, reason = "code for a device is loaded")]
//! How [`contigo::names`] opens a device by its name, and what it takes of it.

use super::{VulkanGpu, VulkanKernel, VulkanMemory, VulkanModule};
use contigo::job::{AnyDriver, Signature};
use contigo::names::{AnyMemory, AnyModule, GpuDevice, GpuKind, GpuModule};
use contigo::{Error, Port, Result};
use core::ffi::CStr;
use core::fmt;

/// The names `vulkan` and `vulkan:1`, for [`contigo::names::provide`]. A device that was opened by
/// its name is the one of [`VulkanGpu::open`].
pub static KIND: GpuKind =
    GpuKind { kind: "vulkan", open: |ordinal| Ok(VulkanGpu::open(ordinal)?) };

impl GpuDevice for VulkanGpu {
    fn name(&self) -> &str {
        &self.facts().name
    }

    fn port(&self) -> Port {
        Self::port(self)
    }

    fn memory(&'static self, len_bytes: usize) -> Result<AnyMemory> {
        AnyMemory::new(VulkanMemory::allocate(self, len_bytes)?)
    }

    unsafe fn load(&'static self, code: &[u8], _: &mut dyn fmt::Write) -> Result<AnyModule> {
        // SAFETY: the caller's promise.
        AnyModule::new(unsafe { VulkanModule::load(self, code)? })
    }
}

impl GpuModule for VulkanModule {
    unsafe fn kernel(&self, entry: &CStr, signature: Signature) -> Result<AnyDriver> {
        const FIX: &str = "declare its local_size as numbers, or use VulkanKernel::new";
        let unknown = Error::Unsupported {
            what: "the shader's workgroup is as large as a specialisation constant says",
            fix: FIX,
        };
        let local = self.entry(entry)?.local.ok_or(unknown)?;
        // SAFETY: the caller's promise.
        AnyDriver::new(unsafe { VulkanKernel::new(self, entry, signature, local)? })
    }
}
