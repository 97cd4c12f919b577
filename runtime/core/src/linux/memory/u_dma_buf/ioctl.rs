//! The structures of the module's ioctls, and the seam where a test stands in for the module.
//!
//! The numbers and layouts are those of `u-dma-buf-ioctl.h` in u-dma-buf 5.5.0. Ioctls 1 to 9 came
//! together in 4.7.0: a module has all of them or none, and answers `ENOTTY` if it has none.
#![allow(
    unsafe_code,
    reason = "the ioctls themselves; the rest of the backend calls the safe trait"
)]

use crate::linux::os::cache;
use crate::types::Align;
use core::ffi::c_int;
use core::mem::offset_of;
use nix::errno::Errno;
use nix::libc;
use nix::sys::ioctl::ioctl_num_type;

/// The answer of `U_DMA_BUF_IOCTL_GET_DEV_INFO`: `u_dma_buf_ioctl_dev_info`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DevInfo {
    /// Bits 0-7: width of the DMA mask; 9: coherent; 10-12: mmap mode.
    pub flags: u64,
    /// The block's size in bytes, as it was requested.
    pub size: u64,
    /// The block's bus address.
    pub addr: u64,
}

impl DevInfo {
    /// The width of the device's DMA mask in bits, as the kernel has it; `None` where it has no
    /// mask.
    pub(super) const fn dma_mask_bits(&self) -> Option<u8> {
        match (self.flags & 0xFF).to_le_bytes() {
            [0, ..] => None,
            [bits, ..] => Some(bits),
        }
    }

    /// The kernel maintains this memory's coherency. When clear it may also mean that the module
    /// could not find out.
    pub(super) const fn coherent(&self) -> bool {
        (self.flags >> 9) & 1 == 1
    }

    /// How the module maps the block, as in `quirk_mmap_mode`; 0 where it was built without the
    /// quirk.
    pub(super) const fn mmap_mode(&self) -> u64 {
        (self.flags >> 10) & 0x7
    }
}

/// The answer of `U_DMA_BUF_IOCTL_GET_SYNC`, and the argument of `U_DMA_BUF_IOCTL_SET_SYNC`:
/// `u_dma_buf_ioctl_sync_args`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SyncArgs {
    /// Bits 0-1: command; 2-3: direction; 8-15: `sync_mode`, where 0 leaves it as it is; 16: owner.
    pub flags: u64,
    /// How many bytes; 0 leaves what an earlier call stored.
    pub size: u64,
    /// The first byte, from the block's beginning.
    pub offset: u64,
}

impl SyncArgs {
    /// Command: give the range to the CPU.
    pub(crate) const FOR_CPU: u64 = 1;
    /// Command: give the range to the device. It is 3, not 2.
    pub(crate) const FOR_DEVICE: u64 = 3;

    /// The `sync_mode` that `GET_SYNC` reports.
    pub(super) const fn mode(&self) -> u64 {
        (self.flags >> 8) & 0xFF
    }
}

/// The argument and the answer of `U_DMA_BUF_IOCTL_EXPORT` (from 5.0):
/// `u_dma_buf_ioctl_export_args`, with its padding.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ExportArgs {
    /// Bits 0-31: flags of the new descriptor.
    flags: u64,
    /// How many bytes, whole pages.
    size: u64,
    /// The first byte.
    offset: u64,
    /// Out: its bus address.
    addr: u64,
    /// Out: the descriptor.
    fd: c_int,
    padding: u32,
}

// nix's `ioctl_read!` names `std`; its request codes do not.
const GET_DEV_INFO: ioctl_num_type = nix::request_code_read!(b'U', 7, size_of::<DevInfo>());
const GET_SYNC: ioctl_num_type = nix::request_code_read!(b'U', 8, size_of::<SyncArgs>());
const SET_SYNC: ioctl_num_type = nix::request_code_write!(b'U', 9, size_of::<SyncArgs>());
const EXPORT: ioctl_num_type = nix::request_code_readwrite!(b'U', 10, size_of::<ExportArgs>());

// The layouts and request codes of the header, spelled out: a change to a struct that would change
// the ABI does not compile.
const _: () = {
    assert!(size_of::<DevInfo>() == 24 && align_of::<DevInfo>() == 8);
    assert!(size_of::<SyncArgs>() == 24 && align_of::<SyncArgs>() == 8);
    assert!(offset_of!(DevInfo, size) == 8 && offset_of!(DevInfo, addr) == 16);
    assert!(offset_of!(SyncArgs, size) == 8 && offset_of!(SyncArgs, offset) == 16);
    assert!(GET_DEV_INFO == 0x8018_5507_u32 as ioctl_num_type);
    assert!(GET_SYNC == 0x8018_5508_u32 as ioctl_num_type);
    assert!(SET_SYNC == 0x4018_5509_u32 as ioctl_num_type);
    assert!(EXPORT == 0xC028_550A_u32 as ioctl_num_type && offset_of!(ExportArgs, fd) == 32);
};

/// The requests of the backend to the kernel module: the seam where a test puts a fake.
///
/// Errors are errno values. `device` is a descriptor of `/dev/<name>`, `file` one of a file in the
/// module's `/sys` directory.
pub trait UDmaBufIoctl: Send + Sync {
    /// `U_DMA_BUF_IOCTL_GET_DEV_INFO`.
    ///
    /// # Errors
    /// The errno; `ENOTTY` from a module older than 4.7.0.
    fn get_dev_info(&self, device: c_int) -> Result<DevInfo, i32>;

    /// `U_DMA_BUF_IOCTL_GET_SYNC`.
    ///
    /// # Errors
    /// As [`get_dev_info`](Self::get_dev_info).
    fn get_sync(&self, device: c_int) -> Result<SyncArgs, i32>;

    /// `U_DMA_BUF_IOCTL_SET_SYNC`: stores the arguments, then runs the command on what is stored.
    ///
    /// # Errors
    /// The errno; `EINVAL` for a range past the block's end.
    fn set_sync(&self, device: c_int, args: &SyncArgs) -> Result<(), i32>;

    /// `U_DMA_BUF_IOCTL_EXPORT` of the first `size` bytes: a new descriptor, closed on exec, which
    /// belongs to the caller.
    ///
    /// # Errors
    /// The errno; `ENOTTY` from a module before 5.0, or built without it.
    fn export(&self, device: c_int, size: u64) -> Result<c_int, i32>;

    /// Writes the attribute `name`, open as `file`, in one `pwrite` at offset 0.
    ///
    /// # Errors
    /// The errno; `EINVAL` for a value that the module refuses.
    fn write_attribute(&self, file: c_int, name: &'static str, text: &[u8]) -> Result<usize, i32>;

    /// The bytes that two owners must not share on this machine. A test has its own value.
    fn granule(&self) -> Align {
        cache::granule()
    }
}

crate::linux::os::asked!(RealIoctl as UDmaBufIoctl);

/// The module itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealIoctl;

impl UDmaBufIoctl for RealIoctl {
    fn get_dev_info(&self, device: c_int) -> Result<DevInfo, i32> {
        let mut info = DevInfo::default();
        // SAFETY: the request code carries the struct's size (asserted above): the kernel writes no
        // more than that, and any bytes make a `DevInfo`.
        let status = unsafe { libc::ioctl(device, GET_DEV_INFO, &raw mut info) };
        if status < 0 { Err(Errno::last_raw()) } else { Ok(info) }
    }

    fn get_sync(&self, device: c_int) -> Result<SyncArgs, i32> {
        let mut args = SyncArgs::default();
        // SAFETY: as in `get_dev_info`; any bytes make a `SyncArgs`.
        let status = unsafe { libc::ioctl(device, GET_SYNC, &raw mut args) };
        if status < 0 { Err(Errno::last_raw()) } else { Ok(args) }
    }

    fn set_sync(&self, device: c_int, args: &SyncArgs) -> Result<(), i32> {
        // SAFETY: the kernel only reads the struct, whose size the request code carries (asserted
        // above).
        let status = unsafe { libc::ioctl(device, SET_SYNC, &raw const *args) };
        if status < 0 { Err(Errno::last_raw()) } else { Ok(()) }
    }

    fn export(&self, device: c_int, size: u64) -> Result<c_int, i32> {
        const FLAGS: u32 = (libc::O_RDWR | libc::O_CLOEXEC).cast_unsigned();
        let mut args = ExportArgs { flags: FLAGS.into(), size, ..ExportArgs::default() };
        // SAFETY: the request code carries the struct's size (asserted above): the kernel reads and
        // writes no more than that.
        let status = unsafe { libc::ioctl(device, EXPORT, &raw mut args) };
        if status < 0 { Err(Errno::last_raw()) } else { Ok(args.fd) }
    }

    fn write_attribute(&self, file: c_int, _name: &'static str, text: &[u8]) -> Result<usize, i32> {
        // SAFETY: the text is borrowed for the call, which only reads it, and its own length bounds
        // that.
        let count = unsafe { libc::pwrite(file, text.as_ptr().cast(), text.len(), 0) };
        usize::try_from(count).map_err(|_| Errno::last_raw())
    }
}
