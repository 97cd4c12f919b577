//! cargo-zigbuild and Zig, from PyPI into the cache: Zig links against any glibc that has been, and
//! needs no sysroot.

use contigo_cross::{
    cache_dir::CacheDir,
    command::Tool,
    failure::{Failure, Result},
    toolchain,
};
use std::{fs, path::PathBuf, time::Duration};

/// The versions that are installed, which were seen to work together, and the sums of their files
/// for Linux on x86-64 and arm64.
const REQUIREMENTS: &str = include_str!("zigbuild.txt");
/// In the cache; another pair of versions is another folder.
const FOLDER: &str = "zigbuild/0.24.0-0.17.0";
/// For 100 MB on a slow line.
const DOWNLOAD_LIMIT: Duration = Duration::from_secs(3600);

/// Where it is.
#[derive(Debug)]
pub(crate) struct Zigbuild {
    folder: PathBuf,
    cache: PathBuf,
}

impl Zigbuild {
    /// The tools that an earlier `cargo cross setup` installed.
    pub(crate) fn find(cache: &CacheDir) -> Option<Self> {
        let found = Self { folder: cache.path().join(FOLDER), cache: cache.path().join("zigbuild/cache") };
        found.program().is_file().then_some(found)
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
        let _lock = cache.lock("zigbuild")?;
        if let Some(found) = Self::find(cache) {
            return Ok(found);
        }
        let python = toolchain::need("python3", "python3-pip")?;
        let log = cache.log("pip")?;
        let has_pip = Tool::at(&python, "looking for pip").args(["-m", "pip", "--version"]).output(&log).is_ok();
        if !has_pip {
            let remedy = "`apt install python3-pip`, or `cargo cross setup` as root".into();
            return Err(Failure::MissingTool { program: "pip, Python's package installer,".into(), remedy }.into());
        }
        let staging = cache.stage(FOLDER)?;
        let list = staging.path().join("requirements.txt");
        fs::write(&list, REQUIREMENTS).map_err(|error| Failure::of_io("writing", &list, &error))?;
        Tool::at(&python, "installing cargo-zigbuild and Zig from PyPI (100 MB)")
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"])
            .args(["--only-binary", ":all:", "--no-deps", "--no-compile", "--require-hashes", "--requirement"])
            .arg(&list)
            .arg("--target")
            .arg(staging.path())
            .limit(DOWNLOAD_LIMIT)
            .writes(staging.path())
            .run(&log)?;
        staging.commit()?;
        Self::find(cache).ok_or_else(|| anyhow::anyhow!("pip installed no cargo-zigbuild; its log is {}", log.display()))
    }

    /// The program.
    pub(crate) fn program(&self) -> PathBuf {
        self.folder.join("bin/cargo-zigbuild")
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
