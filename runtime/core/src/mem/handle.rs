//! A block for a device that has no addresses.

/// A block as an object, for a device that takes objects and no addresses. Nothing can be added to
/// a handle, so a tensor of such memory keeps its byte offset
/// ([`ByteOffset::Kept`](crate::dlpack::ByteOffset::Kept)), and a consumer passes that as the
/// origin of a sub-buffer.
///
/// DLPack's text says the same: the data pointer is a `cl_mem` in OpenCL, and may be opaque
/// elsewhere (`dlpack.h`, `DLTensor::data`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Handle {
    /// The interface that the object belongs to.
    pub api: Api,
    /// Its value: a `cl_mem`, or a `VkBuffer`.
    pub raw: u64,
    /// The number of the device, among those of that interface on this machine.
    pub device_id: u32,
}

/// An interface whose memory is objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Api {
    /// OpenCL: `kDLOpenCL`.
    OpenCl,
    /// Vulkan: `kDLVulkan`.
    Vulkan,
}
