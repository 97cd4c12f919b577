//! The numbers of `include/uapi/linux/vfio.h`, by the fake's own reading of it.

pub(super) const TYPE1V2_IOMMU: u32 = 3; // VFIO_TYPE1v2_IOMMU
pub(super) const DMA_CC_IOMMU: u32 = 4; // VFIO_DMA_CC_IOMMU
pub(super) const CONFIG_REGION: u32 = 7; // VFIO_PCI_CONFIG_REGION_INDEX
pub(super) const INTX: u32 = 0; // VFIO_PCI_INTX_IRQ_INDEX
/// `VFIO_PCI_MSI_IRQ_INDEX`.
pub const MSI: u32 = 1;
pub(super) const VIABLE: u32 = 1; // VFIO_GROUP_FLAGS_VIABLE
pub(super) const CAN_RESET: u32 = 1 << 0; // VFIO_DEVICE_FLAGS_RESET
pub(super) const IS_PCI: u32 = 1 << 1; // VFIO_DEVICE_FLAGS_PCI
pub(super) const MMAP: u32 = 1 << 2; // VFIO_REGION_INFO_FLAG_MMAP
pub(super) const CAPS: u32 = 1 << 3; // VFIO_REGION_INFO_FLAG_CAPS
pub(super) const EVENTFD: u32 = 1; // VFIO_IRQ_INFO_EVENTFD
pub(super) const DATA_NONE: u32 = 1 << 0; // VFIO_IRQ_SET_DATA_NONE
pub(super) const DATA_EVENTFD: u32 = 1 << 2; // VFIO_IRQ_SET_DATA_EVENTFD
pub(super) const UNMASK: u32 = 1 << 4; // VFIO_IRQ_SET_ACTION_UNMASK
pub(super) const TRIGGER: u32 = 1 << 5; // VFIO_IRQ_SET_ACTION_TRIGGER
