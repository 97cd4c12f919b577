//! The module's directory under `/sys`: numbers read and distrusted, and the only way to sync on a
//! module without ioctls.

use super::ioctl::SyncArgs;
use crate::linux::os::fd::Fd;
use crate::linux::os::path::Path;
use crate::linux::os::sysfs::{self, retry, text};
use crate::linux::os::{Kernel, SystemCalls};
use crate::types::{Direction, Error};
use core::ffi::CStr;
use core::fmt::Write as _;
use nix::libc::{EIO, ENOENT, ENOTDIR, O_DIRECTORY, O_PATH, O_RDONLY, O_WRONLY};

/// The class directories, newest first: the module was called `udmabuf` until version 2.
pub const CLASSES: [&str; 2] = ["u-dma-buf", "udmabuf"];

/// `/sys/class/u-dma-buf/<name>`.
#[derive(Debug)]
pub(super) struct Directory(Fd);

impl Directory {
    /// Finds the device's directory.
    pub(super) fn find(kernel: &Kernel, name: &str) -> Result<Self, Error> {
        for class in CLASSES {
            let path = Path::join(&["/sys/class", class, name])?;
            match kernel.open(path.as_c_str(), O_RDONLY | O_DIRECTORY) {
                Ok(fd) => return Ok(Self(fd)),
                Err(ENOENT | ENOTDIR) => {}
                Err(errno) => {
                    return Err(Error::AttributeUnreadable {
                        name: "/sys/class/u-dma-buf/<name>",
                        errno,
                    });
                }
            }
        }
        Err(Error::Os { call: "open(/sys/class/u-dma-buf/<name>)", errno: ENOENT })
    }

    /// As [`is_translated`].
    pub(super) fn is_translated(&self) -> bool {
        is_translated(&self.0)
    }

    /// The number that the attribute holds, or `None` where there is no such attribute.
    pub(super) fn number(&self, attribute: &'static CStr) -> Result<Option<u64>, Error> {
        sysfs::number(&self.0, attribute)
    }

    /// As [`number`](Self::number), for an attribute that must exist.
    pub(super) fn required(&self, attribute: &'static CStr) -> Result<u64, Error> {
        sysfs::required(&self.0, attribute)
    }

    fn writable(&self, attribute: &'static CStr) -> Result<Attribute, Error> {
        let name = text(attribute);
        match self.0.open_at(attribute, O_WRONLY | sysfs::ATTRIBUTE) {
            Ok(file) => Ok(Attribute { file, name }),
            Err(ENOENT) => Err(Error::AttributeMissing { name }),
            Err(errno) => Err(Error::AttributeUnreadable { name, errno }),
        }
    }
}

/// Returns whether the device is behind an IOMMU, or a bus with `dma-ranges`: then its address is
/// not the physical one.
pub fn is_translated(folder: &Fd) -> bool {
    let is_there = |path| folder.open_at(path, O_PATH).is_ok();
    is_there(c"device/iommu_group") || is_there(c"device/of_node/iommus") || has_dma_ranges(folder)
}

/// More buses than any node has above it.
const MAX_BUSES: u32 = 16;

/// Returns whether a bus above the node has `dma-ranges`. An empty one is one-to-one (Devicetree
/// Specification, 2.3.9), and the search goes on to the next bus. It also goes on where the node's
/// own bus has none; above that, none ends it (`of_dma_get_range` in Linux `drivers/of/address.c`).
/// A bus that cannot be read may translate.
fn has_dma_ranges(folder: &Fd) -> bool {
    let mut next = folder.open_at(c"device/of_node/..", O_PATH | O_DIRECTORY);
    for level in 0..MAX_BUSES {
        let Ok(bus) = next else { return false };
        match sysfs::read(&bus, c"dma-ranges", &mut [0]) {
            Ok(Some([])) => {}
            Ok(None) if level == 0 => {}
            Ok(None) => return false,
            Ok(Some(_)) | Err(_) => return true,
        }
        next = bus.open_at(c"..", O_PATH | O_DIRECTORY);
    }
    true
}

/// The files of a sync, opened once: a sync itself opens nothing, and needs no path.
#[derive(Debug)]
pub(super) struct SyncFiles {
    offset: Attribute,
    size: Attribute,
    direction: Attribute,
    for_cpu: Attribute,
    for_device: Attribute,
}

impl SyncFiles {
    pub(super) fn open(directory: &Directory) -> Result<Self, Error> {
        Ok(Self {
            offset: directory.writable(c"sync_offset")?,
            size: directory.writable(c"sync_size")?,
            direction: directory.writable(c"sync_direction")?,
            for_cpu: directory.writable(c"sync_for_cpu")?,
            for_device: directory.writable(c"sync_for_device")?,
        })
    }

    /// Syncs `size` bytes from `offset`. The caller holds the backend's lock: the four writes are
    /// one sync.
    ///
    /// One packed word written to `sync_for_cpu` would do in newer modules; before 1.4 that file
    /// takes only 0 and 1, and the word has 32 bits for the offset. Four writes work in every
    /// version and at every offset.
    pub(super) fn sync(
        &self,
        kernel: &Kernel,
        command: u64,
        direction: Direction,
        offset: u64,
        size: u64,
    ) -> Result<(), Error> {
        self.offset.write(kernel, offset)?;
        self.size.write(kernel, size)?;
        self.direction.write(kernel, super::direction_code(direction))?;
        if command == SyncArgs::FOR_CPU {
            self.for_cpu.write(kernel, 1)
        } else {
            self.for_device.write(kernel, 1)
        }
    }
}

/// One open attribute.
#[derive(Debug)]
struct Attribute {
    file: Fd,
    name: &'static str,
}

impl Attribute {
    fn write(&self, kernel: &Kernel, value: u64) -> Result<(), Error> {
        let unwritten = |errno| Error::AttributeUnreadable { name: self.name, errno };
        // u64::MAX has 20 digits: it always fits.
        let mut digits = heapless::String::<24>::new();
        write!(digits, "{value}").map_err(|_| unwritten(EIO))?;
        let count =
            retry(|| kernel.write_at(&self.file, 0, digits.as_bytes())).map_err(unwritten)?;
        if count == digits.len() { Ok(()) } else { Err(unwritten(EIO)) }
    }
}
