//! Programs from PyPI in folders of the cache: of the versions and with the sums that are listed
//! here, and nothing on the machine changes.

use contigo_cross::cache_dir::CacheDir;
use contigo_cross::command::Tool;
use contigo_cross::failure::{Failure, Result};
use contigo_cross::toolchain;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// For 100 MB on a slow line.
const DOWNLOAD_LIMIT: Duration = Duration::from_secs(3600);

/// Some packages, and their place.
#[derive(Debug)]
pub(crate) struct Packages {
    /// Their names, for the terminal.
    pub(crate) what: &'static str,
    /// pip's list of requirements, with the sums of their files for Linux on x86-64 and arm64.
    pub(crate) requirements: &'static str,
    /// In the cache; other versions have another folder.
    pub(crate) folder: &'static str,
    /// The program that is looked for, in that folder.
    pub(crate) program: &'static str,
}

impl Packages {
    /// The folder, where an earlier run has filled it.
    pub(crate) fn find(&self, cache: &CacheDir) -> Option<PathBuf> {
        let folder = cache.path().join(self.folder);
        folder.join(self.program).is_file().then_some(folder)
    }

    /// Fills it, where it is not filled.
    pub(crate) fn install(&self, cache: &CacheDir) -> Result<PathBuf> {
        let _lock = cache.lock(self.folder)?;
        if let Some(found) = self.find(cache) {
            return Ok(found);
        }
        let python = toolchain::need("python3", "python3-pip")?;
        let log = cache.log("pip")?;
        let has_pip = Tool::at(&python, "looking for pip")
            .args(["-m", "pip", "--version"])
            .output(&log)
            .is_ok();
        if !has_pip {
            let remedy = "`apt install python3-pip`, or `cargo cross setup` as root".into();
            return Err(Failure::MissingTool {
                program: "pip, Python's package installer,".into(),
                remedy,
            }
            .into());
        }
        let staging = cache.stage(self.folder)?;
        let list = staging.path().join("requirements.txt");
        fs::write(&list, self.requirements)
            .map_err(|error| Failure::of_io("writing", &list, &error))?;
        Tool::at(&python, format!("installing {}", self.what))
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"])
            .args([
                "--only-binary",
                ":all:",
                "--no-deps",
                "--no-compile",
                "--require-hashes",
                "--requirement",
            ])
            .arg(&list)
            .arg("--target")
            .arg(staging.path())
            .limit(DOWNLOAD_LIMIT)
            .writes(staging.path())
            .run(&log)?;
        staging.commit()?;
        self.find(cache).ok_or_else(|| {
            anyhow::anyhow!("pip installed no {}; its log is {}", self.program, log.display())
        })
    }
}

/// cargo-zigbuild and Zig: Zig links against any glibc that has been, and needs no sysroot. The
/// versions were seen to work together.
const ZIGBUILD: Packages = Packages {
    what: "cargo-zigbuild and Zig from PyPI (100 MB)",
    requirements: include_str!("zigbuild.txt"),
    folder: "zigbuild/0.24.0-0.17.0",
    program: "bin/cargo-zigbuild",
};

#[derive(Debug)]
pub(crate) struct Zigbuild {
    folder: PathBuf,
    cache: PathBuf,
}

impl Zigbuild {
    /// The tools that an earlier `cargo cross setup` installed.
    pub(crate) fn find(cache: &CacheDir) -> Option<Self> {
        Some(Self { folder: ZIGBUILD.find(cache)?, cache: cache.path().join("zigbuild/cache") })
    }

    pub(crate) fn need(cache: &CacheDir) -> Result<Self> {
        Self::find(cache).ok_or_else(|| {
            let remedy = "`cargo cross setup` gets it; programs with their C library inside \
                          (--static) do without"
                .into();
            Failure::MissingTool { program: "cargo-zigbuild".into(), remedy }.into()
        })
    }

    pub(crate) fn install(cache: &CacheDir) -> Result<Self> {
        Ok(Self { folder: ZIGBUILD.install(cache)?, cache: cache.path().join("zigbuild/cache") })
    }

    pub(crate) fn program(&self) -> PathBuf {
        self.folder.join(ZIGBUILD.program)
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
