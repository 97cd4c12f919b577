//! The project's own kernel module, built against a kernel that was built here: kept by the hash of
//! its sources and of the kernel, whole or not at all.

use super::Kernel;
use crate::board::Board;
use anyhow::Context;
use contigo_cross::{
    cache_dir::CacheDir,
    command::Tool,
    failure::{Failure, Result},
    packages,
};
use sha2::{Digest, Sha256};
use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

/// For seven files, on a slow machine that is busy.
const BUILD_LIMIT: Duration = Duration::from_secs(600);
/// Digits of the hash in a folder's name.
const KEY_DIGITS: usize = 16;
/// The programs that make runs beside those that build kernels.
pub(crate) const CHECKERS: &[&str] = &["perl", "sparse"];
/// The module, and its name.
const FILE: &str = "contigo.ko";

/// The module for `kernel`, from `helpers` (`kernel-helpers/`); `None` where there are no sources,
/// or the kernel is Debian's own, whose headers are not here.
pub(crate) fn module(cache: &CacheDir, board: &Board, kernel: &Kernel, helpers: &Path) -> Result<Option<PathBuf>> {
    if kernel.source.is_none() || !helpers.join("module/Kbuild").is_file() {
        return Ok(None);
    }
    let mut sources = Vec::new();
    for folder in ["module", "uapi"] {
        sources.extend(files(&helpers.join(folder))?.into_iter().map(|(name, bytes)| (format!("{folder}/{name}"), bytes)));
    }
    let mut hash = Sha256::new();
    let built_for = kernel.folder.file_name().unwrap_or_default().as_encoded_bytes();
    for part in [built_for].into_iter().chain(sources.iter().flat_map(|(name, bytes)| [name.as_bytes(), bytes])) {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let key: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    let name = format!("helpers/contigo-{}", key.get(..KEY_DIGITS).unwrap_or(&key));
    let _lock = cache.lock(&name)?;
    let file = cache.path().join(&name).join(FILE);
    if file.is_file() {
        return Ok(Some(file));
    }
    let staging = cache.stage(&name)?;
    let work = cache.scratch()?;
    for (name, bytes) in &sources {
        let place = work.path().join(name);
        let made = place.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&place, bytes));
        made.map_err(|error| Failure::of_io("copying the module's sources", &place, &error))?;
    }
    let cpu = board.cpu();
    let folder = work.path().join("module");
    CHECKERS.iter().try_for_each(|tool| packages::need(tool).map(drop))?;
    // The module's own check, which builds it: a word of the compiler, of sparse or of checkpatch
    // ends it.
    Tool::new("make", format!("building and checking the module contigo for {}", board.name))?
        .limit(BUILD_LIMIT)
        .writes(&folder)
        .arg("-C")
        .arg(&folder)
        .args(["check".into(), format!("KDIR={}", kernel.folder.display())])
        .args([format!("ARCH={}", cpu.linux()), format!("CROSS_COMPILE={}", cpu.prefix())])
        .env("LC_ALL", "C.UTF-8")
        .run(&cache.log(&format!("module-{}", board.name))?)?;
    let (made, place) = (folder.join(FILE), staging.path().join(FILE));
    fs::copy(&made, &place).with_context(|| format!("make ended well, but there is no {}", made.display()))?;
    Ok(Some(staging.commit()?.join(FILE)))
}

/// The files of a folder that go into the module, by name.
fn files(folder: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    let read = || -> std::io::Result<Vec<(String, Vec<u8>)>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
            // Files that make left there, when it was run by hand, are no source.
            let is_source = ["Kbuild", "Makefile", "dkms.conf"].contains(&name.as_str())
                || [".c", ".h"].iter().any(|end| name.ends_with(end) && !name.ends_with(".mod.c"));
            if is_source && path.is_file() {
                files.push((name, fs::read(&path)?));
            }
        }
        files.sort();
        Ok(files)
    };
    read().map_err(|error| Failure::of_io("reading the module's sources", folder, &error))
}
