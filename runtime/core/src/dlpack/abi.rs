//! `dlpack.h` 1.1, as Rust: the structures that frameworks exchange, in C's layout.
#![allow(missing_docs, reason = "dlpack.h documents the fields")]

use core::ffi::c_void;

/// `DLPACK_MAJOR_VERSION`: another one has another layout, of which only the deleter may be used.
pub const MAJOR: u32 = 1;
/// `DLPACK_MINOR_VERSION`: later ones add names of types and devices.
pub const MINOR: u32 = 1;

/// `DLPACK_FLAG_BITMASK_READ_ONLY`.
pub const READ_ONLY: u64 = 1;
/// `DLPACK_FLAG_BITMASK_IS_COPIED`.
pub const IS_COPIED: u64 = 1 << 1;

/// `DLDeviceType`: the types that Contigo's memory can be.
pub mod device {
    /// Memory that the CPU reads and writes.
    pub const CPU: i32 = 1;
    /// The GPU's view of memory.
    pub const CUDA: i32 = 2;
    /// Memory that CUDA has pinned, by its host address.
    pub const CUDA_HOST: i32 = 3;
    /// An object of OpenCL: the data pointer is a `cl_mem`.
    pub const OPENCL: i32 = 4;
    /// An object of Vulkan: the data pointer is a `VkBuffer`.
    pub const VULKAN: i32 = 7;
    /// "Reserved extension device type": here the data pointer is a bus address.
    pub const EXT_DEV: i32 = 12;
}

/// `DLPackVersion`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DlVersion {
    pub major: u32,
    pub minor: u32,
}

/// `DLDevice`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DlDevice {
    pub device_type: i32,
    pub device_id: i32,
}

/// `DLDataType`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct DataType {
    /// `DLDataTypeCode`.
    pub code: u8,
    pub bits: u8,
    pub lanes: u16,
}

/// `DLTensor`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DlTensor {
    pub data: *mut c_void,
    pub device: DlDevice,
    pub ndim: i32,
    pub dtype: DataType,
    pub shape: *mut i64,
    pub strides: *mut i64,
    pub byte_offset: u64,
}

/// `DLManagedTensor`, as before DLPack 1.0.
#[repr(C)]
#[derive(Debug)]
pub struct DlManagedTensor {
    pub tensor: DlTensor,
    pub manager_ctx: *mut c_void,
    pub deleter: Option<unsafe extern "C" fn(*mut DlManagedTensor)>,
}

/// `DLManagedTensorVersioned`.
#[repr(C)]
#[derive(Debug)]
pub struct DlManagedTensorVersioned {
    pub version: DlVersion,
    pub manager_ctx: *mut c_void,
    pub deleter: Option<unsafe extern "C" fn(*mut DlManagedTensorVersioned)>,
    pub flags: u64,
    pub tensor: DlTensor,
}

// On 64 bits, and on armv7 (AAPCS: a u64 is aligned to 8 bytes).
#[cfg(target_pointer_width = "64")]
const _: () = assert!(
    size_of::<DlTensor>() == 48
        && size_of::<DlManagedTensor>() == 64
        && size_of::<DlManagedTensorVersioned>() == 80
);
#[cfg(all(target_pointer_width = "32", target_arch = "arm"))]
const _: () = assert!(
    size_of::<DlTensor>() == 40
        && size_of::<DlManagedTensor>() == 48
        && size_of::<DlManagedTensorVersioned>() == 64
);
