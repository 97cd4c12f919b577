//! Where a tensor lies, for its consumer.

use core::ffi::c_void;

/// Where the memory of a tensor is: the values of `DLDeviceType` that Contigo's memory can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Place {
    /// `kDLCPU`: the data pointer is an address of the CPU.
    Cpu,
    /// `kDLCUDAHost`: memory that CUDA pinned; the data pointer is an address of the CPU.
    CudaHost,
    /// `kDLCUDA`: the data pointer is an address of the GPU.
    Cuda,
    /// `kDLOpenCL`: the data pointer is a `cl_mem`, and the byte offset an origin in it.
    OpenCl,
    /// `kDLVulkan`: the data pointer is a `VkBuffer`, and the byte offset one of a binding.
    Vulkan,
    /// `kDLExtDev`: the data pointer is a bus address, for a driver that knows the bus.
    BusAddress,
}

impl Place {
    pub(super) const fn device_type_i32(self) -> i32 {
        use super::abi::device::{CPU, CUDA, CUDA_HOST, EXT_DEV, OPENCL, VULKAN};
        match self {
            Self::Cpu => CPU,
            Self::CudaHost => CUDA_HOST,
            Self::Cuda => CUDA,
            Self::OpenCl => OPENCL,
            Self::Vulkan => VULKAN,
            Self::BusAddress => EXT_DEV,
        }
    }

    #[allow(clippy::cast_sign_loss, reason = "all are positive")]
    pub(super) const fn device_type(self) -> u64 {
        self.device_type_i32() as u64
    }

    /// The place of a tensor from outside. Objects have none: nothing can be added to a handle, and
    /// no region here knows which memory it names.
    pub(super) const fn of(device_type: i32) -> Option<Self> {
        use super::abi::device::{CPU, CUDA, CUDA_HOST, EXT_DEV};
        match device_type {
            CPU => Some(Self::Cpu),
            CUDA_HOST => Some(Self::CudaHost),
            CUDA => Some(Self::Cuda),
            EXT_DEV => Some(Self::BusAddress),
            _ => None,
        }
    }

    /// Returns whether the CPU can follow the data pointer.
    #[must_use]
    pub(crate) const fn is_host(self) -> bool {
        matches!(self, Self::Cpu | Self::CudaHost)
    }
}

/// Where the offset of a buffer in its block goes. Consumers differ: TVM's generated code ignores
/// `byte_offset` on some paths, and an opaque handle cannot have anything added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum ByteOffset {
    /// Into the data pointer, which is an address here: `byte_offset` is 0.
    #[default]
    Folded,
    /// Into `byte_offset`: the data pointer is the block's first byte.
    Kept,
}

/// Where a tensor's elements are, for its consumer.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    pub(super) data: *mut c_void,
    pub(super) byte_offset: u64,
    /// The data pointer and the offset together.
    pub(super) addr: u64,
    pub(super) len_bytes: usize,
    pub(super) place: Place,
    /// The number of the device among those of its type.
    pub(super) device_id: i32,
}
