//! The requests of this module to the kernel: one trait, so that a test can stand in for a kernel
//! with any IOMMU, or none.
#![allow(
    unsafe_code,
    reason = "ioctls and positioned reads on raw descriptors, and the unsafe trait of the seam"
)]

use super::abi::{
    self, AttachIommufdPt, BindIommufd, DeviceInfo, GroupStatus, IrqInfo, IrqSet, MapDma,
    RegionInfo, Type1Info, UnmapDma,
};
use super::iommufd::{self, IoasAlloc, IoasIovaRanges, IoasMap, IoasUnmap, IovaRange};
use super::sysfs;
use crate::linux::os::fd::Fd;
use crate::types::Error;
use core::ffi::{CStr, c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr;
use nix::errno::Errno;
use nix::libc;
use nix::sys::ioctl::ioctl_num_type;

/// One ioctl with its argument. The kernel writes into the `&mut`.
#[derive(Debug)]
pub(super) enum Request<'a> {
    /// `VFIO_CHECK_EXTENSION` on a container: the answer is the call's value.
    CheckExtension(u32),
    /// `VFIO_SET_IOMMU` on a container.
    SetIommu(u32),
    /// `VFIO_GROUP_GET_STATUS` on a group.
    GroupStatus(&'a mut GroupStatus),
    /// `VFIO_GROUP_SET_CONTAINER` on a group, with the container's descriptor.
    SetContainer(c_int),
    /// `VFIO_DEVICE_GET_INFO` on a device.
    DeviceInfo(&'a mut DeviceInfo),
    /// `VFIO_DEVICE_GET_REGION_INFO` on a device.
    RegionInfo(&'a mut RegionInfo),
    /// `VFIO_DEVICE_GET_IRQ_INFO` on a device.
    IrqInfo(&'a mut IrqInfo),
    /// `VFIO_DEVICE_SET_IRQS` on a device.
    SetIrqs(&'a IrqSet),
    /// `VFIO_DEVICE_RESET` on a device.
    Reset,
    /// `VFIO_DEVICE_BIND_IOMMUFD` on a device.
    BindIommufd(&'a mut BindIommufd),
    /// `VFIO_DEVICE_ATTACH_IOMMUFD_PT` on a device.
    AttachIommufdPt(&'a mut AttachIommufdPt),
    /// `VFIO_IOMMU_GET_INFO` on a container.
    Type1Info(&'a mut Type1Info),
    /// `VFIO_IOMMU_MAP_DMA` on a container.
    MapDma(&'a MapDma),
    /// `VFIO_IOMMU_UNMAP_DMA` on a container.
    UnmapDma(&'a mut UnmapDma),
    /// `IOMMU_IOAS_ALLOC` on an iommufd.
    IoasAlloc(&'a mut IoasAlloc),
    /// `IOMMU_IOAS_IOVA_RANGES` on an iommufd.
    IoasIovaRanges(&'a mut IoasIovaRanges, &'a mut [IovaRange]),
    /// `IOMMU_IOAS_MAP` on an iommufd.
    IoasMap(&'a IoasMap),
    /// `IOMMU_IOAS_UNMAP` on an iommufd.
    IoasUnmap(&'a mut IoasUnmap),
}

/// The requests of [`Vfio`](super::Vfio) to the kernel. `RealVfio` makes them; a test provides its
/// own kernel. Errors are errno values.
///
/// # Safety
/// The sizes in a request must be those of its structs, and its addresses must be of the caller's
/// own memory. Only this module calls the running kernel: no other code can make or see a
/// `RealVfio`.
///
/// # Implementation safety
/// 1. A device's file can be mapped shared at the offset and size of its BARs, as
///    `VFIO_DEVICE_GET_REGION_INFO` reports them. The mapping shows the registers of that device.
///    No other code writes them while the file is open, and at least while the mapping lives.
/// 2. The device reaches only memory that was mapped by `VFIO_IOMMU_MAP_DMA` or
///    `IOMMU_IOAS_MAP`, at the address given there. After an unmapping that succeeded it does
///    not reach that memory any more.
/// 3. [`release`](Self::release) and, from 6.1 on, the extension `VFIO_DMA_CC_IOMMU` are correct:
///    coherency is decided by them.
pub unsafe trait VfioKernel: Send + Sync {
    /// The PCI function at `address`, as `/sys` describes it.
    ///
    /// # Errors
    /// [`Error::BadName`], [`Error::AttributeMissing`], [`Error::AttributeUnreadable`],
    /// [`Error::Unexpected`].
    fn function(&self, address: &str) -> Result<sysfs::Function, Error>;

    /// Opens a file under `/dev`, to read and write.
    ///
    /// # Errors
    /// The errno of open(2).
    fn open(&self, path: &CStr) -> Result<Fd, i32>;

    /// `VFIO_GROUP_GET_DEVICE_FD`: the file of the device called `name` in `group`.
    ///
    /// # Errors
    /// The errno.
    fn device(&self, group: &Fd, name: &CStr) -> Result<Fd, i32>;

    /// An eventfd whose reads do not block.
    ///
    /// # Errors
    /// The errno of eventfd(2).
    fn eventfd(&self) -> Result<Fd, i32>;

    /// ioctl(2).
    ///
    /// # Safety
    /// `argument` is what `request` asks for: a number, or a pointer to what the kernel reads and
    /// writes, valid for the call.
    ///
    /// # Errors
    /// The errno.
    unsafe fn ioctl(
        &self,
        file: &Fd,
        request: ioctl_num_type,
        argument: *mut c_void,
    ) -> Result<c_int, i32>;

    /// Reads `bytes` at `offset` of a device's file.
    ///
    /// # Errors
    /// The errno; EIO where fewer were read.
    fn read_at(&self, file: &Fd, offset: u64, bytes: &mut [u8]) -> Result<(), i32>;

    /// Writes `bytes` at `offset` of a device's file.
    ///
    /// # Errors
    /// The errno; EIO where fewer were written.
    fn write_at(&self, file: &Fd, offset: u64, bytes: &[u8]) -> Result<(), i32>;

    /// The kernel's version: major and minor.
    fn release(&self) -> (u32, u32);

    /// How many bytes of memory an unprivileged process may have pinned (RLIMIT_MEMLOCK); `None`:
    /// no limit.
    fn pin_limit_bytes(&self) -> Option<u64>;
}

crate::linux::os::asked!(RealVfio as VfioKernel);

/// The requests, each with its own structure.
pub(super) trait Ask: VfioKernel {
    /// One ioctl.
    ///
    /// # Errors
    /// The errno.
    fn ask(&self, file: &Fd, request: Request<'_>) -> Result<c_int, i32> {
        let number = |value: u32| ptr::without_provenance_mut::<c_void>(value as usize);
        let (request, argument) = match request {
            Request::CheckExtension(extension) => (abi::CHECK_EXTENSION, number(extension)),
            Request::SetIommu(iommu) => (abi::SET_IOMMU, number(iommu)),
            Request::Reset => (abi::DEVICE_RESET, number(0)),
            Request::SetContainer(mut container) => {
                // SAFETY: the kernel reads one int, which outlives the call.
                return unsafe {
                    self.ioctl(file, abi::GROUP_SET_CONTAINER, (&raw mut container).cast())
                };
            }
            Request::GroupStatus(status) => (abi::GROUP_GET_STATUS, ptr::from_mut(status).cast()),
            Request::DeviceInfo(info) => (abi::DEVICE_GET_INFO, ptr::from_mut(info).cast()),
            Request::RegionInfo(info) => (abi::DEVICE_GET_REGION_INFO, ptr::from_mut(info).cast()),
            Request::IrqInfo(info) => (abi::DEVICE_GET_IRQ_INFO, ptr::from_mut(info).cast()),
            Request::SetIrqs(set) => (abi::DEVICE_SET_IRQS, ptr::from_ref(set).cast_mut().cast()),
            Request::BindIommufd(bind) => (abi::DEVICE_BIND_IOMMUFD, ptr::from_mut(bind).cast()),
            Request::AttachIommufdPt(attach) => {
                (abi::DEVICE_ATTACH_IOMMUFD_PT, ptr::from_mut(attach).cast())
            }
            Request::Type1Info(info) => (abi::IOMMU_GET_INFO, ptr::from_mut(info).cast()),
            Request::MapDma(map) => (abi::IOMMU_MAP_DMA, ptr::from_ref(map).cast_mut().cast()),
            Request::UnmapDma(unmap) => (abi::IOMMU_UNMAP_DMA, ptr::from_mut(unmap).cast()),
            Request::IoasAlloc(alloc) => (iommufd::IOAS_ALLOC, ptr::from_mut(alloc).cast()),
            Request::IoasIovaRanges(ask, ranges) => {
                ask.num_iovas = u32::try_from(ranges.len()).unwrap_or(0);
                ask.allowed_iovas = ranges.as_mut_ptr().expose_provenance() as u64;
                (iommufd::IOAS_IOVA_RANGES, ptr::from_mut(ask).cast())
            }
            // `iommufd_fops_ioctl` copies a struct in, and writes back only what a request answers:
            // nothing here.
            Request::IoasMap(map) => {
                let mut map = *map;
                // SAFETY: the kernel reads and writes one `iommu_ioas_map`, which outlives the
                // call.
                return unsafe { self.ioctl(file, iommufd::IOAS_MAP, (&raw mut map).cast()) };
            }
            Request::IoasUnmap(unmap) => (iommufd::IOAS_UNMAP, ptr::from_mut(unmap).cast()),
        };
        // SAFETY: each request's argument is a number, or the struct that the kernel's header gives
        // it. The struct's first field is its size, asserted in `abi.rs` and `iommufd.rs`. This
        // module sets it, and no other code has a `RealVfio`. The kernel reads and writes no more
        // than that, and any bytes make such a struct. It is borrowed for the call, exclusively
        // where the kernel writes (SET_IRQS and MAP_DMA only read). The ranges' array has as many
        // entries as `num_iovas` says, and is borrowed exclusively as well.
        unsafe { self.ioctl(file, request, argument) }
    }
}

impl<K: VfioKernel + ?Sized> Ask for K {}

/// The running kernel: `/sys`, `/dev/vfio` and `/dev/iommu`. It is private to this module, because
/// a request carries raw sizes and addresses.
#[derive(Debug)]
pub(super) struct RealVfio;

// SAFETY: 1. Linux `Documentation/driver-api/vfio.rst`: a BAR's mapping is of that device's
// registers. A group's file opens once, and a device's own file binds once (`vfio_group_fops_open`,
// `vfio_df_open`), so no other VFIO process has it. No process can keep root out of /dev/mem and of
// the device's `resource` files. The mapping holds a reference to the file. 2. The IOMMU's page
// table has the pages that were mapped and nothing else. `vfio_unmap_unpin` and
// `iopt_area_unfill_domain` flush the IOMMU's TLB before the pages are unpinned. FOLL_LONGTERM pins
// keep a page from migrating. 3. The kernel itself reports both.
unsafe impl VfioKernel for RealVfio {
    fn function(&self, address: &str) -> Result<sysfs::Function, Error> {
        sysfs::function("/sys", address)
    }

    fn open(&self, path: &CStr) -> Result<Fd, i32> {
        Fd::open(path, libc::O_RDWR)
    }

    fn device(&self, group: &Fd, name: &CStr) -> Result<Fd, i32> {
        // SAFETY: the kernel reads a string that ends with a NUL and outlives the call.
        let fd = unsafe {
            self.ioctl(group, abi::GROUP_GET_DEVICE_FD, name.as_ptr().cast_mut().cast())
        }?;
        // SAFETY: the kernel has just made this descriptor for this call, with O_CLOEXEC
        // (`vfio_group_ioctl_get_device_fd`).
        Ok(unsafe { Fd::from_raw(fd) })
    }

    fn eventfd(&self) -> Result<Fd, i32> {
        Fd::eventfd()
    }

    unsafe fn ioctl(
        &self,
        file: &Fd,
        request: ioctl_num_type,
        argument: *mut c_void,
    ) -> Result<c_int, i32> {
        // SAFETY: the descriptor is open while `file` is borrowed; the argument is the caller's
        // promise.
        let value = unsafe { libc::ioctl(file.raw(), request, argument) };
        if value < 0 { Err(Errno::last_raw()) } else { Ok(value) }
    }

    fn read_at(&self, file: &Fd, offset: u64, bytes: &mut [u8]) -> Result<(), i32> {
        let at = i64::try_from(offset).map_err(|_| libc::EOVERFLOW)?;
        // SAFETY: the buffer is borrowed for the call, and its own length bounds what is written
        // into it.
        let count =
            unsafe { libc::pread64(file.raw(), bytes.as_mut_ptr().cast(), bytes.len(), at) };
        whole(count, bytes.len())
    }

    fn write_at(&self, file: &Fd, offset: u64, bytes: &[u8]) -> Result<(), i32> {
        let at = i64::try_from(offset).map_err(|_| libc::EOVERFLOW)?;
        // SAFETY: the bytes are borrowed for the call, which only reads them, and their own length
        // bounds that.
        let count = unsafe { libc::pwrite64(file.raw(), bytes.as_ptr().cast(), bytes.len(), at) };
        whole(count, bytes.len())
    }

    fn release(&self) -> (u32, u32) {
        let mut names = MaybeUninit::<libc::utsname>::zeroed();
        // SAFETY: uname(2) fills in the struct that it is given.
        if unsafe { libc::uname(names.as_mut_ptr()) } != 0 {
            return (0, 0);
        }
        // SAFETY: zeroed and then filled in: arrays of characters, for which any bytes are a value.
        let names = unsafe { names.assume_init() };
        version(names.release.iter().map(|letter| u8::from_ne_bytes(letter.to_ne_bytes())))
    }

    fn pin_limit_bytes(&self) -> Option<u64> {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: getrlimit(2) fills in the struct that it is given.
        let status = unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &raw mut limit) };
        #[allow(clippy::useless_conversion, reason = "rlim_t has 32 bits on armv7")]
        (status == 0 && limit.rlim_cur != libc::RLIM_INFINITY).then(|| limit.rlim_cur.into())
    }
}

fn whole(count: isize, need_bytes: usize) -> Result<(), i32> {
    match usize::try_from(count) {
        Ok(count) if count == need_bytes => Ok(()),
        Ok(_) => Err(libc::EIO),
        Err(_) => Err(Errno::last_raw()),
    }
}

/// The first two numbers of a kernel's release, `6.12.117+deb12-arm64`.
fn version(release: impl Iterator<Item = u8>) -> (u32, u32) {
    let mut numbers = [0_u32; 2];
    let mut slots = numbers.iter_mut();
    let mut slot = slots.next();
    for letter in release {
        match (letter, &mut slot) {
            (b'0'..=b'9', Some(number)) => {
                **number = number.saturating_mul(10).saturating_add(u32::from(letter - b'0'))
            }
            (b'.', Some(_)) => slot = slots.next(),
            _ => break,
        }
    }
    (numbers[0], numbers[1])
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that panics has failed, which is its purpose"
)]
mod tests {
    use super::abi::DeviceInfo;
    use super::{Ask as _, RealVfio, Request, VfioKernel, libc, version};

    #[test]
    fn a_release_is_its_first_two_numbers() {
        for (release, numbers) in [
            ("6.12.117+deb12-arm64", (6, 12)),
            ("5.19.0", (5, 19)),
            ("5.15-xilinx", (5, 15)),
            ("7", (7, 0)),
            ("", (0, 0)),
            ("x6.1", (0, 0)),
            ("99999999999.1", (u32::MAX, 1)),
        ] {
            assert_eq!(version(release.bytes()), numbers, "{release}");
        }
        assert!(RealVfio.release() >= (3, 0), "this kernel's");
    }

    #[test]
    fn kernel_refuses_file_that_is_no_device() {
        let file = RealVfio.open(c"/dev/null").unwrap();
        let mut info = DeviceInfo { argsz: 16, ..DeviceInfo::default() };
        let refused = RealVfio.ask(&file, Request::DeviceInfo(&mut info));
        // ENOSYS is what QEMU's user-mode emulator says of an ioctl that it does not translate.
        assert!(matches!(refused, Err(libc::ENOTTY | libc::ENOSYS)), "{refused:?}");
        let mut byte = [0];
        assert_eq!(RealVfio.read_at(&file, 0, &mut byte), Err(libc::EIO), "nothing was read");
        assert_eq!(RealVfio.read_at(&file, u64::MAX, &mut byte), Err(libc::EOVERFLOW));
        assert_eq!(RealVfio.open(c"/dev/vfio/no-such-group").err(), Some(libc::ENOENT));
    }
}
