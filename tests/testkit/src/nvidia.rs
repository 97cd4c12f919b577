//! The files that `tests/cuda/get` puts into the cache for machines without a GPU: NVIDIA's
//! `cuda.h`, the header of NVTX, and the driver's library.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

/// Why a test is skipped where there is nothing in the cache.
pub const NOT_HERE: &str = "it is not in the cache: run tests/cuda/get";

/// The kernel's part of the driver: of a card, of a Jetson, of Windows.
const KERNELS_PART: [&str; 3] = ["/proc/driver/nvidia", "/dev/nvmap", "/dev/dxg"];

fn cache() -> PathBuf {
    let named = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let kept = || {
        named("XDG_CACHE_HOME")
            .unwrap_or_else(|| named("HOME").unwrap_or_default().join(".cache"))
            .join("contigo")
    };
    named("CONTIGO_CACHE").unwrap_or_else(kept)
}

/// The entries of a folder, by name; nothing where there is no folder.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<_> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    found.sort();
    found
}

/// `cuda.h` of each CUDA, the oldest first.
pub fn headers() -> Vec<PathBuf> {
    entries(&cache().join("cuda-h"))
        .into_iter()
        .map(|folder| folder.join("cuda.h"))
        .filter(|file| file.exists())
        .collect()
}

/// The folders with `nvtx3/nvToolsExt.h`, the header of NVTX, the oldest first.
pub fn nvtx_headers() -> Vec<PathBuf> {
    entries(&cache().join("nvtx-h"))
        .into_iter()
        .filter(|folder| folder.join("nvtx3/nvToolsExt.h").exists())
        .collect()
}

/// NVIDIA's driver, unpacked and not installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Driver {
    /// The folder with `libcuda.so.1` and what it loads: what belongs into `LD_LIBRARY_PATH`.
    pub folder: PathBuf,
    /// 535 of 535.261.03.
    pub major: u32,
}

impl Driver {
    /// CUDA 10.2 came with driver 440 (NVIDIA, CUDA Toolkit Release Notes, table "CUDA Toolkit and
    /// Corresponding Driver Versions").
    pub const fn too_old(&self) -> bool {
        self.major < 440
    }

    /// `program`, which was built for this processor, with this driver where the loader looks
    /// first.
    pub fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = crate::emulated::command(program);
        command.env("LD_LIBRARY_PATH", &self.folder);
        command
    }
}

/// The drivers for the processor that this program was built for, the newest first.
pub fn drivers() -> Vec<Driver> {
    let debians = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
    let driver = |folder: PathBuf| {
        let major =
            folder.file_name()?.to_str()?.rsplit('-').next()?.split('.').next()?.parse().ok()?;
        folder.join("libcuda.so.1").exists().then_some(Driver { folder, major })
    };
    let mut found: Vec<_> =
        entries(&cache().join("libcuda").join(debians)).into_iter().filter_map(driver).collect();
    found.sort_by_key(|driver| Reverse(driver.major));
    found
}

/// Why nothing is known of what the drivers would answer: this kernel may have a GPU for them.
/// `/dev/nvidiactl` says nothing, because as root the library makes it, also where no kernel
/// answers for it.
pub fn may_have_a_gpu() -> Option<String> {
    let part = KERNELS_PART.iter().find(|path| Path::new(path).exists())?;
    Some(format!("this machine's kernel has a driver for GPUs ({part})"))
}

/// Takes `/dev/nvidiactl` away again when dropped, where there was none; not where a driver came
/// meanwhile, whose node it may be.
#[derive(Debug)]
pub struct NoNode(Option<&'static Path>);

impl NoNode {
    /// Looks whether it is there.
    pub fn new() -> Self {
        let node = Path::new("/dev/nvidiactl");
        let there =
            fs::symlink_metadata(node).is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
        Self(there.then_some(node))
    }
}

impl Default for NoNode {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for NoNode {
    fn drop(&mut self) {
        // Only root can have made it, and root may remove it.
        let _ = self.0.filter(|_| may_have_a_gpu().is_none()).map(fs::remove_file);
    }
}
