//! The module's ioctls.
//!
//! The numbers and layouts are those of `u-dma-buf-ioctl.h` in u-dma-buf 5.5.0. Ioctls 1 to 9 came
//! together in 4.7.0: a module has all of them or none, and answers `ENOTTY` if it has none.
//!
//! The backend relies on this: the device's file can be mapped shared, as long as the module says
//! the block is; no other code maps, writes or shortens it while it is open, as far as programs
//! keep to flock(2); what the ioctls and the attributes report of it is true; and a sync that
//! succeeds was done.
#![allow(unsafe_code, reason = "the ioctls themselves")]

use crate::linux::os::fd::Fd;
use crate::linux::os::{Kernel, SystemCalls, arguments, ask};
use core::ffi::c_int;
use core::mem::offset_of;
use core::ptr;
use nix::libc;
use nix::sys::ioctl::ioctl_num_type;

/// The answer of `U_DMA_BUF_IOCTL_GET_DEV_INFO`: `u_dma_buf_ioctl_dev_info`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct DevInfo {
    /// Bits 0-7: width of the DMA mask; 9: coherent; 10-12: mmap mode.
    pub(super) flags: u64,
    /// The block's size in bytes, as it was requested.
    pub(super) size: u64,
    /// The block's bus address.
    pub(super) addr: u64,
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
pub(super) struct SyncArgs {
    /// Bits 0-1: command; 2-3: direction; 8-15: `sync_mode`, where 0 leaves it as it is; 16: owner.
    pub(super) flags: u64,
    /// How many bytes; 0 leaves what an earlier call stored.
    pub(super) size: u64,
    /// The first byte, from the block's beginning.
    pub(super) offset: u64,
}

impl SyncArgs {
    /// Command: give the range to the CPU.
    pub(super) const FOR_CPU: u64 = 1;
    /// Command: give the range to the device. It is 3, not 2.
    pub(super) const FOR_DEVICE: u64 = 3;

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

// `u-dma-buf-ioctl.h` gives each request its structure, whose size the number has (asserted above).
arguments! { DevInfo: GET_DEV_INFO, SyncArgs: GET_SYNC, ExportArgs: EXPORT }

/// `U_DMA_BUF_IOCTL_GET_DEV_INFO`.
///
/// # Errors
/// The errno; `ENOTTY` from a module older than 4.7.0.
pub(super) fn get_dev_info(kernel: &Kernel, device: &Fd) -> Result<DevInfo, i32> {
    let mut info = DevInfo::default();
    ask(kernel, device, &mut info).map(|_| info)
}

/// `U_DMA_BUF_IOCTL_GET_SYNC`.
///
/// # Errors
/// As [`get_dev_info`].
pub(super) fn get_sync(kernel: &Kernel, device: &Fd) -> Result<SyncArgs, i32> {
    let mut args = SyncArgs::default();
    ask(kernel, device, &mut args).map(|_| args)
}

/// `U_DMA_BUF_IOCTL_SET_SYNC`: stores the arguments, then runs the command on what is stored.
///
/// # Errors
/// The errno; `EINVAL` for a range past the block's end.
pub(super) fn set_sync(kernel: &Kernel, device: &Fd, args: &SyncArgs) -> Result<(), i32> {
    // SAFETY: the kernel only reads the struct, whose size the request code carries (asserted
    // above).
    unsafe { kernel.ioctl(device, SET_SYNC, ptr::from_ref(args).cast_mut().cast()) }.map(drop)
}

/// `U_DMA_BUF_IOCTL_EXPORT` of the first `size` bytes: a dma-buf.
///
/// # Errors
/// The errno; `ENOTTY` from a module before 5.0, or built without it.
pub(super) fn export(kernel: &Kernel, device: &Fd, size: u64) -> Result<Fd, i32> {
    const FLAGS: u32 = (libc::O_RDWR | libc::O_CLOEXEC).cast_unsigned();
    let mut args = ExportArgs { flags: FLAGS.into(), size, ..ExportArgs::default() };
    ask(kernel, device, &mut args)?;
    if args.fd < 0 {
        return Err(libc::EPROTO);
    }
    // SAFETY: the kernel has just made this descriptor for this call.
    Ok(unsafe { kernel.made(args.fd) })
}
