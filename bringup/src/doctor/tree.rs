//! The device tree that the kernel runs with, as far as the checks need it.

use crate::{bitstream::Family, machine::Machine};

const BASE: &str = "sys/firmware/devicetree/base";
/// The largest trees of the kernel's sources have about 3000 nodes.
const NODES_MAX: usize = 8192;
/// The deepest of them has nine levels.
const DEPTH_MAX: usize = 12;

/// One node that is not disabled.
#[derive(Clone, Debug)]
pub(super) struct Node {
    /// Below the tree's root: `amba/dmac@f8003000`.
    pub(super) path: String,
    pub(super) compatible: Vec<String>,
    /// It has `dma-coherent` itself.
    pub(super) coherent: bool,
}

impl Node {
    /// `dmac@f8003000`.
    pub(super) fn full_name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// Its folder in the machine.
    pub(super) fn folder(&self) -> String {
        format!("{BASE}/{}", self.path)
    }

    /// `dmac`.
    pub(super) fn name(&self) -> &str {
        self.full_name().split('@').next().unwrap_or_default()
    }

    /// The address in its name.
    pub(super) fn unit(&self) -> Option<u64> {
        let unit = self.full_name().split_once('@')?.1.split(',').next()?;
        // Some trees write it with 0x, against the specification.
        u64::from_str_radix(unit.trim_start_matches("0x"), 16).ok()
    }

    /// The name of its platform device, as the kernel makes it: `f8003000.dmac`.
    pub(super) fn device(&self) -> String {
        self.full_name().split_once('@').map_or_else(|| self.name().to_owned(), |(name, unit)| format!("{unit}.{name}"))
    }

    pub(super) fn is(&self, compatible: &str) -> bool {
        self.compatible.iter().any(|one| one == compatible)
    }

    pub(super) fn property(&self, machine: &Machine, name: &str) -> Option<Vec<u8>> {
        machine.bytes(format!("{BASE}/{}/{name}", self.path))
    }

    /// A register of the fabric, on a machine of this family.
    pub(super) fn is_fabric(&self, family: Family) -> bool {
        self.unit().is_some_and(|unit| family.windows().iter().any(|&(first, last)| (first..=last).contains(&unit)))
    }

    /// Its parent, and the parent's parent, up to the root.
    pub(super) fn ancestors<'a>(&self, nodes: &'a [Node]) -> impl Iterator<Item = &'a Node> {
        let paths: Vec<_> = self.path.match_indices('/').map(|(at, _)| self.path.get(..at).unwrap_or_default().to_owned()).collect();
        let root = (!self.path.is_empty()).then(String::new);
        paths.into_iter().rev().chain(root).filter_map(|path| nodes.iter().find(|node| node.path == path))
    }
}

/// All of the tree's nodes that are not disabled; none where the machine has no tree.
pub(super) fn nodes(machine: &Machine) -> Vec<Node> {
    let (mut found, mut todo) = (Vec::new(), vec![(String::new(), 0)]);
    let mut seen = 0;
    // Each turn takes one path, and no more than NODES_MAX are read.
    while let Some((path, depth)) = todo.pop() {
        seen += 1;
        let folder = format!("{BASE}/{path}");
        let text = |name: &str| machine.bytes(format!("{folder}/{name}"));
        let disabled = text("status").is_some_and(|status| !status.starts_with(b"ok"));
        if seen > NODES_MAX {
            break;
        }
        if disabled {
            continue;
        }
        if depth < DEPTH_MAX {
            let room = NODES_MAX.saturating_sub(todo.len());
            let below = |entry| if path.is_empty() { entry } else { format!("{path}/{entry}") };
            todo.extend(machine.folders(&folder).into_iter().take(room).map(|entry| (below(entry), depth + 1)));
        }
        let compatible = strings(&text("compatible").unwrap_or_default());
        found.push(Node { coherent: machine.has(format!("{folder}/dma-coherent")), path, compatible });
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    found
}

/// A property with several texts.
fn strings(bytes: &[u8]) -> Vec<String> {
    bytes.split(|&byte| byte == 0).filter(|text| !text.is_empty()).map(|text| String::from_utf8_lossy(text).trim().to_owned()).collect()
}

/// A property's cells.
pub(super) fn cells(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).filter_map(|cell| cell.try_into().ok().map(u32::from_be_bytes)).collect()
}
