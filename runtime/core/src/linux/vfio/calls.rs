//! The ioctls of VFIO and iommufd.
//!
//! This module relies on the following:
//! 1. A device's file can be mapped shared at the offset and size of its BARs, as
//!    `VFIO_DEVICE_GET_REGION_INFO` reports them. The mapping shows the registers of that device.
//!    No other code writes them while the file is open, and at least while the mapping lives.
//!    (Linux `Documentation/driver-api/vfio.rst`. A group's file opens once, and a device's own
//!    file binds once: `vfio_group_fops_open`, `vfio_df_open`. No process can keep root out of
//!    /dev/mem and of the device's `resource` files. The mapping holds a reference to the file.)
//! 2. The device reaches only memory that was mapped by `VFIO_IOMMU_MAP_DMA` or `IOMMU_IOAS_MAP`,
//!    at the address given there. After an unmapping that succeeded it does not reach that memory
//!    any more. (`vfio_unmap_unpin` and `iopt_area_unfill_domain` flush the IOMMU's TLB before the
//!    pages are unpinned. FOLL_LONGTERM pins keep a page from migrating.)
//! 3. The kernel's release and, from 6.1 on, the extension `VFIO_DMA_CC_IOMMU` are correct:
//!    coherency is decided by them.
#![allow(unsafe_code, reason = "ioctls whose argument is a number, or has a pointer")]

use super::abi::{
    self, AttachIommufdPt, BindIommufd, DeviceInfo, GroupStatus, IrqInfo, IrqSet, MapDma,
    RegionInfo, Type1Info, UnmapDma,
};
use super::iommufd::{self, IoasAlloc, IoasIovaRanges, IoasMap, IoasUnmap, IovaRange};
use crate::linux::os::fd::Fd;
use crate::linux::os::{Kernel, SystemCalls, arguments};
use core::ffi::{CStr, c_int, c_void};
use core::ptr;
use nix::sys::ioctl::ioctl_num_type;

// `vfio.h` and `iommufd.h` give each request its structure. Its first field is its size, which this
// module sets (`abi.rs` and `iommufd.rs` assert the layouts), and the kernel reads and writes no
// more than that. The memory that a mapping names is pinned, and not accessed by the call.
arguments! {
    GroupStatus: abi::GROUP_GET_STATUS,
    DeviceInfo: abi::DEVICE_GET_INFO,
    RegionInfo: abi::DEVICE_GET_REGION_INFO,
    IrqInfo: abi::DEVICE_GET_IRQ_INFO,
    IrqSet: abi::DEVICE_SET_IRQS,
    BindIommufd: abi::DEVICE_BIND_IOMMUFD,
    AttachIommufdPt: abi::DEVICE_ATTACH_IOMMUFD_PT,
    Type1Info: abi::IOMMU_GET_INFO,
    MapDma: abi::IOMMU_MAP_DMA,
    UnmapDma: abi::IOMMU_UNMAP_DMA,
    IoasAlloc: iommufd::IOAS_ALLOC,
    IoasMap: iommufd::IOAS_MAP,
    IoasUnmap: iommufd::IOAS_UNMAP,
}

/// `VFIO_CHECK_EXTENSION` on a container: above 0 where it has the extension.
///
/// # Errors
/// The errno.
pub(super) fn check_extension(
    kernel: &Kernel,
    container: &Fd,
    extension: u32,
) -> Result<c_int, i32> {
    // SAFETY: the request's argument is a number.
    unsafe { with_number(kernel, container, abi::CHECK_EXTENSION, extension) }
}

/// `VFIO_SET_IOMMU` on a container.
///
/// # Errors
/// The errno.
pub(super) fn set_iommu(kernel: &Kernel, container: &Fd, iommu: u32) -> Result<(), i32> {
    // SAFETY: the request's argument is a number.
    unsafe { with_number(kernel, container, abi::SET_IOMMU, iommu) }.map(drop)
}

/// `VFIO_DEVICE_RESET` on a device.
///
/// # Errors
/// The errno.
pub(super) fn reset(kernel: &Kernel, device: &Fd) -> Result<(), i32> {
    // SAFETY: the request has no argument.
    unsafe { with_number(kernel, device, abi::DEVICE_RESET, 0) }.map(drop)
}

/// `VFIO_GROUP_SET_CONTAINER` on a group.
///
/// # Errors
/// The errno.
pub(super) fn set_container(kernel: &Kernel, group: &Fd, container: &Fd) -> Result<(), i32> {
    let mut container = container.raw();
    // SAFETY: the kernel reads one int, which outlives the call.
    unsafe { kernel.ioctl(group, abi::GROUP_SET_CONTAINER, (&raw mut container).cast()) }.map(drop)
}

/// `VFIO_GROUP_GET_DEVICE_FD`: the file of the device called `name` in `group`.
///
/// # Errors
/// The errno.
pub(super) fn device(kernel: &Kernel, group: &Fd, name: &CStr) -> Result<Fd, i32> {
    let name = name.as_ptr().cast_mut().cast();
    // SAFETY: the kernel reads a string that ends with a NUL and outlives the call.
    let fd = unsafe { kernel.ioctl(group, abi::GROUP_GET_DEVICE_FD, name) }?;
    // SAFETY: the kernel has just made this descriptor for this call, with O_CLOEXEC
    // (`vfio_group_ioctl_get_device_fd`).
    Ok(unsafe { kernel.made(fd) })
}

/// `IOMMU_IOAS_IOVA_RANGES` on an iommufd: `ask` says how many there are.
///
/// # Errors
/// The errno.
pub(super) fn iova_ranges(
    kernel: &Kernel,
    iommufd: &Fd,
    ask: &mut IoasIovaRanges,
    ranges: &mut [IovaRange],
) -> Result<(), i32> {
    ask.num_iovas = u32::try_from(ranges.len()).unwrap_or(0);
    ask.allowed_iovas = ranges.as_mut_ptr().expose_provenance() as u64;
    let argument = ptr::from_mut(ask).cast();
    // SAFETY: the request's structure; its array has as many entries as `num_iovas` says, and is
    // borrowed exclusively as well.
    unsafe { kernel.ioctl(iommufd, iommufd::IOAS_IOVA_RANGES, argument) }.map(drop)
}

/// One ioctl whose argument is a number.
///
/// # Safety
/// It is no pointer for this request.
unsafe fn with_number(
    kernel: &Kernel,
    file: &Fd,
    request: ioctl_num_type,
    number: u32,
) -> Result<c_int, i32> {
    let argument = ptr::without_provenance_mut::<c_void>(number as usize);
    // SAFETY: the caller's promise.
    unsafe { kernel.ioctl(file, request, argument) }
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that panics has failed, which is its purpose"
)]
mod tests {
    use super::super::abi::DeviceInfo;
    use crate::linux::os::{RUNNING, SystemCalls as _, ask};
    use nix::libc;

    #[test]
    fn kernel_refuses_file_that_is_no_device() {
        let file = RUNNING.open(c"/dev/null", libc::O_RDWR).unwrap();
        let mut info = DeviceInfo { argsz: 16, ..DeviceInfo::default() };
        let refused = ask(&RUNNING, &file, &mut info);
        // ENOSYS is what QEMU's user-mode emulator says of an ioctl that it does not translate.
        assert!(matches!(refused, Err(libc::ENOTTY | libc::ENOSYS)), "{refused:?}");
        assert_eq!(RUNNING.read_at(&file, u64::MAX, &mut [0]), Err(libc::EOVERFLOW));
    }
}
