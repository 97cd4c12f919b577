//! A QEMU that takes a model for a PCI function (`vfio-user-pci`): this machine's own where it
//! does, else one of Debian's backports, unpacked beside it with its own C library.

use crate::cpu::Cpu;
use contigo_cross::{
    cache_dir::CacheDir,
    command::Tool,
    download::Packages,
    failure::{Failure, Result},
    packages, toolchain,
};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// The release whose backports have QEMU 11.1. (10.0 has no `vfio-user-pci`.)
const RELEASE: &str = "trixie";
/// The package with both emulators.
const PACKAGE: &str = "qemu-system-arm";

/// An emulator.
#[derive(Debug)]
pub(super) enum Newer {
    /// This machine's.
    Installed(PathBuf),
    /// An unpacked one, with all that it needs.
    Unpacked {
        root: PathBuf,
        /// The folder of its libraries, and its loader there.
        libraries: PathBuf,
        loader: PathBuf,
        program: PathBuf,
    },
}

impl Newer {
    /// The emulator of `cpu`. [`Failure::NoPackage`] where there is none, and none can be had.
    pub(super) fn of(cache: &CacheDir, cpu: Cpu) -> Result<Self> {
        let log = cache.log("qemu-newer")?;
        if let Some(path) = packages::find(cpu.qemu()) {
            let installed = Self::Installed(path);
            if installed.takes_models(&log) {
                return Ok(installed);
            }
        }
        let name = format!("qemu/{RELEASE}");
        let _lock = cache.lock(&name)?;
        if let Some(unpacked) = Self::in_folder(&cache.path().join(&name), cpu) {
            return Ok(unpacked);
        }
        let none = |reason: String| Failure::NoPackage {
            package: PACKAGE.into(),
            architecture: RELEASE.into(),
            reason: format!("a model wants QEMU 10.1 or newer, with vfio-user-pci: {reason}"),
        };
        let architecture =
            toolchain::host_architecture(cache).map_err(|error| none(error.to_string()))?;
        let staging = cache.stage(&name)?;
        let version = Packages::backports(cache, &architecture, RELEASE)
            .unpack_with_all_it_needs(PACKAGE, staging.path())?;
        match Self::in_folder(&staging.commit()?, cpu) {
            Some(unpacked) if unpacked.takes_models(&log) => Ok(unpacked),
            _ => Err(none(format!(
                "Debian's {version} has none that runs here; the log is {}",
                log.display()
            ))
            .into()),
        }
    }

    fn in_folder(root: &Path, cpu: Cpu) -> Option<Self> {
        let program =
            Some(root.join("usr/bin").join(cpu.qemu())).filter(|program| program.is_file())?;
        // Named by Debian's multiarch.
        let mut folders =
            fs::read_dir(root.join("usr/lib")).ok()?.flatten().map(|entry| entry.path());
        let libraries = folders.find(|folder| folder.join("libc.so.6").is_file())?;
        let mut files = fs::read_dir(&libraries).ok()?.flatten().map(|entry| entry.path());
        let is_loader = |file: &PathBuf| {
            file.file_name()
                .and_then(|name| name.to_str())
                .is_some_and(|name| name.starts_with("ld-linux"))
        };
        let loader = files.find(is_loader)?;
        Some(Self::Unpacked { root: root.into(), libraries, loader, program })
    }

    /// Does it have `vfio-user-pci`? Its exit status is 0 in any case.
    fn takes_models(&self, log: &Path) -> bool {
        let asked = self.tool("asking QEMU for vfio-user-pci".into()).args([
            "-machine",
            "none",
            "-device",
            "vfio-user-pci,help",
        ]);
        asked.output(log).is_ok_and(|said| said.contains("vfio-user-pci options"))
    }

    /// It, ready for arguments.
    pub(super) fn tool(&self, what: String) -> Tool {
        match self {
            Self::Installed(path) => Tool::at(path, what),
            Self::Unpacked { root, libraries, loader, program } => Tool::at(loader, what)
                .env("QEMU_MODULE_DIR", libraries.join("qemu"))
                .arg("--library-path")
                .arg(libraries)
                .arg(program)
                .arg("-L")
                .arg(root.join("usr/share/qemu")),
        }
    }
}
