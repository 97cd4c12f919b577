#![allow(unsafe_code, reason = "an ioctl's argument is a pointer, and its request says to what")]
//! One ioctl of the runtime, read back from its number and its pointer.

use super::abi::{
    self, AttachIommufdPt, BindIommufd, DeviceInfo, GroupStatus, IrqInfo, IrqSet, MapDma,
    RegionInfo, Type1Info, UnmapDma,
};
use super::iommufd::{self, IoasAlloc, IoasIovaRanges, IoasMap, IoasUnmap, IovaRange};
use nix::sys::ioctl::ioctl_num_type;
use std::ffi::{CStr, c_int, c_void};
use std::{ptr, slice};

/// The requests that this kernel knows.
pub(super) enum Request<'a> {
    CheckExtension(u32),
    SetIommu(u32),
    GroupStatus(&'a mut GroupStatus),
    /// With the container's descriptor.
    SetContainer(c_int),
    /// With the device's name.
    GetDeviceFd(&'a CStr),
    DeviceInfo(&'a mut DeviceInfo),
    RegionInfo(&'a mut RegionInfo),
    IrqInfo(&'a mut IrqInfo),
    SetIrqs(&'a IrqSet),
    Reset,
    BindIommufd(&'a mut BindIommufd),
    AttachIommufdPt(&'a mut AttachIommufdPt),
    Type1Info(&'a mut Type1Info),
    MapDma(&'a MapDma),
    UnmapDma(&'a mut UnmapDma),
    IoasAlloc(&'a mut IoasAlloc),
    IoasIovaRanges(&'a mut IoasIovaRanges, &'a mut [IovaRange]),
    IoasMap(&'a IoasMap),
    IoasUnmap(&'a mut IoasUnmap),
}

impl Request<'_> {
    /// The request of this number; `None`: this kernel knows none.
    ///
    /// # Safety
    /// `argument` is what the request reads and writes, and lives as long as what is returned.
    pub(super) unsafe fn of(code: ioctl_num_type, argument: *mut c_void) -> Option<Self> {
        #[allow(clippy::cast_possible_truncation, reason = "a number is passed as a pointer")]
        let number = argument.addr() as u32;
        // SAFETY: the caller's promise; the structures are those of the kernel's headers.
        Some(unsafe {
            match code {
                abi::CHECK_EXTENSION => Self::CheckExtension(number),
                abi::SET_IOMMU => Self::SetIommu(number),
                abi::DEVICE_RESET => Self::Reset,
                abi::GROUP_SET_CONTAINER => Self::SetContainer(*argument.cast()),
                abi::GROUP_GET_DEVICE_FD => {
                    Self::GetDeviceFd(CStr::from_ptr(argument.cast_const().cast()))
                }
                abi::GROUP_GET_STATUS => Self::GroupStatus(&mut *argument.cast()),
                abi::DEVICE_GET_INFO => Self::DeviceInfo(&mut *argument.cast()),
                abi::DEVICE_GET_REGION_INFO => Self::RegionInfo(&mut *argument.cast()),
                abi::DEVICE_GET_IRQ_INFO => Self::IrqInfo(&mut *argument.cast()),
                abi::DEVICE_SET_IRQS => Self::SetIrqs(&*argument.cast()),
                abi::DEVICE_BIND_IOMMUFD => Self::BindIommufd(&mut *argument.cast()),
                abi::DEVICE_ATTACH_IOMMUFD_PT => Self::AttachIommufdPt(&mut *argument.cast()),
                abi::IOMMU_GET_INFO => Self::Type1Info(&mut *argument.cast()),
                abi::IOMMU_MAP_DMA => Self::MapDma(&*argument.cast()),
                abi::IOMMU_UNMAP_DMA => Self::UnmapDma(&mut *argument.cast()),
                iommufd::IOAS_ALLOC => Self::IoasAlloc(&mut *argument.cast()),
                iommufd::IOAS_IOVA_RANGES => {
                    let ask = &mut *argument.cast::<IoasIovaRanges>();
                    #[allow(clippy::cast_possible_truncation, reason = "a process's address")]
                    let place = ptr::with_exposed_provenance_mut(ask.allowed_iovas as usize);
                    let room = slice::from_raw_parts_mut(place, ask.num_iovas as usize);
                    Self::IoasIovaRanges(ask, room)
                }
                iommufd::IOAS_MAP => Self::IoasMap(&*argument.cast()),
                iommufd::IOAS_UNMAP => Self::IoasUnmap(&mut *argument.cast()),
                _ => return None,
            }
        })
    }

    /// Its name in the runtime's errors.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::CheckExtension(_) => "ioctl(VFIO_CHECK_EXTENSION)",
            Self::SetIommu(_) => "ioctl(VFIO_SET_IOMMU)",
            Self::GroupStatus(_) => "ioctl(VFIO_GROUP_GET_STATUS)",
            Self::SetContainer(_) => "ioctl(VFIO_GROUP_SET_CONTAINER)",
            Self::GetDeviceFd(_) => "ioctl(VFIO_GROUP_GET_DEVICE_FD)",
            Self::DeviceInfo(_) => "ioctl(VFIO_DEVICE_GET_INFO)",
            Self::RegionInfo(_) => "ioctl(VFIO_DEVICE_GET_REGION_INFO)",
            Self::IrqInfo(_) => "ioctl(VFIO_DEVICE_GET_IRQ_INFO)",
            Self::SetIrqs(_) => "ioctl(VFIO_DEVICE_SET_IRQS)",
            Self::Reset => "ioctl(VFIO_DEVICE_RESET)",
            Self::BindIommufd(_) => "ioctl(VFIO_DEVICE_BIND_IOMMUFD)",
            Self::AttachIommufdPt(_) => "ioctl(VFIO_DEVICE_ATTACH_IOMMUFD_PT)",
            Self::Type1Info(_) => "ioctl(VFIO_IOMMU_GET_INFO)",
            Self::MapDma(_) => "ioctl(VFIO_IOMMU_MAP_DMA)",
            Self::UnmapDma(_) => "ioctl(VFIO_IOMMU_UNMAP_DMA)",
            Self::IoasAlloc(_) => "ioctl(IOMMU_IOAS_ALLOC)",
            Self::IoasIovaRanges(..) => "ioctl(IOMMU_IOAS_IOVA_RANGES)",
            Self::IoasMap(_) => "ioctl(IOMMU_IOAS_MAP)",
            Self::IoasUnmap(_) => "ioctl(IOMMU_IOAS_UNMAP)",
        }
    }
}
