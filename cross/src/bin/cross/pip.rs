//! Programs from PyPI in folders of the cache: of the versions and with the sums that are listed
//! here, and nothing on the machine changes.

use contigo_cross::{
    cache_dir::CacheDir,
    command::Tool,
    failure::{Failure, Result},
    toolchain,
};
use std::{fs, path::PathBuf, time::Duration};

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
