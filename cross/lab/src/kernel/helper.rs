//! The project's own kernel modules, built against a kernel that was built here, or against
//! Debian's headers. Each is kept by the hash of its sources and of the kernel, whole or not at
//! all.

use super::Kernel;
use crate::board::Board;
use crate::cpu::Cpu;
use anyhow::Context;
use contigo_cross::cache_dir::CacheDir;
use contigo_cross::command::Tool;
use contigo_cross::download::Packages;
use contigo_cross::failure::{Failure, Result};
use contigo_cross::{packages, toolchain};
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// For a dozen files, on a slow machine that is busy.
const BUILD_LIMIT: Duration = Duration::from_secs(600);
/// Digits of the hash in a folder's name.
const KEY_DIGITS: usize = 16;
/// The programs that make runs beside those that build kernels.
pub(crate) const CHECKERS: &[&str] = &["perl", "sparse"];

struct Module {
    name: &'static str,
    /// Where its sources are, and where they are built: the first one's `Kbuild` is the module's.
    folders: Vec<(&'static str, PathBuf)>,
    tree: PathBuf,
    /// Its own check, which builds it: a word of the compiler, of sparse or of checkpatch ends it.
    checks: bool,
}

/// The modules for `kernel`, in the order in which they are loaded: the lab's own, then that of
/// `helpers` (`kernel-helpers/`), each where its sources are there. For Debian's own kernel none,
/// unless the board asks for its headers; nothing is checked there.
pub(crate) fn modules(
    cache: &CacheDir,
    board: &Board,
    kernel: &Kernel,
    helpers: &Path,
) -> Result<Vec<PathBuf>> {
    let (tree, checks) = match (&kernel.source, board.about.kernel.headers) {
        (Some(_), _) => (kernel.folder.clone(), true),
        (None, true) => (headers(cache, board.cpu(), &kernel.release)?, false),
        (None, false) => return Ok(Vec::new()),
    };
    let own = ["module", "uapi"].map(|folder| (folder, helpers.join(folder)));
    let own = Module { name: "contigo", folders: own.into(), tree: tree.clone(), checks };
    let lab = Module {
        name: "contigo_lab",
        folders: vec![("module", helpers.join("../cross/lab/module"))],
        tree,
        checks: false,
    };
    let has_sources = |module: &&Module| {
        module.folders.first().is_some_and(|(_, folder)| folder.join("Kbuild").is_file())
    };
    [lab, own].iter().filter(has_sources).map(|module| module.built(cache, board)).collect()
}

impl Module {
    fn built(&self, cache: &CacheDir, board: &Board) -> Result<PathBuf> {
        let mut sources = Vec::new();
        for (to, from) in &self.folders {
            let files = files(from)?.into_iter();
            sources.extend(files.map(|(name, bytes)| (format!("{to}/{name}"), bytes)));
        }
        let mut hash = Sha256::new();
        let built_for = self.tree.file_name().unwrap_or_default().as_encoded_bytes();
        let parts = sources.iter().flat_map(|(name, bytes)| [name.as_bytes(), bytes]);
        for part in [built_for].into_iter().chain(parts) {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        let key: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        let name = format!("helpers/{}-{}", self.name, key.get(..KEY_DIGITS).unwrap_or(&key));
        let _lock = cache.lock(&name)?;
        let made = format!("{}.ko", self.name);
        let file = cache.path().join(&name).join(&made);
        if file.is_file() {
            return Ok(file);
        }
        let staging = cache.stage(&name)?;
        let work = cache.scratch()?;
        for (name, bytes) in &sources {
            let place = work.path().join(name);
            let made = place.parent().map_or(Ok(()), fs::create_dir_all);
            made.and_then(|()| fs::write(&place, bytes))
                .map_err(|error| Failure::of_io("copying the module's sources", &place, &error))?;
        }
        let folder = work.path().join("module");
        self.make(board, &folder)?
            .run(&cache.log(&format!("module-{}-{}", self.name, board.name))?)?;
        let (built, place) = (folder.join(&made), staging.path().join(&made));
        fs::copy(&built, &place)
            .with_context(|| format!("make ended well, but there is no {}", built.display()))?;
        Ok(staging.commit()?.join(made))
    }

    /// The call of make that builds it in `folder`.
    fn make(&self, board: &Board, folder: &Path) -> Result<Tool> {
        let (cpu, name, kernel) = (board.cpu(), self.name, self.tree.display().to_string());
        let config = fs::read_to_string(Path::new(&kernel).join(".config")).unwrap_or_default();
        let what = if self.checks { "building and checking" } else { "building" };
        let tool = Tool::new("make", format!("{what} the module {name} for {}", board.name))?
            .limit(BUILD_LIMIT)
            .writes(folder)
            .arg("-C");
        let tool = if self.checks {
            CHECKERS.iter().try_for_each(|tool| packages::need(tool).map(drop))?;
            // With its unit tests where the kernel has what runs them.
            let kunit = config.contains("CONFIG_KUNIT=y\n").then_some("CONTIGO_KUNIT=y");
            tool.arg(folder).args(["check".into(), format!("KDIR={kernel}")]).args(kunit)
        } else {
            // Debian's headers name a compiler by its version, and want pahole for what no module
            // needs.
            let own = [format!("CC={}gcc", cpu.prefix()), "CONFIG_DEBUG_INFO_BTF_MODULES=".into()];
            tool.arg(&kernel).args([format!("M={}", folder.display()), "modules".into()]).args(own)
        };
        Ok(tool
            .args([format!("ARCH={}", cpu.linux()), format!("CROSS_COMPILE={}", cpu.prefix())])
            .env("LC_ALL", "C.UTF-8"))
    }
}

fn files(folder: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    let read = || -> std::io::Result<Vec<(String, Vec<u8>)>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let name =
                path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
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

/// The headers of Debian's own kernel, by which a module is built for it: three packages, unpacked
/// without root.
///
/// The tree for `make -C`, of the kernel with this answer to `uname -r`: from the cache, or from
/// Debian.
fn headers(cache: &CacheDir, cpu: Cpu, release: &str) -> Result<PathBuf> {
    let place = format!("kernels/headers-{release}");
    let root = cache.path().join(&place);
    let tree = root.join(format!("usr/src/linux-headers-{release}"));
    let _lock = cache.lock(&place)?;
    if tree.is_dir() {
        return Ok(tree);
    }
    let version = release.strip_suffix(&format!("-{}", cpu.debian())).unwrap_or(release);
    let staging = cache.stage(&place)?;
    let packages = Packages::new(cache, cpu.debian());
    packages.unpack(&format!("linux-headers-{release}"), staging.path())?;
    packages.unpack(&format!("linux-headers-{version}-common"), staging.path())?;
    // Its scripts are programs, so they are this machine's.
    let host = toolchain::host_architecture(cache)?;
    Packages::new(cache, &host).unpack(&format!("linux-kbuild-{version}"), staging.path())?;
    // They include each other where they would be installed.
    let sources = staging.path().join("usr/src");
    let failed = |error| Failure::of_io("changing the headers' Makefiles", &sources, &error);
    for folder in fs::read_dir(&sources).map_err(failed)? {
        let file = folder.map_err(failed)?.path().join("Makefile");
        if let Ok(text) = fs::read_to_string(&file) {
            fs::write(&file, moved(&text, &root)).map_err(failed)?;
        }
    }
    staging.commit()?;
    Ok(tree)
}

/// A Makefile of theirs, as it is below `root`.
fn moved(text: &str, root: &Path) -> String {
    let own = format!("{}/usr/src/", root.display());
    [" ", "="].iter().fold(text.to_owned(), |text, before| {
        text.replace(&format!("{before}/usr/src/"), &format!("{before}{own}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_includes_follow_unpacked_path() {
        let text = "include /usr/src/linux-headers-6.12-common/Makefile\n\
                    KBUILD_OUTPUT=/usr/src/linux-headers-6.12-arm64\n# ../usr/src/x\n";
        let there = "include /c/usr/src/linux-headers-6.12-common/Makefile\n\
                     KBUILD_OUTPUT=/c/usr/src/linux-headers-6.12-arm64\n# ../usr/src/x\n";
        assert_eq!(moved(text, Path::new("/c")), there);
    }
}
