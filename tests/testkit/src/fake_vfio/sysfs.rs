#![allow(unsafe_code, reason = "a file with an owner")]
//! The folder of the function under `/sys/bus/pci/devices`.

use super::Machine;
use contigo::linux::os::seam::Fd;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::symlink;

/// The folder, open: its group, and its number as a VFIO device.
pub(super) fn folder(machine: &Machine) -> Result<Fd, i32> {
    let made = || -> io::Result<_> {
        let root = tempfile::tempdir()?;
        let folder = root.path().join("device");
        fs::create_dir(&folder)?;
        if let Some(group) = machine.group {
            let target = root.path().join(group.to_string());
            fs::create_dir(&target)?;
            if machine.no_iommu {
                fs::write(target.join("name"), "vfio-noiommu\n")?;
            }
            symlink(target, folder.join("iommu_group"))?;
        }
        if let Some(device) = machine.device {
            fs::create_dir_all(folder.join(format!("vfio-dev/vfio{device}")))?;
        }
        Ok((File::open(folder)?, root))
    };
    let (file, root) = made().map_err(|error| error.raw_os_error().unwrap_or(libc::EIO))?;
    // SAFETY: the file has its descriptor until it is dropped.
    Ok(unsafe { Fd::owned_by(file.as_raw_fd(), (file, root)) })
}
