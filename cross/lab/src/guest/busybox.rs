//! Debian's static busybox for the guest: its shell and its tools.

use crate::cpu::Cpu;
use anyhow::Context;
use contigo_cross::{cache_dir::CacheDir, download::Packages, failure::Result};
use std::path::{Path, PathBuf};

const PACKAGE: &str = "busybox-static";
/// Its name in the guest.
pub(super) const BUSYBOX: &str = "busybox";

/// Its name in the guest, and its file.
pub(crate) fn of(cache: &CacheDir, cpu: Cpu) -> Result<(String, PathBuf)> {
    let name = format!("busybox/{}", cpu.debian());
    let _lock = cache.lock(&name)?;
    if let Some(file) = file(&cache.path().join(&name)) {
        return Ok((BUSYBOX.into(), file));
    }
    let staging = cache.stage(&name)?;
    Packages::new(cache, cpu.debian()).unpack(PACKAGE, staging.path())?;
    let folder = staging.commit()?;
    let file = file(&folder)
        .with_context(|| format!("{PACKAGE} has no bin/{BUSYBOX} in {}", folder.display()))?;
    Ok((BUSYBOX.into(), file))
}

/// Since Debian 13 it is in usr/bin.
fn file(folder: &Path) -> Option<PathBuf> {
    ["bin", "usr/bin"]
        .map(|bin| folder.join(bin).join(BUSYBOX))
        .into_iter()
        .find(|file| file.is_file())
}
