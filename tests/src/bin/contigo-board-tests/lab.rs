#![allow(unsafe_code, reason = "the exporter's calls")]
//! The lab's own hardware (`cross/lab/module`): what it counted, and how it is made to fail.

use crate::verdict::Wrong;
use nix::errno::Errno;
use nix::libc;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

const FOLDER: &str = "/sys/kernel/debug/contigo-lab";

/// One part: a clock gate, a reset line, a power domain, the exporter, the
/// device of a PCI function.
#[derive(Clone, Debug)]
pub(crate) struct Part(PathBuf);

impl Part {
    pub(crate) fn named(name: &str) -> Option<Self> {
        let folder = Path::new(FOLDER).join(name);
        folder.is_dir().then_some(Self(folder))
    }

    pub(crate) fn clock_of(dev_node: &str) -> Option<Self> {
        Self::named(&supplier(dev_node, "clocks")?)
    }

    pub(crate) fn reset_of(dev_node: &str) -> Option<Self> {
        Self::named(&format!("reset-{}", dev_node.split_once('.')?.0))
    }

    pub(crate) fn power_of(dev_node: &str) -> Option<Self> {
        Self::named(&supplier(dev_node, "power-domains")?)
    }

    pub(crate) fn has(&self, file: &str) -> bool {
        self.0.join(file).exists()
    }

    pub(crate) fn number(&self, file: &str) -> io::Result<u64> {
        let text = fs::read_to_string(self.0.join(file))?;
        text.trim().parse().map_err(|_| io::Error::other(format!("{file}: {text}")))
    }

    /// Tells it to fail, or to do nothing, until the result is dropped.
    pub(crate) fn told(&self, file: &'static str) -> io::Result<Told> {
        fs::write(self.0.join(file), "Y")?;
        Ok(Told(self.0.join(file)))
    }
}

#[derive(Debug)]
pub(crate) struct Told(PathBuf);

impl Drop for Told {
    fn drop(&mut self) {
        let _ = fs::write(&self.0, "N");
    }
}

/// The node that the first phandle of `property` points to, by its name, among the lab's.
fn supplier(dev_node: &str, property: &str) -> Option<String> {
    let phandle =
        fs::read(format!("/sys/class/contigo/{dev_node}/device/of_node/{property}")).ok()?;
    let nodes = fs::read_dir("/proc/device-tree").ok()?.flatten();
    let points = |node: &fs::DirEntry| {
        fs::read(node.path().join("phandle")).is_ok_and(|own| phandle.get(..4) == Some(&own))
    };
    nodes.into_iter().find(points)?.file_name().into_string().ok()
}

/// The properties of a dma-buf: `LAB_*` of `lab_exporter.c`.
pub(crate) mod property {
    pub(crate) const CACHED: u32 = 1;
    pub(crate) const WRITER: u32 = 1 << 1;
    pub(crate) const SHORT: u32 = 1 << 3;
}

#[derive(Debug)]
pub(crate) struct Exporter(File);

impl Exporter {
    pub(crate) fn open() -> Result<Self, Wrong> {
        const PATH: &str = "/dev/contigo-lab";
        let opened = OpenOptions::new().read(true).write(true).open(PATH);
        opened.map(Self).map_err(|error| Wrong::Skipped(format!("{PATH}: {error}")))
    }

    /// A new dma-buf. Its writer goes on until [`signal`](Self::signal).
    pub(crate) fn buffer(&self, pages: u32, properties: u32) -> io::Result<OwnedFd> {
        const EXPORT: u32 = 0xC010_4C01;
        let mut export = [pages, properties, 0, 0];
        // SAFETY: the call takes 16 bytes.
        Errno::result(unsafe {
            libc::ioctl(self.0.as_raw_fd(), EXPORT as _, export.as_mut_ptr())
        })?;
        // SAFETY: the kernel has just made this descriptor for this call.
        Ok(unsafe { OwnedFd::from_raw_fd(export[2].cast_signed()) })
    }

    pub(crate) fn signal(&self) {
        const SIGNAL: u32 = 0x4C02;
        // SAFETY: it takes no argument.
        unsafe { libc::ioctl(self.0.as_raw_fd(), SIGNAL as _, 0) };
    }
}

#[derive(Debug)]
pub(crate) struct KernelLog(File);

impl KernelLog {
    pub(crate) fn from_here() -> io::Result<Self> {
        let log = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open("/dev/kmsg")?;
        // SAFETY: a seek of this descriptor.
        Errno::result(unsafe { libc::lseek(log.as_raw_fd(), 0, libc::SEEK_END) })?;
        Ok(Self(log))
    }

    pub(crate) fn lines(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut record = [0; 8192];
        while let Ok(len) = self.0.read(&mut record) {
            let text = String::from_utf8_lossy(record.get(..len).unwrap_or_default()).into_owned();
            lines.push(
                text.split_once(';').map_or(text.clone(), |(_, line)| line.trim_end().to_owned()),
            );
        }
        lines
    }
}
