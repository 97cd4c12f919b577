//! The nodes of a machine's device tree: for clocks and ports, which ask what its cores want.
//!
//! # References
//! Devicetree Specification 0.4, 2.3 (`status`, `phandle`, `ranges`, `dma-coherent`).

use crate::machine::Machine;

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

    /// The address in its name as the processor has it: through `ranges` of the buses above. A bus
    /// without them hands on its own, as one with empty ones does.
    pub(crate) fn address(&self, machine: &Machine) -> Option<u64> {
        let (mut addr, mut folder) = (self.unit()?, self.folder.as_str());
        for _ in 0..DEPTH_MAX {
            let Some((bus, _)) = folder.rsplit_once('/').filter(|(bus, _)| bus.len() > BASE.len()) else { break };
            let above = bus.rsplit_once('/').map_or(BASE, |(above, _)| above);
            let ranges = cells(machine, bus, "ranges");
            if !ranges.is_empty() {
                let count = |folder, property, default| {
                    let cells = cells(machine, folder, property).first().copied().unwrap_or(default);
                    usize::try_from(cells).ok().filter(|cells| (1..=2).contains(cells))
                };
                let (child, parent) = (count(bus, "#address-cells", 2)?, count(above, "#address-cells", 2)?);
                let size = count(bus, "#size-cells", 1)?;
                addr = ranges.chunks_exact(child + parent + size).find_map(|range| {
                    let (first, rest) = range.split_at_checked(child)?;
                    let (to, size) = rest.split_at_checked(parent)?;
                    let offset = addr.checked_sub(joined(first)).filter(|offset| *offset < joined(size))?;
                    joined(to).checked_add(offset)
                })?;
            }
            folder = bus;
        }
        Some(addr)
    }

    /// Whether the kernel takes it for coherent: the nearest node of it and those above says it
    /// (Linux, `drivers/of/address.c`, `of_dma_is_coherent`).
    pub(crate) fn is_coherent(&self, machine: &Machine) -> bool {
        let mut folder = self.folder.as_str();
        for _ in 0..=DEPTH_MAX {
            let has = |property| machine.has(format!("{folder}/{property}"));
            if has("dma-coherent") {
                return true;
            }
            let Some((above, _)) = folder.rsplit_once('/').filter(|_| folder != BASE && !has("dma-noncoherent")) else { break };
            folder = above;
        }
        false
    }

    pub(crate) fn is(&self, compatible: &str) -> bool {
        self.compatible.iter().any(|one| one == compatible)
    }

    /// A property's cells; none where it is not there.
    pub(crate) fn cells(&self, machine: &Machine, property: &str) -> Vec<u32> {
        cells(machine, &self.folder, property)
    }
}

/// A number of one cell or two.
fn joined(cells: &[u32]) -> u64 {
    cells.iter().fold(0, |number, cell| (number << 32) | u64::from(*cell))
}

/// The cells of a property of the node in `folder`, which may be a link to it.
pub(crate) fn cells(machine: &Machine, folder: &str, property: &str) -> Vec<u32> {
    let bytes = machine.bytes(format!("{folder}/{property}")).unwrap_or_default();
    bytes.chunks_exact(4).filter_map(|cell| cell.try_into().ok().map(u32::from_be_bytes)).collect()
}
