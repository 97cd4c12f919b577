//! Debian's own kernel: a package unpacked without root.

use super::{Kernel, NOTE, Note};
use crate::cpu::Cpu;
use anyhow::{Context, bail};
use contigo_cross::cache_dir::CacheDir;
use contigo_cross::download::Packages;
use contigo_cross::failure::{Failure, Result};
use std::fs;
use std::path::Path;
use std::time::Instant;

/// The beginning of the names of Debian's kernels; the rest is their release.
const IMAGE: &str = "linux-image-";

pub(super) fn kernel(cache: &CacheDir, cpu: Cpu, series: &str, refresh: bool) -> Result<Kernel> {
    let place = place(cpu, series);
    let _lock = cache.lock(&place)?;
    let cached = cached(cache, cpu, series)?;
    if let (false, Some(kernel)) = (refresh, &cached) {
        return Ok(kernel.clone());
    }
    let begun = Instant::now();
    let packages = Packages::new(cache, cpu.debian());
    let prefix = format!("{IMAGE}{series}.");
    let end = format!("-{}", cpu.debian());
    let names = packages.names(&prefix)?;
    let newest = newest(&names, &prefix, &end).with_context(|| {
        let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        format!(
            "there is no package {prefix}N…{end} in this machine's package lists (of that \
                 series: {known})"
        )
    })?;
    if let Some(kernel) =
        cached.filter(|kernel| newest.strip_prefix(IMAGE) == Some(&kernel.release))
    {
        return Ok(kernel);
    }
    let staging = cache.stage(&place)?;
    let package = packages.unpack(newest, staging.path())?;
    let release = newest.strip_prefix(IMAGE).unwrap_or(newest).to_owned();
    let note = Note {
        release,
        package: format!("{} {}", package.name, package.version),
        lines: 0,
        seconds: begun.elapsed().as_secs(),
    };
    let file = staging.path().join(NOTE);
    fs::write(&file, serde_json::to_string_pretty(&note)?)
        .map_err(|error| Failure::of_io("noting the kernel's release", &file, &error))?;
    let folder = staging.commit()?;
    match whole(&folder)? {
        Some(kernel) => Ok(kernel),
        None => bail!("{} {} has no boot/vmlinuz-{}", package.name, package.version, note.release),
    }
}

pub(super) fn cached(cache: &CacheDir, cpu: Cpu, series: &str) -> Result<Option<Kernel>> {
    whole(&cache.path().join(place(cpu, series)))
}

fn place(cpu: Cpu, series: &str) -> String {
    format!("kernels/debian-{}-{series}", cpu.debian())
}

fn whole(folder: &Path) -> Result<Option<Kernel>> {
    let Ok(note) = fs::read(folder.join(NOTE)) else { return Ok(None) };
    let Note { release, .. } = serde_json::from_slice(&note)
        .with_context(|| format!("{} is damaged: delete the folder", folder.display()))?;
    let image = folder.join(format!("boot/vmlinuz-{release}"));
    let modules =
        [folder.join("lib/modules").join(&release), folder.join("usr/lib/modules").join(&release)]
            .into_iter()
            .find(|path| path.is_dir());
    let Some(modules) = modules.filter(|_| image.is_file()) else { return Ok(None) };
    Ok(Some(Kernel { image, release, folder: folder.into(), modules, source: None }))
}

/// The newest kernel among package names: only digits, dots and a `+debN` between the prefix and
/// the architecture, so neither `-cloud`, `-rt`, `-dbg` nor `-unsigned`.
fn newest<'n>(names: &'n [String], prefix: &str, end: &str) -> Option<&'n str> {
    let key = |name: &str| -> Option<Vec<u64>> {
        let version = name.strip_prefix(prefix)?.strip_suffix(end)?;
        let plain =
            version.chars().all(|letter| letter.is_ascii_digit() || ".+-~debpo".contains(letter));
        let numbers = version
            .split(|letter: char| !letter.is_ascii_digit())
            .filter_map(|number| number.parse().ok());
        plain.then(|| numbers.collect())
    };
    names.iter().filter_map(|name| Some((key(name)?, name.as_str()))).max().map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_plain_kernel_is_taken() {
        let names = [
            "6.12.9+bpo-arm64",
            "6.12.117+deb12-arm64",
            "6.12.117+deb12-cloud-arm64",
            "6.12.200+deb12-rt-arm64",
            "6.12.118+deb12-arm64-dbg",
        ];
        let names: Vec<String> = names.iter().map(|name| format!("linux-image-{name}")).collect();
        assert_eq!(
            newest(&names, "linux-image-6.12.", "-arm64"),
            Some("linux-image-6.12.117+deb12-arm64")
        );
        assert_eq!(newest(&names, "linux-image-6.1.", "-arm64"), None);
    }
}
