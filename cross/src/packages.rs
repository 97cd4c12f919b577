//! Which Debian package has a program, for errors that say what to install.

use crate::failure::{Failure, Result};
use std::env;
use std::path::{Path, PathBuf};

/// Programs whose package has another name, or that a reader would not guess.
const PROVIDERS: &[(&str, &str)] = &[
    ("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu"),
    ("aarch64-linux-gnu-strip", "binutils-aarch64-linux-gnu"),
    ("apt-get", "apt"),
    ("apt-cache", "apt"),
    ("arm-linux-gnueabihf-gcc", "gcc-arm-linux-gnueabihf"),
    ("arm-linux-gnueabihf-strip", "binutils-arm-linux-gnueabihf"),
    ("cc", "gcc"),
    ("cpp", "cpp"),
    ("dh", "debhelper"),
    ("dpkg-architecture", "dpkg-dev"),
    ("dpkg-deb", "dpkg"),
    ("dtc", "device-tree-compiler"),
    ("qemu-aarch64-static", "qemu-user-static"),
    ("qemu-arm-static", "qemu-user-static"),
    ("qemu-system-aarch64", "qemu-system-arm"),
    ("qemu-system-arm", "qemu-system-arm"),
    ("readelf", "binutils"),
    ("xz", "xz-utils"),
];

/// A program on the `PATH`, or a file by its path, and Debian's package of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Need {
    /// The program, or the file's path.
    pub name: String,
    /// Debian's package.
    pub package: String,
}

impl Need {
    /// A program.
    pub fn of(program: &str) -> Self {
        Self { name: program.into(), package: of(program).into() }
    }

    /// Where it is, if it is.
    #[must_use]
    pub fn place(&self) -> Option<PathBuf> {
        if self.name.contains('/') {
            Some(PathBuf::from(&self.name)).filter(|path| path.is_file())
        } else {
            find(&self.name)
        }
    }
}

/// The Debian package that has `program`; where nothing else is known, they have one name.
pub fn of(program: &str) -> &str {
    PROVIDERS.iter().find(|(name, _)| *name == program).map_or(program, |(_, package)| package)
}

/// Where `program` is on the `PATH`, if it is.
pub fn find(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|path| is_program(path));
    }
    env::split_paths(&env::var_os("PATH")?)
        .map(|folder| folder.join(program))
        .find(|path| is_program(path))
}

/// The same, or the error that names the package.
pub fn need(program: &str) -> Result<PathBuf> {
    find(program).ok_or_else(|| missing(program).into())
}

/// The error for a program that is not there.
pub fn missing(program: &str) -> Failure {
    Failure::MissingTool {
        program: program.into(),
        remedy: format!("`apt install {}`, or `cargo lab setup` for all at once", of(program)),
    }
}

fn is_program(path: &Path) -> bool {
    path.is_file() && nix::unistd::access(path, nix::unistd::AccessFlags::X_OK).is_ok()
}
