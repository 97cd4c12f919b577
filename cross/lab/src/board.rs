//! A board of the lab: one file `boards/*/lab/NAME.toml`, with `board.dts`, `setup.sh` and
//! `kernel.config` beside it where it needs them. Two files in one folder are two variants, which
//! share what lies there.

use crate::cpu::Cpu;
use anyhow::{Context, bail};
use contigo_cross::failure::Result;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

/// How long a run may take where the board's file says nothing: ten times what the longest takes on
/// two idle cores.
const TIME_LIMIT_S: u64 = 600;

/// One board, as its file describes it.
#[derive(Debug)]
pub(crate) struct Board {
    /// The file's name without its ending.
    pub(crate) name: String,
    /// The folder that the file is in.
    pub(crate) folder: PathBuf,
    pub(crate) about: Description,
}

/// The board's file. An unknown key is an error: a typo would otherwise go unnoticed.
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
    /// It boots an SD-card image of `cargo cross image`, and this is the image's root. The board
    /// tests do not run on it.
    #[serde(default)]
    pub(crate) image: Option<String>,
    /// Seconds until a run is ended.
    #[serde(default = "time_limit_s")]
    pub(crate) time_limit_s: u64,
    /// The script that root runs in the guest before the tests: a file beside this one.
    #[serde(default = "setup")]
    pub(crate) setup: String,
    /// The device tree: a file beside this one. Where it is absent, QEMU makes the tree.
    #[serde(default = "tree")]
    pub(crate) tree: String,
    /// A second script, after which the tests run once more: a file beside this one.
    #[serde(default)]
    pub(crate) then: Option<String>,
    /// Run only the tests whose name contains this, where the command line does not say which.
    #[serde(default)]
    pub(crate) filter: Option<String>,
    /// Run the tests of the kernel module once more as a 32-bit program: on a 64-bit kernel that
    /// can.
    #[serde(default)]
    pub(crate) also_32_bit: bool,
    /// Rows that a run of everything must have. A condition of the guest's that no longer holds
    /// would lose one without an error.
    #[serde(default)]
    pub(crate) checks: Vec<String>,
    /// For `cargo lab list`: what there is to be tested.
    pub(crate) engines: Vec<String>,
    pub(crate) memories: Vec<String>,
    pub(crate) kernel: Kernel,
    pub(crate) qemu: Qemu,
    /// The parameters of each module, by the module's name.
    #[serde(default)]
    pub(crate) module_parameters: BTreeMap<String, String>,
}

/// Where a board's kernel comes from.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Kernel {
    /// Debian's `linux-source-VERSION`, built here with the fragments in `cross/lab/kernel/` and
    /// the board's own `kernel.config`.
    pub(crate) source: Option<String>,
    /// The newest `linux-image-VERSION.*` of Debian, as it is.
    pub(crate) stock: Option<String>,
    /// More options of a kernel that is built here, without `CONFIG_`: this variant's alone. One
    /// that can only be a module is `NAME=m`.
    #[serde(default)]
    pub(crate) options: Vec<String>,
    /// With `stock`: the project's module and the lab's are built by Debian's headers of that
    /// kernel, and loaded.
    #[serde(default)]
    pub(crate) headers: bool,
    /// Modules to load before the tests, with what they depend on.
    #[serde(default)]
    pub(crate) modules: Vec<String>,
    /// About how many lines a build prints, for the progress bar.
    pub(crate) steps: Option<u64>,
}

/// QEMU's arguments beside the kernel, the initramfs, the memory and the console.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Qemu {
    pub(crate) machine: String,
    #[serde(default)]
    pub(crate) arguments: Vec<String>,
    /// A PCI function more: this model of `contigo-pci`'s.
    #[serde(default)]
    pub(crate) model: Option<String>,
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

const SETUP: &str = "setup.sh";
const TREE: &str = "board.dts";

fn setup() -> String {
    SETUP.to_owned()
}

fn tree() -> String {
    TREE.to_owned()
}

impl Board {
    fn read(name: String, file: &Path) -> Result<Self> {
        let text = fs::read_to_string(file)
            .with_context(|| format!("board {name}: cannot read {}", file.display()))?;
        let about: Description =
            toml::from_str(&text).with_context(|| format!("board {name}: {}", file.display()))?;
        let folder = file.parent().unwrap_or(file).to_owned();
        // Those that the file names must be there; the usual ones may be absent.
        let is_missing = |file: &&String| {
            ![SETUP, TREE].contains(&file.as_str()) && !folder.join(file).is_file()
        };
        let files = || [&about.setup, &about.tree].into_iter().chain(&about.then);
        if let Some(script) = files().find(is_missing) {
            bail!("board {name}: {}: there is no {script} beside it", file.display());
        }
        let board = Self { name, folder, about };
        board.origin()?;
        Ok(board)
    }

    pub(crate) fn all(boards: &Path) -> Result<Vec<Self>> {
        files(boards)?.into_iter().map(|(name, file)| Self::read(name, &file)).collect()
    }

    /// The boards of these names; where none is named, all that run the board tests. An unknown
    /// name lists those that exist.
    pub(crate) fn named(boards: &Path, wanted: &[String]) -> Result<Vec<Self>> {
        let files = files(boards)?;
        if let Some(unknown) = wanted.iter().find(|name| !files.contains_key(*name)) {
            bail!(
                "there is no board {unknown}; the boards are: {}",
                files.into_keys().collect::<Vec<_>>().join(", ")
            );
        }
        let named =
            files.into_iter().filter(|(name, _)| wanted.is_empty() || wanted.contains(name));
        let read = named.map(|(name, file)| Self::read(name, &file));
        let mut boards = read.collect::<Result<Vec<_>>>()?;
        boards.retain(|board| !wanted.is_empty() || board.about.image.is_none());
        Ok(boards)
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

    pub(crate) fn file(&self, name: &str) -> Option<PathBuf> {
        Some(self.folder.join(name)).filter(|path| path.is_file())
    }
}

/// Every `*/lab/NAME.toml`, by name.
fn files(boards: &Path) -> Result<BTreeMap<String, PathBuf>> {
    let listed = || -> io::Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        for board in fs::read_dir(boards)? {
            let lab = board?.path().join("lab");
            if lab.is_dir() {
                for entry in fs::read_dir(lab)? {
                    files.push(entry?.path());
                }
            }
        }
        Ok(files)
    };
    let listed =
        listed().with_context(|| format!("cannot read the boards in {}", boards.display()))?;
    let mut files = BTreeMap::new();
    for file in listed.into_iter().filter(|file| file.extension().is_some_and(|end| end == "toml"))
    {
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if let Some(other) = files.insert(name.clone(), file.clone()) {
            bail!("there are two boards {name}: {} and {}", other.display(), file.display());
        }
    }
    if files.is_empty() {
        let wanted = "a board is a file FOLDER/lab/NAME.toml there";
        bail!("there is no board in {}: {wanted}", boards.display());
    }
    Ok(files)
}
