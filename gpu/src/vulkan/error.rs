//! The answers of Vulkan's functions, as this project's error: in this one place.

use ash::vk;
use contigo::Error;

/// The error of `call`, which answered `result`.
pub(super) fn error(call: &'static str, result: vk::Result) -> Error {
    Error::Gpu { call, code: result.as_raw(), name: name(result) }
}

/// Its name in `vulkan_core.h`: Vulkan 1.3, "Return Codes", and those of the extensions that are
/// used here.
fn name(result: vk::Result) -> &'static str {
    match result {
        vk::Result::SUCCESS => "VK_SUCCESS",
        vk::Result::NOT_READY => "VK_NOT_READY",
        vk::Result::TIMEOUT => "VK_TIMEOUT",
        vk::Result::EVENT_SET => "VK_EVENT_SET",
        vk::Result::EVENT_RESET => "VK_EVENT_RESET",
        vk::Result::INCOMPLETE => "VK_INCOMPLETE",
        vk::Result::ERROR_OUT_OF_HOST_MEMORY => "VK_ERROR_OUT_OF_HOST_MEMORY",
        vk::Result::ERROR_OUT_OF_DEVICE_MEMORY => "VK_ERROR_OUT_OF_DEVICE_MEMORY",
        vk::Result::ERROR_INITIALIZATION_FAILED => "VK_ERROR_INITIALIZATION_FAILED",
        vk::Result::ERROR_DEVICE_LOST => "VK_ERROR_DEVICE_LOST",
        vk::Result::ERROR_MEMORY_MAP_FAILED => "VK_ERROR_MEMORY_MAP_FAILED",
        vk::Result::ERROR_LAYER_NOT_PRESENT => "VK_ERROR_LAYER_NOT_PRESENT",
        vk::Result::ERROR_EXTENSION_NOT_PRESENT => "VK_ERROR_EXTENSION_NOT_PRESENT",
        vk::Result::ERROR_FEATURE_NOT_PRESENT => "VK_ERROR_FEATURE_NOT_PRESENT",
        vk::Result::ERROR_INCOMPATIBLE_DRIVER => "VK_ERROR_INCOMPATIBLE_DRIVER",
        vk::Result::ERROR_TOO_MANY_OBJECTS => "VK_ERROR_TOO_MANY_OBJECTS",
        vk::Result::ERROR_FORMAT_NOT_SUPPORTED => "VK_ERROR_FORMAT_NOT_SUPPORTED",
        vk::Result::ERROR_FRAGMENTED_POOL => "VK_ERROR_FRAGMENTED_POOL",
        vk::Result::ERROR_UNKNOWN => "VK_ERROR_UNKNOWN",
        vk::Result::ERROR_OUT_OF_POOL_MEMORY => "VK_ERROR_OUT_OF_POOL_MEMORY",
        vk::Result::ERROR_INVALID_EXTERNAL_HANDLE => "VK_ERROR_INVALID_EXTERNAL_HANDLE",
        vk::Result::ERROR_FRAGMENTATION => "VK_ERROR_FRAGMENTATION",
        vk::Result::ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS => {
            "VK_ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS"
        }
        vk::Result::ERROR_INVALID_SHADER_NV => "VK_ERROR_INVALID_SHADER_NV",
        vk::Result::PIPELINE_COMPILE_REQUIRED => "VK_PIPELINE_COMPILE_REQUIRED",
        _ => "a VkResult that is not known here",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_has_its_number_and_its_name() {
        let lost = error("vkQueueSubmit", vk::Result::ERROR_DEVICE_LOST);
        assert_eq!(
            lost,
            Error::Gpu { call: "vkQueueSubmit", code: -4, name: "VK_ERROR_DEVICE_LOST" }
        );
        assert_eq!(lost.to_string(), "vkQueueSubmit: VK_ERROR_DEVICE_LOST (-4)");
        let refused = error("vkAllocateMemory", vk::Result::ERROR_INVALID_EXTERNAL_HANDLE);
        assert!(matches!(
            refused,
            Error::Gpu { code: -1_000_072_003, name: "VK_ERROR_INVALID_EXTERNAL_HANDLE", .. }
        ));
        assert!(matches!(error("x", vk::Result::from_raw(-77)), Error::Gpu { code: -77, .. }));
    }
}
