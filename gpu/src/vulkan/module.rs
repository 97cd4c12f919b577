#![allow(unsafe_code, reason = "Vulkan's functions are called")]
//! A module of compute shaders, as it was loaded.

use super::VulkanGpu;
use super::interface::Interface;
use super::spirv::{self, Entry};
use ash::vk;
use contigo::job::Signature;
use contigo::linux::same_process;
use contigo::{Error, Result};
use core::ffi::CStr;
use core::fmt;
use std::sync::Arc;

/// A handle to a module of compute shaders on one device: SPIR-V, as `glslangValidator -V`, `glslc`
/// and `dxc -spirv` make it. Clones are the same module, and a kernel has a handle too: with the
/// last of them it is destroyed. A kernel that did not end, or was forgotten, keeps its own for
/// ever.
#[derive(Clone)]
pub struct VulkanModule(Arc<Loaded>);

/// What the handles share.
struct Loaded {
    gpu: &'static VulkanGpu,
    module: vk::ShaderModule,
    entries: Vec<Entry>,
    /// The resources of its one entry point.
    interface: Option<Interface>,
}

impl VulkanModule {
    /// Loads a module from the bytes of its file, in this machine's order of bytes. Headers and
    /// lengths are looked at here; the rest is the driver's, which trusts it.
    ///
    /// # Errors
    /// [`Error::Argument`]: the length is no multiple of 4, or less than a header's 20 bytes.
    /// [`Error::Unexpected`]: the magic number is another one, or the module is cut.
    /// [`Error::NotFound`]: no entry point of it computes. [`Error::Gpu`]. [`Error::Forked`].
    ///
    /// # Safety
    /// It is valid SPIR-V for this device (VUID-VkShaderModuleCreateInfo-pCode-08737), whose
    /// capabilities and extensions the device has: what `spirv-val` lets pass. A driver's compiler
    /// may do anything with another one.
    pub unsafe fn load(gpu: &'static VulkanGpu, spirv: &[u8]) -> Result<Self> {
        let (words, rest) = spirv.as_chunks::<4>();
        if !rest.is_empty() {
            let value = spirv.len() as u64;
            return Err(Error::Argument {
                name: "the length of a module of SPIR-V",
                value,
                min: 20,
                max: !3,
                multiple_of: 4,
            });
        }
        let words: Vec<_> = words.iter().map(|word| u32::from_ne_bytes(*word)).collect();
        let (entries, interface) = spirv::entries(&words)?;
        if entries.is_empty() {
            return Err(Error::NotFound {
                what: "entry point of this SPIR-V that computes",
                among: 0.into(),
            });
        }
        same_process()?;
        let create = vk::ShaderModuleCreateInfo::default().code(&words);
        // SAFETY: the words are valid SPIR-V (the caller's promise), and live until the call
        // returns.
        let module = gpu.check("vkCreateShaderModule", unsafe {
            gpu.device().create_shader_module(&create, None)
        })?;
        Ok(Self(Arc::new(Loaded { gpu, module, entries, interface })))
    }

    /// The device.
    #[must_use]
    pub fn gpu(&self) -> &'static VulkanGpu {
        self.0.gpu
    }

    pub(super) fn raw(&self) -> vk::ShaderModule {
        self.0.module
    }

    /// The entry point called `name`.
    pub(super) fn entry(&self, name: &CStr) -> Result<&Entry> {
        let among =
            contigo::types::Among::of(u32::try_from(self.0.entries.len()).unwrap_or(u32::MAX));
        self.0
            .entries
            .iter()
            .find(|entry| entry.name.as_c_str() == name)
            .ok_or(Error::NotFound { what: "entry point of this SPIR-V", among })
    }

    /// Compares what the shader asks for with `signature`, where it is known.
    pub(super) fn check(&self, signature: &Signature) -> Result<()> {
        self.0.interface.as_ref().map_or(Ok(()), |interface| interface.check(signature))
    }
}

impl Drop for Loaded {
    /// Destroys it; or keeps it beside a job that does not end, and in a child of fork.
    fn drop(&mut self) {
        if self.gpu.is_hung() {
            return;
        }
        // SAFETY: made of this device, destroyed once, and no pipeline is being made of it.
        unsafe { self.gpu.device().destroy_shader_module(self.module, None) }
    }
}

impl fmt::Debug for VulkanModule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VulkanModule").field("entries", &self.0.entries).finish_non_exhaustive()
    }
}
