//! The structures of iommufd's ioctls: `include/uapi/linux/iommufd.h` of Linux 6.12. The interface
//! is of 6.2, and a VFIO device can be bound to it since 6.6.

use super::abi::size_of_u32;
use core::mem::offset_of;
use nix::sys::ioctl::ioctl_num_type;

/// `IOMMU_IOAS_ALLOC`.
pub(crate) const IOAS_ALLOC: ioctl_num_type = nix::request_code_none!(b';', 0x81);
/// `IOMMU_IOAS_IOVA_RANGES`.
pub(crate) const IOAS_IOVA_RANGES: ioctl_num_type = nix::request_code_none!(b';', 0x84);
/// `IOMMU_IOAS_MAP`.
pub(crate) const IOAS_MAP: ioctl_num_type = nix::request_code_none!(b';', 0x85);
/// `IOMMU_IOAS_UNMAP`.
pub(crate) const IOAS_UNMAP: ioctl_num_type = nix::request_code_none!(b';', 0x86);

/// `struct iommu_ioas_alloc`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct IoasAlloc {
    /// The size of this struct.
    pub(crate) size: u32,
    /// 0.
    pub(crate) flags: u32,
    /// Out: the number of the new I/O address space.
    pub(crate) out_ioas_id: u32,
}

impl IoasAlloc {
    /// The request.
    #[must_use]
    pub(crate) const fn ask() -> Self {
        Self { size: size_of_u32::<Self>(), flags: 0, out_ioas_id: 0 }
    }
}

/// `struct iommu_iova_range`, and `struct vfio_iova_range` of `vfio.h`, which has the same layout.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct IovaRange {
    /// The first address.
    pub(crate) start: u64,
    /// The last address.
    pub(crate) last: u64,
}

/// `struct iommu_ioas_iova_ranges`. The pointer in it is made where the call is made.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct IoasIovaRanges {
    /// The size of this struct.
    pub(crate) size: u32,
    /// The I/O address space.
    pub(crate) ioas_id: u32,
    /// In: how many ranges fit; out: how many there are.
    pub(crate) num_iovas: u32,
    /// 0.
    pub(crate) reserved: u32,
    /// Where the kernel writes them.
    pub(crate) allowed_iovas: u64,
    /// Out: what an address must be a multiple of; at most a page.
    pub(crate) out_iova_alignment: u64,
}

impl IoasIovaRanges {
    /// The request.
    #[must_use]
    pub(crate) const fn ask(ioas_id: u32) -> Self {
        Self {
            size: size_of_u32::<Self>(),
            ioas_id,
            num_iovas: 0,
            reserved: 0,
            allowed_iovas: 0,
            out_iova_alignment: 0,
        }
    }
}

/// `struct iommu_ioas_map`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct IoasMap {
    /// The size of this struct.
    pub(crate) size: u32,
    /// Whether the address is fixed, and what the device may do.
    pub(crate) flags: u32,
    /// The I/O address space.
    pub(crate) ioas_id: u32,
    /// 0.
    pub(crate) reserved: u32,
    /// The memory's address in the process.
    pub(crate) user_va: u64,
    /// How many bytes.
    pub(crate) length: u64,
    /// The memory's address for the device.
    pub(crate) iova: u64,
}

impl IoasMap {
    /// `IOMMU_IOAS_MAP_FIXED_IOVA`, `IOMMU_IOAS_MAP_WRITEABLE` and `IOMMU_IOAS_MAP_READABLE`.
    pub(crate) const FIXED_READ_WRITE: u32 = 0b111;

    /// Maps `length` bytes at `user_va` to `iova`, for reading and writing.
    #[must_use]
    pub(crate) const fn at(ioas_id: u32, user_va: u64, iova: u64, length: u64) -> Self {
        Self {
            size: size_of_u32::<Self>(),
            flags: Self::FIXED_READ_WRITE,
            ioas_id,
            reserved: 0,
            user_va,
            length,
            iova,
        }
    }
}

/// `struct iommu_ioas_unmap`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct IoasUnmap {
    /// The size of this struct.
    pub(crate) size: u32,
    /// The I/O address space.
    pub(crate) ioas_id: u32,
    /// Where the mapping begins.
    pub(crate) iova: u64,
    /// How many bytes; out: how many were unmapped.
    pub(crate) length: u64,
}

impl IoasUnmap {
    /// Unmaps the `length` bytes at `iova`.
    #[must_use]
    pub(crate) const fn at(ioas_id: u32, iova: u64, length: u64) -> Self {
        Self { size: size_of_u32::<Self>(), ioas_id, iova, length }
    }
}

const _: () = {
    assert!(size_of::<IoasAlloc>() == 12 && size_of::<IovaRange>() == 16);
    assert!(size_of::<IoasIovaRanges>() == 32 && offset_of!(IoasIovaRanges, allowed_iovas) == 16);
    assert!(
        size_of::<IoasMap>() == 40
            && offset_of!(IoasMap, user_va) == 16
            && offset_of!(IoasMap, iova) == 32
    );
    assert!(
        size_of::<IoasUnmap>() == 24
            && offset_of!(IoasUnmap, iova) == 8
            && offset_of!(IoasUnmap, length) == 16
    );
    assert!(
        IOAS_ALLOC == 0x3B81
            && IOAS_IOVA_RANGES == 0x3B84
            && IOAS_MAP == 0x3B85
            && IOAS_UNMAP == 0x3B86
    );
};
