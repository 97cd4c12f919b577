//! The facts that several checks use.

use crate::bitstream::Family;
use crate::known::family_of;
use crate::machine::Machine;
use crate::ports::Fact;
use crate::tree::{self, Node};
use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::fs::Metadata;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The longest kernel configuration, in bytes. Debian's has 300 KB.
const CONFIG_MAX_BYTES: u64 = 2 << 20;

const PLATFORM: &str = "sys/bus/platform/devices";

#[derive(Debug)]
pub(super) struct Facts<'a> {
    pub(super) machine: &'a Machine,
    pub(super) nodes: Vec<Node>,
    pub(super) command_line: String,
    /// The family, if it is a SoC with a fabric.
    pub(super) family: Option<Family>,
    /// The registers around the ports, if the caller has read them.
    pub(super) registers: Option<Result<Vec<Fact>, String>>,
    config: Option<String>,
    /// The platform's devices: each one's name, the path of its node, and its driver.
    platform: Vec<(String, Option<String>, Option<String>)>,
    links: Links,
}

/// The targets of references in a tree. A property may have thousands of references, and so may
/// each of thousands of nodes, so each file behind them is read once.
#[derive(Debug, Default)]
struct Links {
    /// By phandle, the index of the first node that has it.
    phandles: OnceCell<BTreeMap<u32, usize>>,
    /// By phandle, the node's `#interrupt-cells`.
    interrupt_cells: RefCell<BTreeMap<u32, Option<u32>>>,
    /// The index of the first node with `linux,cma-default`.
    cma: OnceCell<Option<usize>>,
}

impl<'a> Facts<'a> {
    pub(super) fn of(machine: &'a Machine, registers: Option<Result<Vec<Fact>, String>>) -> Self {
        let command_line = machine.text("proc/cmdline").unwrap_or_default();
        let nodes = tree::nodes(machine);
        let platform = machine.list(PLATFORM).into_iter().map(|name| {
            let of_node = machine.link(format!("{PLATFORM}/{name}/of_node"));
            let driver = machine.link_name(format!("{PLATFORM}/{name}/driver"));
            (name, of_node.and_then(|link| node_of(&link)), driver)
        });
        let platform = platform.collect();
        Self {
            machine,
            nodes,
            command_line,
            family: family_of(machine),
            registers,
            config: config(machine),
            platform,
            links: Links::default(),
        }
    }

    /// The node that has a phandle.
    pub(super) fn node_with(&self, phandle: u32) -> Option<&Node> {
        let places = || {
            let mut places = BTreeMap::new();
            for (place, node) in self.nodes.iter().enumerate() {
                if let Some(phandle) = node.cell(self.machine, "phandle") {
                    places.entry(phandle).or_insert(place);
                }
            }
            places
        };
        self.nodes.get(*self.links.phandles.get_or_init(places).get(&phandle)?)
    }

    /// The number of cells of an interrupt of this controller.
    pub(super) fn interrupt_cells(&self, phandle: u32) -> Option<u32> {
        let ask = || self.node_with(phandle)?.cell(self.machine, "#interrupt-cells");
        *self.links.interrupt_cells.borrow_mut().entry(phandle).or_insert_with(ask)
    }

    /// The kernel's default pool.
    pub(super) fn cma(&self) -> Option<&Node> {
        let first = || {
            self.nodes
                .iter()
                .position(|node| node.property(self.machine, "linux,cma-default").is_some())
        };
        self.nodes.get((*self.links.cma.get_or_init(first))?)
    }

    /// The driver of a node's device: found by the node if sysfs links it, else by name.
    pub(super) fn driver(&self, node: &Node) -> Option<&str> {
        let device = node.device();
        let is = |(name, of, _): &&(String, Option<String>, Option<String>)| {
            of.as_ref().map_or_else(|| *name == device, |path| *path == node.path)
        };
        self.platform.iter().find(is)?.2.as_deref()
    }

    /// Describes a driver other than `own` that has the node's device. That counts as the
    /// administrator's choice.
    pub(super) fn given_away(&self, node: &Node, own: &str) -> Option<String> {
        let driver = self.driver(node).filter(|driver| *driver != own)?;
        Some(format!("{} has {driver}", node.full_name()))
    }

    /// Whether the machine has a device tree: then it is a SoC, and no PC.
    pub(super) fn has_tree(&self) -> bool {
        self.nodes.len() > 1
    }

    pub(super) fn nodes_of(&self, compatible: &str) -> Vec<&Node> {
        self.nodes.iter().filter(|node| node.is(compatible)).collect()
    }

    /// Nodes of the fabric that a program drives.
    pub(super) fn fabric(&self) -> Vec<&Node> {
        let Some(family) = self.family else { return Vec::new() };
        let driven = |node: &&Node| node.is("generic-uio") || node.is("contigo,engine");
        self.nodes.iter().filter(|node| node.is_fabric(family)).filter(driven).collect()
    }

    /// Whether this machine is prepared for programs that drive devices: its tree has a node for
    /// uio, the module contigo or u-dma-buf, or it has a block or a contigo device.
    pub(super) fn prepared(&self) -> bool {
        let ours = |one: &String| {
            one == "generic-uio" || one == "contigo,engine" || one.starts_with("ikwzm,")
        };
        self.nodes.iter().any(|node| node.compatible.iter().any(ours))
            || !self.machine.blocks().is_empty()
            || !self.machine.list("sys/class/contigo").is_empty()
    }

    /// The devices of a class, each with the path of its node in the tree, if sysfs has it.
    pub(super) fn class(&self, class: &str) -> Vec<(String, Option<String>)> {
        let found = |name: String| {
            let node = self.of_node(&format!("{class}/{name}/device"));
            (name, node)
        };
        self.machine.list(class).into_iter().map(found).collect()
    }

    /// The path of the node to which a device's folder in sysfs links.
    pub(super) fn of_node(&self, device: &str) -> Option<String> {
        node_of(&self.machine.link(format!("{device}/of_node"))?)
    }

    /// The number behind a key of `/proc/self/status`, in this base.
    pub(super) fn status(&self, word: &str, radix: u32) -> Option<u64> {
        let text = self.machine.text("proc/self/status")?;
        let rest = text.lines().find_map(|line| line.strip_prefix(word)?.strip_prefix(':'))?;
        u64::from_str_radix(rest.split_ascii_whitespace().next()?, radix).ok()
    }

    /// Whether this process may read and write a node: as root, as its owner, by a mode for all
    /// users, or by a group. If the machine's files have no groups, it may.
    pub(super) fn may_open(&self, data: &Metadata) -> bool {
        let (others, group) = (data.mode() & 0o006 == 0o006, data.mode() & 0o060 == 0o060);
        let status = self.machine.text("proc/self/status").unwrap_or_default();
        let Some(groups) = status.lines().find_map(|line| line.strip_prefix("Groups:")) else {
            return true;
        };
        let own = self.status("Gid", 10) == Some(data.gid().into())
            || groups.split_ascii_whitespace().any(|id| id.parse() == Ok(data.gid()));
        let user = self.status("Uid", 10);
        let owner = data.mode() & 0o600 == 0o600 && user == Some(data.uid().into());
        user == Some(0) || owner || others || group && own
    }

    /// The value of a parameter on the kernel's command line: the last one counts.
    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        self.command_line.split_ascii_whitespace().rev().find_map(|word| {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            (key.replace('-', "_") == name).then_some(value)
        })
    }

    /// Whether the kernel has an option, built in or as a module; `None`: its configuration was not
    /// found.
    pub(super) fn config(&self, option: &str) -> Option<bool> {
        let line = format!("CONFIG_{option}=");
        let config = self.config.as_ref()?;
        Some(
            config.lines().any(|text| {
                text.strip_prefix(&line).is_some_and(|value| matches!(value, "y" | "m"))
            }),
        )
    }

    /// A number in a file, decimal or with 0x.
    pub(super) fn number(&self, path: &str) -> Option<u64> {
        let text = self.machine.text(path)?;
        text.strip_prefix("0x")
            .map_or_else(|| text.parse().ok(), |hex| u64::from_str_radix(hex, 16).ok())
    }

    /// A number of `/proc/meminfo`, in its own unit.
    pub(super) fn meminfo(&self, name: &str) -> Option<u64> {
        let text = self.machine.text("proc/meminfo")?;
        text.lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?
            .split_ascii_whitespace()
            .next()?
            .parse()
            .ok()
    }

    /// The kernel's version: 6.12.
    pub(super) fn kernel(&self) -> Option<(u32, u32)> {
        let text = self.machine.kernel()?;
        let mut numbers = text.split(|letter: char| !letter.is_ascii_digit()).map(str::parse);
        Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
    }

    pub(super) fn grouped(&self, device: &str) -> bool {
        self.iommu_groups().iter().any(|group| {
            self.machine.has(format!("sys/kernel/iommu_groups/{group}/devices/{device}"))
        })
    }

    pub(super) fn iommu_groups(&self) -> Vec<String> {
        self.machine.list("sys/kernel/iommu_groups")
    }
}

/// The path of the node to which a link in sysfs leads.
fn node_of(link: &Path) -> Option<String> {
    Some(link.to_str()?.split_once("/devicetree/base/")?.1.to_owned())
}

pub(super) fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn config(machine: &Machine) -> Option<String> {
    if let Some(packed) = machine.bytes("proc/config.gz") {
        let mut text = Vec::new();
        let unpacked = flate2::read::GzDecoder::new(packed.as_slice())
            .take(CONFIG_MAX_BYTES)
            .read_to_end(&mut text);
        if unpacked.is_ok() {
            return Some(String::from_utf8_lossy(&text).into_owned());
        }
    }
    machine
        .text(format!("boot/config-{}", machine.kernel().filter(|kernel| !kernel.contains('/'))?))
}
