//! Debian's kernel source, unpacked once for each version.

use contigo_cross::cache_dir::CacheDir;
use contigo_cross::command::Tool;
use contigo_cross::download::Packages;
use contigo_cross::failure::{Failure, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// For unpacking 80,000 files on a slow disk.
const UNPACK_LIMIT: Duration = Duration::from_secs(1800);

/// A third of the source that no board needs: one vendor's register lists, and programs for
/// developers.
const LEFT_OUT: [&str; 3] = [
    "--exclude=*/drivers/gpu/drm/amd/include",
    "--exclude=*/tools/perf",
    "--exclude=*/tools/testing",
];

#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// Debian's version: `6.12.117-1~deb12u1`.
    pub(crate) version: String,
    /// The folder with the kernel's `Makefile`.
    pub(crate) folder: PathBuf,
}

impl Source {
    /// The source of `linux-source-SERIES`: from the cache, or from Debian. With `refresh` Debian
    /// is asked anyway.
    pub(crate) fn of(cache: &CacheDir, series: &str, refresh: bool) -> Result<Self> {
        let package = format!("linux-source-{series}");
        let _lock = cache.lock(&package)?;
        // The package is for all architectures: any list has it.
        let packages = Packages::new(cache, "arm64");
        if let Some(source) = Self::cached(cache, series) {
            let is_newest = |newest: String| newest == source.version;
            if !refresh || packages.version(&package)?.is_none_or(is_newest) {
                return Ok(source);
            }
        }
        let unpacked = cache.scratch()?;
        let version = packages.unpack(&package, unpacked.path())?.version;
        let staging = cache.stage(&format!("sources/{package}_{version}"))?;
        let archive = unpacked.path().join(format!("usr/src/{package}.tar.xz"));
        let untar = Tool::new("tar", format!("unpacking {package} {version}"))?
            .args(["-x", "--strip-components=1", "-f"])
            .arg(&archive);
        // tar calls xz, and its own message would not name the package.
        contigo_cross::packages::need("xz")?;
        let (log, place) = (cache.log(&package)?, staging.path());
        let untar = untar.arg("-C").arg(place).args(LEFT_OUT);
        untar.limit(UNPACK_LIMIT).writes(place).run(&log)?;
        if !place.join("Makefile").is_file() {
            let log = log.display();
            anyhow::bail!("{package} {version} is no kernel source: it has no Makefile; see {log}");
        }
        let folder = staging.commit()?;
        let pointer = cache.place(format!("sources/{package}"))?;
        fs::write(&pointer, &version)
            .map_err(|error| Failure::of_io("noting the source's version", &pointer, &error))?;
        Ok(Self { version, folder })
    }

    pub(crate) fn cached(cache: &CacheDir, series: &str) -> Option<Self> {
        let sources = cache.path().join("sources");
        let version = fs::read_to_string(sources.join(format!("linux-source-{series}"))).ok()?;
        let version = version.trim().to_owned();
        let folder = sources.join(format!("linux-source-{series}_{version}"));
        (!version.is_empty() && folder.join("Makefile").is_file())
            .then_some(Self { version, folder })
    }

    /// Where `cpp` looks for what a device tree includes: the architecture's trees, in folders by
    /// vendor since 6.5, and the bindings.
    pub(crate) fn tree_folders(source: &Path, architecture: &str) -> Vec<PathBuf> {
        let trees = source.join(format!("arch/{architecture}/boot/dts"));
        let mut folders = vec![
            source.join("include"),
            source.join("scripts/dtc/include-prefixes"),
            trees.clone(),
        ];
        let vendors = fs::read_dir(&trees).into_iter().flatten().flatten();
        folders.extend(vendors.map(|entry| entry.path()).filter(|path| path.is_dir()));
        folders.sort();
        folders
    }
}
