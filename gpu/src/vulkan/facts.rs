#![allow(unsafe_code, reason = "Vulkan's functions are called")]
//! The facts that a Vulkan device tells of itself.

use super::error::error;
use ash::{ext, khr, vk};
use contigo::{Error, Result};
use std::ffi::CStr;

/// The facts that a Vulkan device tells of itself.
///
/// # References
/// Vulkan 1.3, "Physical Devices", "Limits" and "Features".
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VulkanFacts {
    /// Its number among this program's devices, in the loader's order.
    pub ordinal: u32,
    /// Its name.
    pub name: String,
    /// The version of Vulkan that it has: major, minor, patch.
    pub api_version: (u32, u32, u32),
    /// Its driver's name; empty below Vulkan 1.2, which does not say.
    pub driver_name: String,
    /// Its driver's version, as the driver writes it; empty below Vulkan 1.2.
    pub driver_info: String,
    /// Is it a GPU beside the CPU, on a card, or the CPU itself?
    pub device_type: VulkanDeviceType,
    /// Its first family of queues that computes.
    pub compute_family: Option<u32>,
    /// Does it import the CPU's memory (`VK_EXT_external_memory_host`)?
    pub has_host_memory: bool,
    /// Does it import a dma-buf (`VK_KHR_external_memory_fd`, `VK_EXT_external_memory_dma_buf`)?
    pub has_dma_buf: bool,
    /// Does it know owners that are no Vulkan (`VK_EXT_queue_family_foreign`)?
    pub has_foreign_owners: bool,
    /// Are a shader's accesses outside a buffer kept from other memory (`robustBufferAccess`)?
    /// Then it is enabled. A shader that relies on it is still wrong: such a write may change any
    /// byte of the same block.
    pub has_robust_access: bool,
    /// Does a shader load and store single bytes (`storageBuffer8BitAccess`)? Then it is enabled.
    pub has_8bit_storage: bool,
    /// Does a shader compute with 8-bit integers (`shaderInt8`)? Then it is enabled.
    pub has_8bit_integers: bool,
    /// Memory that is imported begins and ends at a multiple of so many bytes
    /// (`minImportedHostPointerAlignment`); 0 where none is.
    pub min_imported_host_pointer_alignment: u64,
    /// An operand begins at a multiple of so many bytes (`minStorageBufferOffsetAlignment`).
    pub min_storage_buffer_offset_alignment: u64,
    /// The most bytes of one operand (`maxStorageBufferRange`).
    pub max_storage_buffer_range: u32,
    /// The most bytes of one block (`maxMemoryAllocationSize`).
    pub max_allocation_bytes: u64,
    /// The most operands of a kernel.
    pub max_storage_buffers: u32,
    /// The most bytes of a kernel's argument words (`maxPushConstantsSize`).
    pub max_push_constant_bytes: u32,
    /// The most workgroups of a launch, in x, y and z (`maxComputeWorkGroupCount`).
    pub max_groups: [u32; 3],
    /// The most threads of a workgroup, in x, y and z (`maxComputeWorkGroupSize`).
    pub max_threads: [u32; 3],
    /// The most threads of a workgroup in all (`maxComputeWorkGroupInvocations`).
    pub max_invocations: u32,
}

/// Where a Vulkan device computes (`VkPhysicalDeviceType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum VulkanDeviceType {
    /// A GPU that shares the CPU's memory: nothing is copied.
    Integrated,
    /// A card: its accesses cross the bus.
    Discrete,
    /// A GPU behind a virtual machine.
    Virtual,
    /// The CPU itself, as Mesa's lavapipe.
    Cpu,
    /// Something else.
    Other,
}

impl VulkanFacts {
    /// Why no memory can be shared with it; `None`: it can. A pure function of the facts.
    ///
    /// # Errors
    /// It returns the error that opening the device by its number answers with:
    /// [`Error::Unsupported`].
    #[must_use]
    pub fn refusal(&self) -> Option<Error> {
        let unsupported = |what, fix| Some(Error::Unsupported { what, fix });
        if self.api_version < (1, 1, 0) {
            return unsupported(
                "this device has Vulkan 1.0",
                "use another device, or a driver that has Vulkan 1.1",
            );
        }
        if self.compute_family.is_none() {
            return unsupported(
                "this Vulkan device has no queue that computes",
                "use another device",
            );
        }
        if !self.has_host_memory {
            return unsupported(
                "this Vulkan device does not take the CPU's memory (VK_EXT_external_memory_host)",
                "use another device, or a driver that has the extension",
            );
        }
        None
    }
}

/// The extensions that matter here, among those that a device has.
pub(super) struct Extensions {
    pub(super) host: bool,
    pub(super) dma_buf: bool,
    pub(super) foreign: bool,
}

impl Extensions {
    /// A pure function of their names.
    pub(super) fn among<'n>(names: impl Iterator<Item = &'n CStr> + Clone) -> Self {
        let has = |name: &CStr| names.clone().any(|known| known == name);
        Self {
            host: has(ext::external_memory_host::NAME),
            dma_buf: has(khr::external_memory_fd::NAME) && has(ext::external_memory_dma_buf::NAME),
            foreign: has(ext::queue_family_foreign::NAME),
        }
    }
}

/// Asks device `physical`, which is number `ordinal`.
pub(super) fn ask(
    instance: &ash::Instance,
    physical: vk::PhysicalDevice,
    ordinal: u32,
) -> Result<VulkanFacts> {
    // SAFETY: the device is one of this instance, which is never destroyed.
    let basic = unsafe { instance.get_physical_device_properties(physical) };
    let api = basic.api_version;
    let api_version =
        (vk::api_version_major(api), vk::api_version_minor(api), vk::api_version_patch(api));
    // SAFETY: as above.
    let extensions = unsafe { instance.enumerate_device_extension_properties(physical) };
    let extensions =
        extensions.map_err(|result| error("vkEnumerateDeviceExtensionProperties", result))?;
    let Extensions { host, dma_buf, foreign } = Extensions::among(
        extensions.iter().filter_map(|extension| extension.extension_name_as_c_str().ok()),
    );
    // SAFETY: as above.
    let families = unsafe { instance.get_physical_device_queue_family_properties(physical) };
    let compute = (0..).zip(&families).find(|(_, family)| {
        family.queue_flags.contains(vk::QueueFlags::COMPUTE) && family.queue_count > 0
    });

    // Each structure is asked for only where the version or the extension defines it.
    let (mut maintenance, mut host_limits, mut driver) = (
        vk::PhysicalDeviceMaintenance3Properties::default(),
        vk::PhysicalDeviceExternalMemoryHostPropertiesEXT::default(),
        vk::PhysicalDeviceDriverProperties::default(),
    );
    let (mut features, mut features_1_2) =
        (vk::PhysicalDeviceFeatures::default(), vk::PhysicalDeviceVulkan12Features::default());
    if api_version >= (1, 1, 0) {
        let mut properties = vk::PhysicalDeviceProperties2::default().push_next(&mut maintenance);
        if host {
            properties = properties.push_next(&mut host_limits);
        }
        if api_version >= (1, 2, 0) {
            properties = properties.push_next(&mut driver);
        }
        // SAFETY: as above; the structures are references to values of their types.
        unsafe { instance.get_physical_device_properties2(physical, &mut properties) }
        let mut asked = vk::PhysicalDeviceFeatures2::default();
        if api_version >= (1, 2, 0) {
            asked = asked.push_next(&mut features_1_2);
        }
        // SAFETY: as above.
        unsafe { instance.get_physical_device_features2(physical, &mut asked) }
        features = asked.features;
    }
    let text = |text: core::result::Result<&CStr, _>| {
        text.map_or(String::new(), |text: &CStr| text.to_string_lossy().into_owned())
    };
    let limits = basic.limits;
    Ok(VulkanFacts {
        ordinal,
        name: text(basic.device_name_as_c_str()),
        api_version,
        driver_name: text(driver.driver_name_as_c_str()),
        driver_info: text(driver.driver_info_as_c_str()),
        device_type: match basic.device_type {
            vk::PhysicalDeviceType::INTEGRATED_GPU => VulkanDeviceType::Integrated,
            vk::PhysicalDeviceType::DISCRETE_GPU => VulkanDeviceType::Discrete,
            vk::PhysicalDeviceType::VIRTUAL_GPU => VulkanDeviceType::Virtual,
            vk::PhysicalDeviceType::CPU => VulkanDeviceType::Cpu,
            _ => VulkanDeviceType::Other,
        },
        compute_family: compute.map(|(family, _)| family),
        has_host_memory: host,
        has_dma_buf: dma_buf,
        has_foreign_owners: foreign,
        has_robust_access: features.robust_buffer_access == vk::TRUE,
        has_8bit_storage: features_1_2.storage_buffer8_bit_access == vk::TRUE,
        has_8bit_integers: features_1_2.shader_int8 == vk::TRUE,
        min_imported_host_pointer_alignment: host_limits.min_imported_host_pointer_alignment,
        min_storage_buffer_offset_alignment: limits.min_storage_buffer_offset_alignment.max(1),
        max_storage_buffer_range: limits.max_storage_buffer_range,
        max_allocation_bytes: maintenance.max_memory_allocation_size,
        max_storage_buffers: limits
            .max_per_stage_descriptor_storage_buffers
            .min(limits.max_descriptor_set_storage_buffers)
            .min(limits.max_per_stage_resources),
        max_push_constant_bytes: limits.max_push_constants_size,
        max_groups: limits.max_compute_work_group_count,
        max_threads: limits.max_compute_work_group_size,
        max_invocations: limits.max_compute_work_group_invocations,
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A device that has all, with the least that Vulkan asks for.
    pub(in super::super) fn least() -> VulkanFacts {
        VulkanFacts {
            ordinal: 0,
            name: String::new(),
            api_version: (1, 1, 0),
            driver_name: String::new(),
            driver_info: String::new(),
            device_type: VulkanDeviceType::Other,
            compute_family: Some(0),
            has_host_memory: true,
            has_dma_buf: false,
            has_foreign_owners: false,
            has_robust_access: true,
            has_8bit_storage: false,
            has_8bit_integers: false,
            min_imported_host_pointer_alignment: 65_536,
            min_storage_buffer_offset_alignment: 256,
            max_storage_buffer_range: 1 << 27,
            max_allocation_bytes: 1 << 30,
            max_storage_buffers: 4,
            max_push_constant_bytes: 128,
            max_groups: [65_535; 3],
            max_threads: [128, 128, 64],
            max_invocations: 128,
        }
    }

    #[test]
    fn device_lacking_extension_tells_which() {
        let what = |facts: VulkanFacts| match facts.refusal() {
            Some(Error::Unsupported { what, .. }) => what,
            _ => "",
        };
        assert_eq!(what(least()), "");
        assert!(
            what(VulkanFacts { has_host_memory: false, ..least() })
                .contains("VK_EXT_external_memory_host")
        );
        assert!(what(VulkanFacts { api_version: (1, 0, 68), ..least() }).contains("Vulkan 1.0"));
        assert!(
            what(VulkanFacts { compute_family: None, ..least() })
                .contains("no queue that computes")
        );
    }

    #[test]
    fn a_dma_buf_takes_both_of_its_extensions() {
        let among = |names: &[&'static CStr]| {
            let Extensions { host, dma_buf, foreign } = Extensions::among(names.iter().copied());
            (host, dma_buf, foreign)
        };
        assert_eq!(among(&[]), (false, false, false));
        assert_eq!(
            among(&[c"VK_EXT_external_memory_host", c"VK_KHR_external_memory_fd"]),
            (true, false, false)
        );
        let all = [
            c"VK_EXT_external_memory_dma_buf",
            c"VK_KHR_external_memory_fd",
            c"VK_EXT_queue_family_foreign",
        ];
        assert_eq!(among(&all), (false, true, true));
        assert_eq!(among(&[c"VK_EXT_external_memory_host2"]), (false, false, false));
    }
}
