//! cargo-zigbuild and Zig, from PyPI into the cache: Zig links against any glibc that has been, and
//! needs no sysroot.

use crate::pip::Packages;
use contigo_cross::{
    cache_dir::CacheDir,
    failure::{Failure, Result},
};
use std::path::PathBuf;

/// The versions were seen to work together.
const PACKAGES: Packages = Packages {
    what: "cargo-zigbuild and Zig from PyPI (100 MB)",
    requirements: include_str!("zigbuild.txt"),
    folder: "zigbuild/0.24.0-0.17.0",
    program: "bin/cargo-zigbuild",
};

/// Where it is.
#[derive(Debug)]
pub(crate) struct Zigbuild {
    folder: PathBuf,
    cache: PathBuf,
}

impl Zigbuild {
    /// The tools that an earlier `cargo cross setup` installed.
    pub(crate) fn find(cache: &CacheDir) -> Option<Self> {
        Some(Self { folder: PACKAGES.find(cache)?, cache: cache.path().join("zigbuild/cache") })
    }

    /// The same, or what to do.
    pub(crate) fn need(cache: &CacheDir) -> Result<Self> {
        Self::find(cache).ok_or_else(|| {
            let remedy = "`cargo cross setup` gets it; programs with their C library inside (--static) do without".into();
            Failure::MissingTool { program: "cargo-zigbuild".into(), remedy }.into()
        })
    }

    /// Installs both.
    pub(crate) fn install(cache: &CacheDir) -> Result<Self> {
        Ok(Self { folder: PACKAGES.install(cache)?, cache: cache.path().join("zigbuild/cache") })
    }

    /// The program.
    pub(crate) fn program(&self) -> PathBuf {
        self.folder.join(PACKAGES.program)
    }

    /// Its environment: where Zig is, and where both may keep their files.
    pub(crate) fn variables(&self) -> [(&'static str, PathBuf); 3] {
        [
            ("CARGO_ZIGBUILD_ZIG_PATH", self.folder.join("ziglang/zig")),
            ("CARGO_ZIGBUILD_CACHE_DIR", self.cache.clone()),
            ("ZIG_GLOBAL_CACHE_DIR", self.cache.join("zig")),
        ]
    }
}
