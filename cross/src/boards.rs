//! The folders of `boards/`, one a board. `boards/README.md` is the page about them.
//!
//! Programs see the tables that a test makes of these folders (`tests/boards.rs`). An error here is
//! a sentence for the person who adds a board.

use crate::failure::Result;
use crate::targets::{self, Target};
use anyhow::{Context, bail};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The file that makes a folder a board.
const DESCRIPTION: &str = "board.toml";

/// One board, as its folder describes it. An unknown key is an error: a typo would
/// otherwise go unnoticed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Board {
    /// The folder's name.
    #[serde(skip)]
    pub name: String,
    /// The folder.
    #[serde(skip)]
    pub folder: PathBuf,
    /// The maker, what they call it, and how much memory it has.
    pub about: String,
    /// The file of `boards/soc/` with its ports. Absent: a machine for the lab alone, which no
    /// program knows.
    pub soc: Option<String>,
    /// The system on chip and its part number.
    #[serde(default)]
    pub chip: String,
    /// How much memory, and where.
    pub memory: Option<String>,
    /// The constants of the SoC's file that an accelerator on this board can be wired to; none
    /// where none is known.
    #[serde(default)]
    pub ports: Vec<String>,
    /// The manual that has the ports.
    #[serde(default)]
    pub manual: String,
    /// The entries of a device tree's root `compatible` that are this board's alone.
    #[serde(default)]
    pub compatible: Vec<String>,
    /// Its ways to memory that are no ports, with their sources.
    #[serde(default)]
    pub facts: String,
    /// The rate of the crystal that the processor makes its clocks from, in Hz.
    pub crystal_hz: Option<u64>,
    /// Rust's name of the processor. Absent: the board has no cross build.
    pub target: Option<String>,
    /// Names that it shares with boards of the same processor, for `cargo cross build --board`.
    #[serde(default)]
    pub families: Vec<String>,
    /// The families of images that it boots.
    #[serde(default)]
    pub images: Vec<String>,
    /// Its overlays of the device tree.
    #[serde(default, rename = "overlay")]
    pub overlays: Vec<Overlay>,
}

/// An overlay of a board, and what is checked of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Overlay {
    /// The file in the board's folder.
    #[serde(default = "overlay")]
    pub file: PathBuf,
    /// The trees on which it is tried: the kernel's by name, of this board or of one with the same
    /// SoC, with the kernel's own overlays after a `+`. `lab/board` is the board's own.
    pub trees: Vec<String>,
    /// The content of each tree then: node, property, value as dtc prints it. A `*` is a name that
    /// the kernel has changed over time.
    pub has: Vec<[String; 3]>,
    /// Of its engines, those whose master does not snoop: neither they nor what is above them may
    /// say that it does.
    #[serde(default)]
    pub not_coherent: Vec<String>,
}

fn overlay() -> PathBuf {
    "overlay.dtso".into()
}

impl Board {
    /// Every board of a folder, by name.
    pub fn all(boards: &Path) -> Result<Vec<Self>> {
        let mut found = Vec::new();
        for entry in
            fs::read_dir(boards).with_context(|| format!("cannot read {}", boards.display()))?
        {
            let folder = entry?.path();
            if folder.join(DESCRIPTION).is_file() {
                found.push(Self::read(folder)?);
            }
        }
        found.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(found)
    }

    /// One board, if its folder is right.
    fn read(folder: PathBuf) -> Result<Self> {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let file = folder.join(DESCRIPTION);
        let read = || -> Result<Self> {
            let board: Self = toml::from_str(&fs::read_to_string(&file)?)?;
            let board = Self { name: name.clone(), folder: folder.clone(), ..board };
            board.check()?;
            Ok(board)
        };
        read().with_context(|| format!("board {name}: {}", file.display()))
    }

    /// Refuses what would make a table that does not compile, which says nothing of the folder.
    fn check(&self) -> Result<()> {
        if !self.name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-')) {
            bail!("the folder's name has only lower-case letters, digits and dashes");
        }
        if !self.folder.join("README.md").is_file() {
            bail!("there is no README.md beside it, which says where its facts come from");
        }
        if let Some(overlay) =
            self.overlays.iter().find(|overlay| !self.folder.join(&overlay.file).is_file())
        {
            bail!("[[overlay]]: there is no {} beside it", overlay.file.display());
        }
        if self.overlays.iter().any(|overlay| overlay.trees.is_empty() || overlay.has.is_empty()) {
            bail!(
                "[[overlay]] wants `trees` that it is tried on, and something that they have then"
            );
        }
        self.target()?;
        let Some(soc) = &self.soc else {
            if !self.ports.is_empty() || self.target.is_some() {
                bail!("`ports` and `target` want a `soc`");
            }
            return Ok(());
        };
        if self.chip.is_empty() || self.manual.is_empty() {
            bail!("`soc` wants `chip` and `manual`");
        }
        let file = self.folder.join("../soc").join(format!("{soc}.rs"));
        let text = fs::read_to_string(&file).with_context(|| {
            format!("`soc` is a file of boards/soc/: cannot read {}", file.display())
        })?;
        let known: Vec<_> = text
            .lines()
            .filter_map(|line| Some(line.strip_prefix("pub const ")?.split_once(": Port")?.0))
            .collect();
        match self.ports.iter().find(|port| !known.contains(&port.as_str())) {
            Some(port) => bail!("soc/{soc}.rs has no port {port}; it has {}", known.join(", ")),
            None => Ok(()),
        }
    }

    /// The processor that is built for, where there is one.
    pub fn target(&self) -> Result<Option<&'static Target>> {
        self.target.as_deref().map(Target::named).transpose()
    }

    /// Every board and every family, by name, and its processor; a family has one.
    pub fn targets(boards: &[Self]) -> Result<BTreeMap<&str, &'static Target>> {
        let mut table = BTreeMap::new();
        for board in boards {
            let Some(target) = board.target()? else { continue };
            for name in board.families.iter().chain([&board.name]) {
                if table.insert(name.as_str(), target).is_some_and(|other| other != target) {
                    bail!(
                        "board {}: {name} has another processor in another board's `families`",
                        board.name
                    );
                }
            }
        }
        Ok(table)
    }
}

impl Target {
    /// Its constant in [`targets`].
    #[must_use]
    pub fn constant(&self) -> &'static str {
        if *self == targets::ARMV7 { "ARMV7" } else { "AARCH64" }
    }
}
