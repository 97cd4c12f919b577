//! A PCI function, as `/sys` describes it: its IOMMU group, and its number as a VFIO device.

use crate::linux::os::fd::Fd;
use crate::linux::os::path::{Path, check_name};
use crate::linux::os::sysfs::ATTRIBUTE;
use crate::linux::os::{Kernel, SystemCalls, dir};
use crate::types::Error;
use nix::libc;

const GROUP: &str = "iommu_group";
const DEVICES: &str = "vfio-dev";
/// The name of VFIO's groups without an IOMMU (`vfio_noiommu_group_alloc`).
const NO_IOMMU: &[u8] = b"vfio-noiommu";
/// A link to a group, `../../../../kernel/iommu_groups/12`: longer with every bridge above the
/// function.
const LINK_BYTES: usize = 1024;

/// One PCI function, as `/sys` describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Function {
    /// Its IOMMU group's number; `None`: it has none.
    pub(super) group: Option<u32>,
    /// The group is one of VFIO's no-IOMMU groups: no IOMMU stands before it.
    pub(super) no_iommu: bool,
    /// Its number as a VFIO device: `/dev/vfio/devices/vfio<number>`, where the kernel has that
    /// file. `None`: it is not bound to a VFIO driver, or the kernel is older than 6.1.
    pub(super) device: Option<u32>,
}

/// Reads `/sys/bus/pci/devices/<address>`.
///
/// # Errors
/// [`Error::BadName`]; [`Error::AttributeMissing`] where there is no such function;
/// [`Error::AttributeUnreadable`]; [`Error::Unexpected`].
pub(super) fn function(kernel: &Kernel, address: &str) -> Result<Function, Error> {
    check_name(address)?;
    let folder = Path::join(&["/sys/bus/pci/devices", address])?;
    match kernel.open(folder.as_c_str(), libc::O_RDONLY | libc::O_DIRECTORY) {
        Ok(folder) => described(&folder),
        Err(libc::ENOENT) => {
            Err(Error::AttributeMissing { name: "/sys/bus/pci/devices/<address>" })
        }
        Err(errno) => {
            Err(Error::AttributeUnreadable { name: "/sys/bus/pci/devices/<address>", errno })
        }
    }
}

/// The function that this folder describes.
fn described(folder: &Fd) -> Result<Function, Error> {
    let group = group(folder)?;
    let no_iommu = group.is_some() && is_no_iommu(folder)?;
    Ok(Function { group, no_iommu, device: device(folder)? })
}

/// The number at the end of the link `iommu_group`.
fn group(folder: &Fd) -> Result<Option<u32>, Error> {
    let mut link = [0; LINK_BYTES];
    let target = match folder.read_link(c"iommu_group", &mut link) {
        Ok(target) => target,
        Err(libc::ENOENT) => return Ok(None),
        Err(errno) => return Err(Error::AttributeUnreadable { name: GROUP, errno }),
    };
    let number = target.rsplit(|byte| *byte == b'/').next().and_then(number);
    // A link that fills the buffer may have been cut.
    let whole = number.filter(|_| target.len() < LINK_BYTES);
    whole.map(Some).ok_or(Error::Unexpected { name: GROUP, value: target.len() as u64 })
}

/// A group's `name` is there only where it has one.
fn is_no_iommu(folder: &Fd) -> Result<bool, Error> {
    const NAME: &str = "iommu_group/name";
    match folder.open_at(c"iommu_group/name", libc::O_RDONLY | ATTRIBUTE) {
        Ok(file) => {
            let mut name = [0; 64];
            let count = file
                .read_start(&mut name)
                .map_err(|errno| Error::AttributeUnreadable { name: NAME, errno })?;
            Ok(name.get(..count).unwrap_or_default().trim_ascii_end() == NO_IOMMU)
        }
        Err(libc::ENOENT) => Ok(false),
        Err(errno) => Err(Error::AttributeUnreadable { name: NAME, errno }),
    }
}

/// The number in `vfio-dev/vfio<number>`, the only entry there.
fn device(folder: &Fd) -> Result<Option<u32>, Error> {
    let folder = match folder.open_at(c"vfio-dev", libc::O_RDONLY | libc::O_DIRECTORY) {
        Ok(folder) => folder,
        Err(libc::ENOENT) => return Ok(None),
        Err(errno) => return Err(Error::AttributeUnreadable { name: DEVICES, errno }),
    };
    let mut found = None;
    dir::each_name(&folder, DEVICES, |name| {
        found = found.or(name.strip_prefix("vfio").and_then(|name| number(name.as_bytes())));
        Ok(())
    })?;
    Ok(found)
}

/// A decimal number, and nothing else.
fn number(digits: &[u8]) -> Option<u32> {
    core::str::from_utf8(digits)
        .ok()
        .filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?
        .parse()
        .ok()
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that panics has failed, which is its purpose"
)]
mod tests {
    use super::{Error, Fd, Function, Path as FdPath, described, function, libc};
    use crate::linux::os::RUNNING;
    use std::os::unix::fs::symlink;
    use std::path::{Path, PathBuf};
    use std::{env, format, fs, process};

    const ADDRESS: &str = "0000:00:01.0";

    /// A `/sys` of one function, removed on drop.
    struct Sys(PathBuf);

    impl Sys {
        fn new(name: &str) -> Self {
            let root = env::temp_dir().join(format!("contigo-sysfs-{}-{name}", process::id()));
            fs::create_dir_all(root.join("bus/pci/devices").join(ADDRESS)).unwrap();
            Self(root)
        }
        fn folder(&self) -> PathBuf {
            self.0.join("bus/pci/devices").join(ADDRESS)
        }
        fn group(&self, number: &str) -> PathBuf {
            let group = self.0.join("kernel/iommu_groups").join(number);
            fs::create_dir_all(&group).unwrap();
            symlink(
                Path::new("../../../../kernel/iommu_groups").join(number),
                self.folder().join("iommu_group"),
            )
            .unwrap();
            group
        }
        fn ask(&self) -> Result<Function, Error> {
            let path = FdPath::join(&[self.folder().to_str().unwrap()]).unwrap();
            described(&Fd::open(path.as_c_str(), libc::O_RDONLY | libc::O_DIRECTORY).unwrap())
        }
    }

    impl Drop for Sys {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_function_says_its_group_and_its_number() {
        let sys = Sys::new("whole");
        assert_eq!(
            sys.ask(),
            Ok(Function { group: None, no_iommu: false, device: None }),
            "no IOMMU, no driver"
        );
        let group = sys.group("12");
        assert_eq!(sys.ask(), Ok(Function { group: Some(12), no_iommu: false, device: None }));
        let devices = sys.folder().join("vfio-dev");
        fs::create_dir_all(&devices).unwrap();
        assert_eq!(sys.ask().map(|function| function.device), Ok(None), "an empty folder");
        fs::create_dir_all(devices.join("vfio307")).unwrap();
        assert_eq!(sys.ask(), Ok(Function { group: Some(12), no_iommu: false, device: Some(307) }));
        for (name, no_iommu) in [("vfio-noiommu\n", true), ("another\n", false), ("", false)] {
            fs::write(group.join("name"), name).unwrap();
            assert_eq!(sys.ask().map(|function| function.no_iommu), Ok(no_iommu), "{name}");
        }
    }

    #[test]
    fn what_is_no_function_and_what_is_no_group() {
        let sys = Sys::new("nonsense");
        assert_eq!(
            function(&RUNNING, "no such function"),
            Err(Error::AttributeMissing { name: "/sys/bus/pci/devices/<address>" })
        );
        for name in ["", "..", "a/b", "nul\0"] {
            assert!(matches!(function(&RUNNING, name), Err(Error::BadName { .. })), "{name}");
        }
        sys.group("vfio");
        assert!(matches!(sys.ask(), Err(Error::Unexpected { name: "iommu_group", .. })));
        let devices = sys.folder().join("vfio-dev");
        for name in ["vfio", "vfio-1", "vfio1x", "other7"] {
            fs::create_dir_all(devices.join(name)).unwrap();
        }
        let _ = fs::remove_file(sys.folder().join("iommu_group"));
        assert_eq!(
            sys.ask().map(|function| function.device),
            Ok(None),
            "none of these is a number"
        );
    }
}
