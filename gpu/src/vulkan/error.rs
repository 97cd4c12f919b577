//! The answers of Vulkan's functions, as this project's error: in this one place.

use ash::vk;
use contigo::Error;

/// The error of `call`, which answered `result`.
pub(super) fn error(call: &'static str, result: vk::Result) -> Error {
    Error::Gpu { call, code: result.as_raw(), name: name(result) }
}

/// The name of each in `vulkan_core.h`.
macro_rules! names {
    ($($name:ident),* $(,)?) => {
        fn name(result: vk::Result) -> &'static str {
            match result {
                $(vk::Result::$name => concat!("VK_", stringify!($name)),)*
                _ => "a VkResult that is not known here",
            }
        }
    };
}

// Vulkan 1.3, "Return Codes", and those of the extensions that are used here.
names! {
    SUCCESS, NOT_READY, TIMEOUT, EVENT_SET, EVENT_RESET, INCOMPLETE,
    ERROR_OUT_OF_HOST_MEMORY, ERROR_OUT_OF_DEVICE_MEMORY, ERROR_INITIALIZATION_FAILED, ERROR_DEVICE_LOST,
    ERROR_MEMORY_MAP_FAILED, ERROR_LAYER_NOT_PRESENT, ERROR_EXTENSION_NOT_PRESENT, ERROR_FEATURE_NOT_PRESENT,
    ERROR_INCOMPATIBLE_DRIVER, ERROR_TOO_MANY_OBJECTS, ERROR_FORMAT_NOT_SUPPORTED, ERROR_FRAGMENTED_POOL,
    ERROR_UNKNOWN, ERROR_OUT_OF_POOL_MEMORY, ERROR_INVALID_EXTERNAL_HANDLE, ERROR_FRAGMENTATION,
    ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS, ERROR_INVALID_SHADER_NV, PIPELINE_COMPILE_REQUIRED,
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
