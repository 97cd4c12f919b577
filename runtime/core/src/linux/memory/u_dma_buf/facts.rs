//! The module's facts about its block, cross-checked and distrusted before anything rests on them.

use super::ioctl::{DevInfo, get_dev_info, get_sync};
use super::os;
use super::sysfs::Directory;
use crate::linux::os::Kernel;
use crate::linux::os::fd::Fd;
use crate::types::{Align, Error};
use core::ffi::CStr;
use nix::libc::{EINVAL, ENOTTY};

/// The block, as the ioctls and the attributes describe it alike.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    /// Not 0, and a whole number of granules.
    pub(super) len_bytes: usize,
    /// Not 0, and the block does not run past the last address.
    pub(super) addr: u64,
    /// `None` where neither the ioctl nor the attribute reports it.
    pub(super) coherent: Option<bool>,
    /// The module has `SET_SYNC`.
    pub(super) sync_by_ioctl: bool,
    /// `None` from a module before 4.7.0.
    pub(super) info: Option<DevInfo>,
    sync_mode: Option<u64>,
}

impl Facts {
    pub(super) fn ask(
        directory: &Directory,
        kernel: &Kernel,
        device: &Fd,
        granule: Align,
    ) -> Result<Self, Error> {
        let info =
            if_answered("ioctl(U_DMA_BUF_IOCTL_GET_DEV_INFO)", get_dev_info(kernel, device))?;
        let stored = if_answered("ioctl(U_DMA_BUF_IOCTL_GET_SYNC)", get_sync(kernel, device))?;
        let size = agreed(directory, c"size", "size", info.map(|info| info.size))?;
        let addr = agreed(directory, c"phys_addr", "phys_addr", info.map(|info| info.addr))?;
        let coherent = coherency(directory, info)?;
        let len_bytes = checked_len(addr, size, granule)?;
        let sync_mode = match stored {
            Some(stored) => Some(stored.mode()),
            None => directory.number(c"sync_mode")?,
        };
        Ok(Self { len_bytes, addr, coherent, sync_by_ioctl: stored.is_some(), info, sync_mode })
    }

    /// `sync_mode` 5, 6 and 7 map uncached even without `O_SYNC`. The module reads it at mmap.
    pub(super) fn refuse_uncached(&self) -> Result<(), Error> {
        match self.sync_mode {
            None | Some(0..=4) => Ok(()),
            Some(value @ 5..=7) => Err(Error::Setting {
                name: "sync_mode",
                value,
                fix: "the block would be mapped uncached; write 1 to sync_mode, or remove \
                 sync-always from the device tree",
            }),
            Some(value) => Err(Error::Unexpected { name: "sync_mode", value }),
        }
    }

    /// `quirk_mmap_mode` 1 is off, 2 on, 3 on for non-coherent devices, 4 on by pages; 0 from the
    /// ioctl: built without it. The quirk maps the page whose physical address is the block's bus
    /// address: another page, where the two differ.
    pub(super) fn refuse_quirk(&self, directory: &Directory) -> Result<(), Error> {
        let value = match self.info {
            Some(info) => info.mmap_mode(),
            // Modules before 4.4.0 have the quirk on ARM, and say nothing of it.
            None => directory.required(c"quirk_mmap_mode")?,
        };
        match (value, self.coherent) {
            (0 | 1, _) | (3, Some(true)) => Ok(()),
            (2..=4, _) => Err(Error::Setting {
                name: "quirk_mmap_mode",
                value,
                fix: "the bus address would be mapped as a physical one; add quirk-mmap-off to \
                 the device-tree node",
            }),
            _ => Err(Error::Unexpected { name: "quirk_mmap_mode", value }),
        }
    }
}

/// An ioctl's answer, or `None` from a module that does not know it.
fn if_answered<T>(call: &'static str, answer: Result<T, i32>) -> Result<Option<T>, Error> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(ENOTTY | EINVAL) => Ok(None),
        Err(errno) => Err(os(call, errno)),
    }
}

/// A number that an ioctl or an attribute must report; where both do, they must agree.
fn agreed(
    directory: &Directory,
    attribute: &'static CStr,
    name: &'static str,
    told: Option<u64>,
) -> Result<u64, Error> {
    match told {
        None => directory.required(attribute),
        Some(told) => match directory.number(attribute)? {
            Some(value) if value != told => Err(Error::Unexpected { name, value }),
            _ => Ok(told),
        },
    }
}

/// Returns whether the kernel keeps this memory coherent. `None` where the module was built without
/// a way to find out: then it has no attribute, and the ioctl's clear bit means nothing.
fn coherency(directory: &Directory, info: Option<DevInfo>) -> Result<Option<bool>, Error> {
    let attribute = match directory.number(c"dma_coherent")? {
        None => None,
        Some(0) => Some(false),
        Some(1) => Some(true),
        Some(value) => return Err(Error::Unexpected { name: "dma_coherent", value }),
    };
    match (attribute, info.map(|info| info.coherent())) {
        (None, Some(true)) => Ok(Some(true)),
        (Some(said), Some(told)) if said != told => {
            Err(Error::Unexpected { name: "dma_coherent", value: u64::from(said) })
        }
        _ => Ok(attribute),
    }
}

/// The block's length, when the block can exist at all.
fn checked_len(addr: u64, size: u64, granule: Align) -> Result<usize, Error> {
    let nonsense = |name, value| Error::Unexpected { name, value };
    let len_bytes = usize::try_from(size).map_err(|_| nonsense("size", size))?;
    if size == 0 || !granule.divides(size) {
        return Err(Error::BlockSize {
            len_bytes,
            need_bytes: granule.bytes(),
            line_bytes: granule.bytes(),
        });
    }
    if addr == 0 || addr.checked_add(size - 1).is_none() {
        return Err(nonsense("phys_addr", addr));
    }
    Ok(len_bytes)
}
