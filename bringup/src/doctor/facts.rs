//! The facts that several checks read.

use super::tree::{self, Node};
use crate::{bitstream::Family, fpga::family_of, machine::Machine};
use std::io::Read;

/// The most bytes of a kernel's configuration; Debian's has 300 KB.
const CONFIG_MAX_BYTES: u64 = 2 << 20;

/// A machine, and what is read of it once.
#[derive(Debug)]
pub(super) struct Facts<'a> {
    pub(super) machine: &'a Machine,
    pub(super) nodes: Vec<Node>,
    pub(super) command_line: String,
    /// Which of the SoCs with a fabric it is.
    pub(super) family: Option<Family>,
    config: Option<String>,
}

impl<'a> Facts<'a> {
    pub(super) fn of(machine: &'a Machine) -> Self {
        let command_line = machine.text("proc/cmdline").unwrap_or_default();
        Self { machine, nodes: tree::nodes(machine), command_line, family: family_of(machine), config: config(machine) }
    }

    /// It has a device tree: a SoC, and no PC.
    pub(super) fn has_tree(&self) -> bool {
        self.nodes.len() > 1
    }

    /// The nodes with this `compatible`.
    pub(super) fn nodes_of(&self, compatible: &str) -> Vec<&Node> {
        self.nodes.iter().filter(|node| node.is(compatible)).collect()
    }

    /// Nodes of the fabric that a program drives.
    pub(super) fn fabric(&self) -> Vec<&Node> {
        let Some(family) = self.family else { return Vec::new() };
        let driven = |node: &&Node| node.is("generic-uio") || node.is("contigo,engine");
        self.nodes.iter().filter(|node| node.is_fabric(family)).filter(driven).collect()
    }

    /// Somebody prepared this machine for programs that drive devices: by a node in its tree (of
    /// uio, the module contigo or u-dma-buf), by a block or by a guard.
    pub(super) fn prepared(&self) -> bool {
        let ours = |one: &String| one == "generic-uio" || one == "contigo,engine" || one.starts_with("ikwzm,");
        self.nodes.iter().any(|node| node.compatible.iter().any(ours))
            || !self.blocks().is_empty()
            || !self.machine.list("sys/class/contigo").is_empty()
    }

    /// The devices of a class, and the path of each one's node in the tree, where sysfs says it.
    pub(super) fn class(&self, class: &str) -> Vec<(String, Option<String>)> {
        let node = |name: &String| self.of_node(&format!("{class}/{name}/device"));
        self.machine.list(class).into_iter().map(|name| (node(&name), name)).map(|(node, name)| (name, node)).collect()
    }

    /// The path of the node that a device's folder in sysfs leads to.
    pub(super) fn of_node(&self, device: &str) -> Option<String> {
        let link = self.machine.link(format!("{device}/of_node"))?;
        Some(link.to_str()?.split_once("/devicetree/base/")?.1.to_owned())
    }

    /// The number behind a word of `/proc/self/status`, in this base.
    pub(super) fn status(&self, word: &str, radix: u32) -> Option<u64> {
        let text = self.machine.text("proc/self/status")?;
        let rest = text.lines().find_map(|line| line.strip_prefix(word)?.strip_prefix(':'))?;
        u64::from_str_radix(rest.split_ascii_whitespace().next()?, radix).ok()
    }

    /// The value of a parameter of the kernel's command line: the last one counts.
    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        self.command_line.split_ascii_whitespace().rev().find_map(|word| {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            (key.replace('-', "_") == name).then_some(value)
        })
    }

    /// Whether the kernel has an option, built in or as a module; `None`: its configuration is
    /// nowhere.
    pub(super) fn config(&self, option: &str) -> Option<bool> {
        let line = format!("CONFIG_{option}=");
        let config = self.config.as_ref()?;
        Some(config.lines().any(|text| text.strip_prefix(&line).is_some_and(|value| matches!(value, "y" | "m"))))
    }

    /// A number in a file, decimal or with 0x.
    pub(super) fn number(&self, path: &str) -> Option<u64> {
        let text = self.machine.text(path)?;
        text.strip_prefix("0x").map_or_else(|| text.parse().ok(), |hex| u64::from_str_radix(hex, 16).ok())
    }

    /// The same of `/proc/meminfo`, in its own unit.
    pub(super) fn meminfo(&self, name: &str) -> Option<u64> {
        let text = self.machine.text("proc/meminfo")?;
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?.split_ascii_whitespace().next()?.parse().ok()
    }

    /// The kernel's version: 6.12.
    pub(super) fn kernel(&self) -> Option<(u32, u32)> {
        let text = self.machine.kernel()?;
        let mut numbers = text.split(|letter: char| !letter.is_ascii_digit()).map(str::parse);
        Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
    }

    /// Blocks of u-dma-buf: the folder of each in sysfs. Older versions have another class.
    pub(super) fn blocks(&self) -> Vec<String> {
        let mut found = Vec::new();
        for class in ["sys/class/u-dma-buf", "sys/class/udmabuf"] {
            found.extend(self.machine.list(class).into_iter().map(|name| format!("{class}/{name}")));
        }
        found
    }

    /// Whether a device is in an IOMMU group.
    pub(super) fn grouped(&self, device: &str) -> bool {
        self.iommu_groups().iter().any(|group| self.machine.has(format!("sys/kernel/iommu_groups/{group}/devices/{device}")))
    }

    /// IOMMU groups.
    pub(super) fn iommu_groups(&self) -> Vec<String> {
        self.machine.list("sys/kernel/iommu_groups")
    }
}

/// The last part of a path.
pub(super) fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn config(machine: &Machine) -> Option<String> {
    if let Some(packed) = machine.bytes("proc/config.gz") {
        let mut text = Vec::new();
        let unpacked = flate2::read::GzDecoder::new(packed.as_slice()).take(CONFIG_MAX_BYTES).read_to_end(&mut text);
        if unpacked.is_ok() {
            return Some(String::from_utf8_lossy(&text).into_owned());
        }
    }
    machine.text(format!("boot/config-{}", machine.kernel().filter(|kernel| !kernel.contains('/'))?))
}
