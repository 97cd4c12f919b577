//! The headers of Debian's own kernel, by which a module is built for it: three packages, unpacked
//! without root.

use crate::cpu::Cpu;
use contigo_cross::{
    cache_dir::CacheDir,
    download::Packages,
    failure::{Failure, Result},
    toolchain,
};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// The tree for `make -C`, of the kernel with this answer to `uname -r`: from the cache, or from
/// Debian.
pub(super) fn tree(cache: &CacheDir, cpu: Cpu, release: &str) -> Result<PathBuf> {
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
    fn headers_include_each_other_where_they_were_unpacked() {
        let text = "include /usr/src/linux-headers-6.12-common/Makefile\nKBUILD_OUTPUT=/usr/src/linux-headers-6.12-arm64\n# ../usr/src/x\n";
        let there = "include /c/usr/src/linux-headers-6.12-common/Makefile\nKBUILD_OUTPUT=/c/usr/src/linux-headers-6.12-arm64\n# ../usr/src/x\n";
        assert_eq!(moved(text, Path::new("/c")), there);
    }
}
