//! A machine's files under `/sys`, `/proc` and `/dev`, only read. A file that cannot be read counts
//! as absent.

use contigo_core::linux::os::fd::Fd;
use contigo_core::linux::os::path::Path;
use contigo_core::linux::os::{dir, sysfs};
use core::ffi::CStr;
use nix::libc::{O_DIRECTORY, O_RDONLY};
use nix::unistd::{AccessFlags, access};

/// The files below a root: `""` for the running kernel's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Files<'r> {
    pub(super) root: &'r str,
}

/// The longest link and the longest text that is read.
pub(super) const LINE_MAX_BYTES: usize = 512;

/// How much of `/proc/self/status` is read: `CapEff` is within its first kilobyte, unless the
/// process has hundreds of groups, which stand before it.
const STATUS_MAX_BYTES: usize = 4096;

impl Files<'_> {
    /// Calls `each` with the name of every entry of `folder`.
    pub(super) fn each(self, folder: &'static str, each: &mut dyn FnMut(&str)) {
        if let Some(fd) = self.folder(&[folder]) {
            let _ = dir::each_name(&fd, folder, |name| {
                each(name);
                Ok(())
            });
        }
    }

    /// Opens the folder with this path.
    pub(super) fn folder(self, parts: &[&str]) -> Option<Fd> {
        Fd::open(self.path(parts)?.as_c_str(), O_RDONLY | O_DIRECTORY).ok()
    }

    /// Returns whether this process may not read and write the file. A file that does not exist
    /// counts too.
    pub(super) fn denies(self, parts: &[&str]) -> bool {
        let may =
            |path: Path| access(path.as_c_str(), AccessFlags::R_OK | AccessFlags::W_OK).is_ok();
        !self.path(parts).is_some_and(may)
    }

    /// Returns whether this process lacks `CAP_SYS_RAWIO`, as far as `/proc` shows (`CapEff`).
    pub(super) fn lacks_rawio(self) -> bool {
        /// Linux `include/uapi/linux/capability.h`.
        const CAP_SYS_RAWIO: u32 = 17;
        let mut buffer = [0; STATUS_MAX_BYTES];
        let status =
            self.folder(&["proc/self"]).and_then(|folder| text(&folder, c"status", &mut buffer));
        let line =
            status.and_then(|status| status.lines().find_map(|line| line.strip_prefix("CapEff:")));
        let has = line.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok());
        has.is_some_and(|has| has & 1 << CAP_SYS_RAWIO == 0)
    }

    /// The first two numbers of the kernel's release.
    pub(super) fn kernel(self) -> Option<(u64, u64)> {
        let mut buffer = [0; LINE_MAX_BYTES];
        let release = text(&self.folder(&["proc/sys/kernel"])?, c"osrelease", &mut buffer)?;
        let mut numbers = release
            .split(|letter: char| !letter.is_ascii_digit())
            .map(|digits| digits.parse().ok());
        Some((numbers.next()??, numbers.next()??))
    }

    fn path(self, parts: &[&str]) -> Option<Path> {
        let mut all = heapless::Vec::<&str, 6>::new();
        all.push(self.root).ok()?;
        all.extend_from_slice(parts).ok()?;
        Path::join(&all).ok()
    }
}

/// The text of an attribute, without the white space at its end.
pub(super) fn text<'b>(
    folder: &Fd,
    attribute: &'static CStr,
    buffer: &'b mut [u8],
) -> Option<&'b str> {
    let raw = sysfs::read(folder, attribute, buffer).ok()??;
    core::str::from_utf8(raw).ok().map(str::trim_end)
}

/// The number in an attribute.
pub(super) fn number(folder: &Fd, attribute: &'static CStr) -> Option<u64> {
    sysfs::number(folder, attribute).ok()?
}

/// The last part of a link's target.
pub(super) fn link<'b>(folder: &Fd, name: &CStr, buffer: &'b mut [u8]) -> Option<&'b str> {
    let target = core::str::from_utf8(folder.read_link(name, buffer).ok()?).ok()?;
    target.rsplit('/').next()
}
