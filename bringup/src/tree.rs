//! The nodes of a machine's device tree: for clocks and ports, which ask what its cores want.
//!
//! # References
//! Devicetree Specification 0.4, 2.3 (`status`, `phandle`, `dma-coherent`).

use crate::{bitstream::Family, machine::Machine};

const BASE: &str = "sys/firmware/devicetree/base";
/// The largest trees of the kernel's sources have about 3000 nodes.
const NODES_MAX: usize = 8192;
/// The deepest of them has nine levels.
const DEPTH_MAX: usize = 12;

/// A node that is not disabled, and no child of one that is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    /// Its folder in the machine.
    pub(crate) folder: String,
    /// Its words of `compatible`.
    pub(crate) compatible: Vec<String>,
}

/// All nodes; none where the machine has no tree.
pub(crate) fn nodes(machine: &Machine) -> Vec<Node> {
    let (mut found, mut todo) = (Vec::new(), vec![(BASE.to_owned(), 0)]);
    // Each turn takes one node, and adds no more than there is room for.
    while let Some((folder, depth)) = todo.pop() {
        if machine.text(format!("{folder}/status")).is_some_and(|status| !status.starts_with("ok")) {
            continue;
        }
        if depth < DEPTH_MAX {
            let room = NODES_MAX.saturating_sub(found.len() + todo.len());
            todo.extend(machine.folders(&folder).into_iter().take(room).map(|name| (format!("{folder}/{name}"), depth + 1)));
        }
        let text = machine.text(format!("{folder}/compatible")).unwrap_or_default();
        let compatible = text.split('\0').filter(|word| !word.is_empty()).map(str::to_owned).collect();
        found.push(Node { folder, compatible });
    }
    found
}

impl Node {
    /// The address in its name: `copy@40000000`.
    pub(crate) fn unit(&self) -> Option<u64> {
        let unit = self.folder.rsplit('/').next()?.split_once('@')?.1.split(',').next()?;
        u64::from_str_radix(unit.trim_start_matches("0x"), 16).ok()
    }

    /// Whether its registers are in the fabric of this family.
    pub(crate) fn is_fabric(&self, family: Family) -> bool {
        self.unit().is_some_and(|unit| family.windows().iter().any(|&(first, last)| (first..=last).contains(&unit)))
    }

    pub(crate) fn is(&self, compatible: &str) -> bool {
        self.compatible.iter().any(|one| one == compatible)
    }

    pub(crate) fn has(&self, machine: &Machine, property: &str) -> bool {
        machine.has(format!("{}/{property}", self.folder))
    }

    /// A property's cells; none where it is not there.
    pub(crate) fn cells(&self, machine: &Machine, property: &str) -> Vec<u32> {
        cells(machine, &self.folder, property)
    }
}

/// The cells of a property of the node in `folder`, which may be a link to it.
pub(crate) fn cells(machine: &Machine, folder: &str, property: &str) -> Vec<u32> {
    let bytes = machine.bytes(format!("{folder}/{property}")).unwrap_or_default();
    bytes.chunks_exact(4).filter_map(|cell| cell.try_into().ok().map(u32::from_be_bytes)).collect()
}
