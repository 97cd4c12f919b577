//! The devices that the kernel gives to user space (UIO), and which of them are DMA engines of this board; read from files
//! under `/sys` and `/proc`, none is opened.

use contigo_boards::{DmaEngine, DmaKind, Soc, by_compatible};
use std::{fs, path::Path};

/// One UIO device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UioDevice {
    /// `/dev/uio<index>`.
    pub index: u32,
    /// What its driver calls it.
    pub name: String,
    /// The device tree's node, with its unit address, where it has one.
    pub node: Option<String>,
    /// The physical address of its first register window.
    pub registers: Option<u64>,
}

/// A DMA engine, and the UIO device that is it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundEngine {
    /// Which driver it takes.
    pub kind: DmaKind,
    /// The device.
    pub device: UioDevice,
    /// What the board says of it; `None` where the board is not known.
    pub engine: Option<DmaEngine>,
}

impl UioDevice {
    /// All of them under `root` (`/`), by number.
    #[must_use]
    pub fn all(root: &Path) -> Vec<Self> {
        let folders = fs::read_dir(root.join("sys/class/uio")).into_iter().flatten().flatten();
        let mut devices: Vec<_> = folders
            .filter_map(|folder| {
                let text = |file: &str| Some(fs::read_to_string(folder.path().join(file)).ok()?.trim_end().to_owned());
                let hex = |text: String| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok();
                Some(Self {
                    index: folder.file_name().to_str()?.strip_prefix("uio")?.parse().ok()?,
                    name: text("name")?,
                    node: fs::read_link(folder.path().join("device/of_node"))
                        .ok()
                        .and_then(|node| Some(node.file_name()?.to_str()?.to_owned())),
                    registers: text("maps/map0/addr").and_then(hex),
                })
            })
            .collect();
        devices.sort_by_key(|device| device.index);
        devices
    }

    /// What it is called on a command line: its node, or else its name.
    #[must_use]
    pub fn label(&self) -> &str {
        self.node.as_deref().unwrap_or(&self.name)
    }

    /// Is it meant by `name`: its node with or without unit address, or its driver's name for it?
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        let node = self.node.as_deref();
        node == Some(name) || self.name == name || node.and_then(|node| node.split_once('@')).is_some_and(|(base, _)| base == name)
    }

    /// How many interrupts the kernel has passed on since the device was made; `None` where it does not say.
    #[must_use]
    pub fn interrupts(&self) -> Option<u64> {
        fs::read_to_string(format!("/sys/class/uio/uio{}/event", self.index)).ok()?.trim_end().parse().ok()
    }
}

impl FoundEngine {
    /// The UIO devices under `root` (`/`) that are DMA engines of its board, in the board's order: known by the address of their
    /// registers, whatever their nodes are called.
    #[must_use]
    pub fn all(root: &Path) -> Vec<Self> {
        let devices = UioDevice::all(root);
        let engines = soc(root).map_or(&[] as &[DmaEngine], |soc| soc.engines).iter();
        let found = engines.filter_map(|engine| {
            let device = devices.iter().find(|device| device.registers == Some(engine.registers))?;
            Some(Self { kind: engine.kind, device: device.clone(), engine: Some(*engine) })
        });
        found.collect()
    }

    /// Its name on a command line: `pl330@dma-controller@f8003000`.
    #[must_use]
    pub fn label(&self) -> String {
        [self.kind.name(), self.device.label()].join("@")
    }
}

/// The system on chip, by the device tree under `root` (`/`).
#[must_use]
pub fn soc(root: &Path) -> Option<&'static Soc> {
    by_compatible(&fs::read(root.join("proc/device-tree/compatible")).ok()?)
}
