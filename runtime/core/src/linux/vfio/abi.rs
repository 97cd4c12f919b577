//! The structures of VFIO's ioctls: `include/uapi/linux/vfio.h` of Linux 6.12, whose layouts do not
//! change (each struct says its own size, and grows only at its end).

use core::ffi::c_int;
use core::mem::offset_of;
use nix::sys::ioctl::ioctl_num_type;

/// `_IO(VFIO_TYPE, VFIO_BASE + nr)`: the size is in the struct, not in the request.
const fn request(nr: u8) -> ioctl_num_type {
    nix::request_code_none!(b';', 100 + nr)
}

/// `VFIO_CHECK_EXTENSION`, on a container; takes a number.
pub(crate) const CHECK_EXTENSION: ioctl_num_type = request(1);
/// `VFIO_SET_IOMMU`, on a container; takes a number.
pub(crate) const SET_IOMMU: ioctl_num_type = request(2);
/// `VFIO_GROUP_GET_STATUS`, on a group.
pub(crate) const GROUP_GET_STATUS: ioctl_num_type = request(3);
/// `VFIO_GROUP_SET_CONTAINER`, on a group; takes a pointer to a descriptor.
pub(crate) const GROUP_SET_CONTAINER: ioctl_num_type = request(4);
/// `VFIO_GROUP_GET_DEVICE_FD`, on a group; takes a name.
pub(crate) const GROUP_GET_DEVICE_FD: ioctl_num_type = request(6);
/// `VFIO_DEVICE_GET_INFO`, on a device, as are the next ones.
pub(crate) const DEVICE_GET_INFO: ioctl_num_type = request(7);
/// `VFIO_DEVICE_GET_REGION_INFO`.
pub(crate) const DEVICE_GET_REGION_INFO: ioctl_num_type = request(8);
/// `VFIO_DEVICE_GET_IRQ_INFO`.
pub(crate) const DEVICE_GET_IRQ_INFO: ioctl_num_type = request(9);
/// `VFIO_DEVICE_SET_IRQS`.
pub(crate) const DEVICE_SET_IRQS: ioctl_num_type = request(10);
/// `VFIO_DEVICE_RESET`; takes nothing.
pub(crate) const DEVICE_RESET: ioctl_num_type = request(11);
/// `VFIO_DEVICE_BIND_IOMMUFD`, Linux 6.6 and newer.
pub(crate) const DEVICE_BIND_IOMMUFD: ioctl_num_type = request(18);
/// `VFIO_DEVICE_ATTACH_IOMMUFD_PT`, Linux 6.6 and newer.
pub(crate) const DEVICE_ATTACH_IOMMUFD_PT: ioctl_num_type = request(19);
/// `VFIO_IOMMU_GET_INFO`, on a container, as are the next two.
pub(crate) const IOMMU_GET_INFO: ioctl_num_type = request(12);
/// `VFIO_IOMMU_MAP_DMA`.
pub(crate) const IOMMU_MAP_DMA: ioctl_num_type = request(13);
/// `VFIO_IOMMU_UNMAP_DMA`.
pub(crate) const IOMMU_UNMAP_DMA: ioctl_num_type = request(14);

/// `VFIO_TYPE1v2_IOMMU`: mappings are undone as they were made, never in part.
pub(crate) const TYPE1V2_IOMMU: u32 = 3;
/// `VFIO_DMA_CC_IOMMU`: the IOMMU makes every access of the devices snoop, whatever they ask for.
pub(crate) const DMA_CC_IOMMU: u32 = 4;
/// `VFIO_PCI_CONFIG_REGION_INDEX`.
pub(crate) const CONFIG_REGION: u32 = 7;
/// `VFIO_PCI_INTX_IRQ_INDEX`, `VFIO_PCI_MSI_IRQ_INDEX`, `VFIO_PCI_MSIX_IRQ_INDEX`.
pub(crate) const INTX: u32 = 0;
/// See [`INTX`].
pub(crate) const MSI: u32 = 1;
/// See [`INTX`].
pub(crate) const MSIX: u32 = 2;

/// `struct vfio_group_status`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct GroupStatus {
    /// The size of this struct.
    pub(crate) argsz: u32,
    /// Bit 0: viable; bit 1: has a container.
    pub(crate) flags: u32,
}

impl GroupStatus {
    /// `VFIO_GROUP_FLAGS_VIABLE`: every device of the group has VFIO's driver or none.
    pub(crate) const VIABLE: u32 = 1;
}

/// `struct vfio_device_info`, without the capabilities that a newer kernel appends.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DeviceInfo {
    /// The size of this struct.
    pub(crate) argsz: u32,
    /// The kind of device, as flags.
    pub(crate) flags: u32,
    /// How many regions.
    pub(crate) num_regions: u32,
    /// How many kinds of interrupts.
    pub(crate) num_irqs: u32,
}

impl DeviceInfo {
    /// `VFIO_DEVICE_FLAGS_RESET`: the kernel can reset it.
    pub(crate) const RESET: u32 = 1 << 0;
    /// `VFIO_DEVICE_FLAGS_PCI`.
    pub(crate) const PCI: u32 = 1 << 1;
}

/// `struct vfio_region_info`, with room for its capabilities.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct RegionInfo {
    /// The size of this struct.
    pub(crate) argsz: u32,
    /// The accesses that the region allows.
    pub(crate) flags: u32,
    /// In: which region.
    pub(crate) index: u32,
    /// Where the first capability is, from the struct's beginning; 0: none, or no room.
    pub(crate) cap_offset: u32,
    /// The region's size in bytes.
    pub(crate) size: u64,
    /// Where it is in the device's file.
    pub(crate) offset: u64,
    /// Capabilities.
    pub(crate) caps: [u32; 64],
}

impl RegionInfo {
    /// `VFIO_REGION_INFO_FLAG_MMAP`.
    pub(crate) const MMAP: u32 = 1 << 2;
    /// `VFIO_REGION_INFO_FLAG_CAPS`.
    pub(crate) const CAPS: u32 = 1 << 3;
    /// `VFIO_REGION_INFO_CAP_SPARSE_MMAP`: only parts of the region can be mapped.
    pub(crate) const SPARSE_MMAP: u16 = 1;

    /// The request for region `index`.
    #[must_use]
    pub(crate) const fn ask(index: u32) -> Self {
        Self {
            argsz: size_of_u32::<Self>(),
            flags: 0,
            index,
            cap_offset: 0,
            size: 0,
            offset: 0,
            caps: [0; 64],
        }
    }
}

/// `struct vfio_irq_info`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IrqInfo {
    /// The size of this struct.
    pub(crate) argsz: u32,
    /// Bit 0: can signal an eventfd.
    pub(crate) flags: u32,
    /// In: which kind of interrupt.
    pub(crate) index: u32,
    /// How many there are.
    pub(crate) count: u32,
}

impl IrqInfo {
    /// `VFIO_IRQ_INFO_EVENTFD`.
    pub(crate) const EVENTFD: u32 = 1;
}

/// `struct vfio_irq_set`, with at most one descriptor.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct IrqSet {
    /// The size of this struct, with the data that `count` says.
    pub(crate) argsz: u32,
    /// The type of the data, and the action.
    pub(crate) flags: u32,
    /// Which kind of interrupt.
    pub(crate) index: u32,
    /// The first one.
    pub(crate) start: u32,
    /// How many; 0 with "no data" and "trigger" turns the kind off.
    pub(crate) count: u32,
    /// The eventfd.
    pub(crate) data: c_int,
}

impl IrqSet {
    /// `VFIO_IRQ_SET_DATA_NONE`.
    pub(crate) const DATA_NONE: u32 = 1 << 0;
    /// `VFIO_IRQ_SET_DATA_EVENTFD`.
    pub(crate) const DATA_EVENTFD: u32 = 1 << 2;
    /// `VFIO_IRQ_SET_ACTION_UNMASK`.
    pub(crate) const UNMASK: u32 = 1 << 4;
    /// `VFIO_IRQ_SET_ACTION_TRIGGER`.
    pub(crate) const TRIGGER: u32 = 1 << 5;

    /// Makes interrupt 0 of kind `index` signal `eventfd`.
    #[must_use]
    pub(crate) const fn signal(index: u32, eventfd: c_int) -> Self {
        let flags = Self::DATA_EVENTFD | Self::TRIGGER;
        Self { argsz: size_of_u32::<Self>(), flags, index, start: 0, count: 1, data: eventfd }
    }

    /// Unmasks interrupt 0 of kind `index`: a level, which was masked when it came.
    #[must_use]
    pub(crate) const fn unmask(index: u32) -> Self {
        Self {
            argsz: Self::BARE_BYTES,
            flags: Self::DATA_NONE | Self::UNMASK,
            index,
            start: 0,
            count: 1,
            data: -1,
        }
    }

    /// Turns off the interrupts of kind `index`.
    #[must_use]
    pub(crate) const fn off(index: u32) -> Self {
        Self {
            argsz: Self::BARE_BYTES,
            flags: Self::DATA_NONE | Self::TRIGGER,
            index,
            start: 0,
            count: 0,
            data: -1,
        }
    }

    /// `offsetofend(struct vfio_irq_set, count)`.
    const BARE_BYTES: u32 = 20;
}

/// `struct vfio_iommu_type1_info`, with room for its capabilities.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Type1Info {
    /// The size of this struct; out: how much the kernel has to report.
    pub(crate) argsz: u32,
    /// Bit 1: there are capabilities.
    pub(crate) flags: u32,
    /// The page sizes, one bit each.
    pub(crate) iova_pgsizes: u64,
    /// Where the first capability is, from the struct's beginning; 0: none, or no room.
    pub(crate) cap_offset: u32,
    /// Nothing.
    pub(crate) pad: u32,
    /// Capabilities: 32 ranges of 16 bytes, and whatever else a kernel reports there.
    pub(crate) caps: [u32; 250],
}

impl Type1Info {
    /// `VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE`.
    pub(crate) const IOVA_RANGES: u16 = 1;

    /// The request.
    #[must_use]
    pub(crate) const fn ask() -> Self {
        Self {
            argsz: size_of_u32::<Self>(),
            flags: 0,
            iova_pgsizes: 0,
            cap_offset: 0,
            pad: 0,
            caps: [0; 250],
        }
    }
}

/// `struct vfio_iommu_type1_dma_map`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MapDma {
    /// The size of this struct.
    pub(crate) argsz: u32,
    /// Bit 0: the device may read; bit 1: it may write.
    pub(crate) flags: u32,
    /// The memory's address in the process.
    pub(crate) vaddr: u64,
    /// The memory's address for the device.
    pub(crate) iova: u64,
    /// How many bytes.
    pub(crate) size: u64,
}

/// `struct vfio_iommu_type1_dma_unmap`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UnmapDma {
    /// The size of this struct.
    pub(crate) argsz: u32,
    /// 0.
    pub(crate) flags: u32,
    /// Where the mapping begins.
    pub(crate) iova: u64,
    /// How many bytes; out: how many were unmapped.
    pub(crate) size: u64,
}

/// `struct vfio_device_bind_iommufd`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BindIommufd {
    /// The size of this struct.
    pub(crate) argsz: u32,
    /// 0.
    pub(crate) flags: u32,
    /// The descriptor of `/dev/iommu`.
    pub(crate) iommufd: c_int,
    /// Out: the device's number there.
    pub(crate) out_devid: u32,
}

/// `struct vfio_device_attach_iommufd_pt`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AttachIommufdPt {
    /// The size of this struct.
    pub(crate) argsz: u32,
    /// 0.
    pub(crate) flags: u32,
    /// In: the I/O address space; out: the page table that the kernel made for it.
    pub(crate) pt_id: u32,
}

/// A size as these structs carry it.
#[allow(clippy::cast_possible_truncation, reason = "no struct here has 4 GiB")]
pub(crate) const fn size_of_u32<T>() -> u32 {
    size_of::<T>() as u32
}

// The header's sizes, offsets and request codes, spelled out: a change that would change the ABI
// does not compile.
const _: () = {
    assert!(
        size_of::<GroupStatus>() == 8
            && size_of::<DeviceInfo>() == 16
            && size_of::<IrqInfo>() == 16
    );
    assert!(
        offset_of!(RegionInfo, size) == 16
            && offset_of!(RegionInfo, offset) == 24
            && offset_of!(RegionInfo, caps) == 32
    );
    assert!(size_of::<RegionInfo>() == 32 + 256);
    assert!(size_of::<IrqSet>() == 24 && offset_of!(IrqSet, data) == IrqSet::BARE_BYTES as usize);
    assert!(offset_of!(Type1Info, iova_pgsizes) == 8 && offset_of!(Type1Info, cap_offset) == 16);
    assert!(offset_of!(Type1Info, caps) == 24 && size_of::<Type1Info>() == 1024);
    assert!(
        size_of::<MapDma>() == 32
            && offset_of!(MapDma, vaddr) == 8
            && offset_of!(MapDma, iova) == 16
    );
    assert!(
        size_of::<UnmapDma>() == 24
            && offset_of!(UnmapDma, iova) == 8
            && offset_of!(UnmapDma, size) == 16
    );
    assert!(size_of::<BindIommufd>() == 16 && offset_of!(BindIommufd, iommufd) == 8);
    assert!(size_of::<AttachIommufdPt>() == 12);
    assert!(
        CHECK_EXTENSION == 0x3B65
            && DEVICE_SET_IRQS == 0x3B6E
            && DEVICE_ATTACH_IOMMUFD_PT == 0x3B77
    );
    assert!(IOMMU_GET_INFO == 0x3B70 && IOMMU_MAP_DMA == 0x3B71 && IOMMU_UNMAP_DMA == 0x3B72);
};
