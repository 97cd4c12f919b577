//! A board of the lab: one folder with `board.toml`, and where it needs them `board.dts`, `setup.sh` and `kernel.config`.

use crate::cpu::Cpu;
use anyhow::{Context, bail};
use contigo_cross::failure::Result;
use serde::Deserialize;
use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

/// How long a run may take where `board.toml` says nothing: ten times what the longest takes on two idle cores.
const TIME_LIMIT_S: u64 = 600;

/// One board, as its folder describes it.
#[derive(Debug)]
pub(crate) struct Board {
    /// The folder's name.
    pub(crate) name: String,
    pub(crate) folder: PathBuf,
    pub(crate) about: Description,
}

/// `board.toml`. An unknown key is an error: it would be a typo that nobody sees.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Description {
    /// One line for `cargo lab list`.
    pub(crate) about: String,
    pub(crate) architecture: Cpu,
    /// As QEMU writes it: `512M`.
    pub(crate) memory: String,
    /// As the kernel writes it: `ttyAMA0`, `ttyPS0,115200`. QEMU's next serial port is this one.
    pub(crate) console: String,
    /// More for the kernel's command line.
    #[serde(default)]
    pub(crate) command_line: String,
    /// Seconds until a run is ended.
    #[serde(default = "time_limit_s")]
    pub(crate) time_limit_s: u64,
    /// Run the tests of the kernel module once more as a 32-bit program: on a 64-bit kernel that can.
    #[serde(default)]
    pub(crate) also_32_bit: bool,
    /// For `cargo lab list`: what there is to be tested.
    pub(crate) engines: Vec<String>,
    pub(crate) memories: Vec<String>,
    pub(crate) kernel: Kernel,
    pub(crate) qemu: Qemu,
    /// What to load a module with, by the module's name.
    #[serde(default)]
    pub(crate) module_parameters: BTreeMap<String, String>,
}

/// Where a board's kernel comes from.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Kernel {
    /// Debian's `linux-source-VERSION`, built here with the fragments in `cross/lab/kernel/` and the board's own `kernel.config`.
    pub(crate) source: Option<String>,
    /// The newest `linux-image-VERSION.*` of Debian, as it is.
    pub(crate) stock: Option<String>,
    /// Modules to load before the tests, with what they depend on.
    #[serde(default)]
    pub(crate) modules: Vec<String>,
    /// About how many lines a build prints, for the progress bar.
    pub(crate) steps: Option<u64>,
}

/// What QEMU is told beside the kernel, the initramfs, the memory and the console.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Qemu {
    pub(crate) machine: String,
    #[serde(default)]
    pub(crate) arguments: Vec<String>,
}

/// A kernel's origin, exactly one of two.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Origin<'a> {
    Source(&'a str),
    Stock(&'a str),
}

const fn time_limit_s() -> u64 {
    TIME_LIMIT_S
}

impl Board {
    /// Reads one board's folder.
    fn read(folder: PathBuf, name: String) -> Result<Self> {
        let file = folder.join("board.toml");
        let text = fs::read_to_string(&file).with_context(|| format!("board {name}: cannot read {}", file.display()))?;
        let about: Description = toml::from_str(&text).with_context(|| format!("board {name}: {}", file.display()))?;
        if about.kernel.source.is_some() == about.kernel.stock.is_some() {
            bail!("board {name}: {}: [kernel] wants either `source` or `stock`", file.display());
        }
        Ok(Self { name, folder, about })
    }

    /// All boards of a folder, by name.
    pub(crate) fn all(boards: &Path) -> Result<Vec<Self>> {
        let names = names(boards)?;
        names.into_iter().map(|name| Self::read(boards.join(&name), name)).collect()
    }

    /// The boards of these names; all of them where none is named. An unknown name lists those that exist.
    pub(crate) fn named(boards: &Path, wanted: &[String]) -> Result<Vec<Self>> {
        if wanted.is_empty() {
            return Self::all(boards);
        }
        let exist = names(boards)?;
        if let Some(unknown) = wanted.iter().find(|name| !exist.contains(name)) {
            bail!("there is no board {unknown}; the boards are: {}", exist.join(", "));
        }
        let mut once = wanted.to_vec();
        once.sort();
        once.dedup();
        once.into_iter().map(|name| Self::read(boards.join(&name), name)).collect()
    }

    pub(crate) fn cpu(&self) -> Cpu {
        self.about.architecture
    }

    pub(crate) fn origin(&self) -> Result<Origin<'_>> {
        match (&self.about.kernel.source, &self.about.kernel.stock) {
            (Some(version), None) => Ok(Origin::Source(version)),
            (None, Some(version)) => Ok(Origin::Stock(version)),
            _ => bail!("board {}: [kernel] wants either `source` or `stock`", self.name),
        }
    }

    pub(crate) fn time_limit(&self) -> Duration {
        Duration::from_secs(self.about.time_limit_s)
    }

    /// A file of the board's folder that need not be there.
    pub(crate) fn file(&self, name: &str) -> Option<PathBuf> {
        Some(self.folder.join(name)).filter(|path| path.is_file())
    }
}

/// The folders that have a `board.toml`.
fn names(boards: &Path) -> Result<Vec<String>> {
    let listed = || -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(boards)? {
            let entry = entry?;
            if entry.path().join("board.toml").is_file() {
                names.push(entry.file_name().to_string_lossy().into_owned());
            }
        }
        names.sort();
        Ok(names)
    };
    let names = listed().with_context(|| format!("cannot read the boards in {}", boards.display()))?;
    if names.is_empty() {
        bail!("there is no board in {}: a board is a folder with a board.toml", boards.display());
    }
    Ok(names)
}
