//! The device tree that the kernel runs with: its nodes, as far as the checks, the clocks and the
//! ports ask for them.
//!
//! # References
//! Devicetree Specification 0.4, 2.3 (`status`, `phandle`, `ranges`, `dma-coherent`).

use crate::{bitstream::Family, machine::Machine};

const BASE: &str = "sys/firmware/devicetree/base";
/// The largest trees of the kernel's sources have about 3000 nodes.
const NODES_MAX: usize = 8192;
/// The deepest of them has nine levels.
const DEPTH_MAX: usize = 12;

/// A node that is not disabled, and no child of one that is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    /// Below the tree's root, which is empty: `amba/dmac@f8003000`.
    pub(crate) path: String,
    /// Its words of `compatible`.
    pub(crate) compatible: Vec<String>,
    /// It has `dma-coherent` itself.
    pub(crate) coherent: bool,
}

/// All nodes, by path; none where the machine has no tree.
pub(crate) fn nodes(machine: &Machine) -> Vec<Node> {
    let (mut found, mut todo) = (Vec::new(), vec![(String::new(), 0)]);
    // Each turn takes one node, and adds no more than there is room for.
    while let Some((path, depth)) = todo.pop() {
        let folder = folder(&path);
        if machine.text(format!("{folder}/status")).is_some_and(|status| !status.starts_with("ok")) {
            continue;
        }
        if depth < DEPTH_MAX {
            let room = NODES_MAX.saturating_sub(found.len() + todo.len());
            let below = |name| if path.is_empty() { name } else { format!("{path}/{name}") };
            todo.extend(machine.folders(&folder).into_iter().take(room).map(|name| (below(name), depth + 1)));
        }
        let text = machine.text(format!("{folder}/compatible")).unwrap_or_default();
        let compatible = text.split('\0').map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect();
        found.push(Node { coherent: machine.has(format!("{folder}/dma-coherent")), path, compatible });
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    found
}

impl Node {
    /// Its folder in the machine.
    pub(crate) fn folder(&self) -> String {
        folder(&self.path)
    }

    /// `dmac@f8003000`.
    pub(crate) fn full_name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// `dmac`.
    pub(crate) fn name(&self) -> &str {
        self.full_name().split('@').next().unwrap_or_default()
    }

    /// The address in its name. Some trees write it with 0x, against the specification.
    pub(crate) fn unit(&self) -> Option<u64> {
        let unit = self.full_name().split_once('@')?.1.split(',').next()?;
        u64::from_str_radix(unit.trim_start_matches("0x"), 16).ok()
    }

    /// The name of its platform device, as the kernel makes it: `f8003000.dmac`.
    pub(crate) fn device(&self) -> String {
        self.full_name().split_once('@').map_or_else(|| self.name().to_owned(), |(name, unit)| format!("{unit}.{name}"))
    }

    pub(crate) fn is(&self, compatible: &str) -> bool {
        self.compatible.iter().any(|one| one == compatible)
    }

    /// A property's bytes; `None` where it is not there.
    pub(crate) fn property(&self, machine: &Machine, name: &str) -> Option<Vec<u8>> {
        machine.bytes(format!("{}/{name}", self.folder()))
    }

    /// A property's cells; none where it is not there.
    pub(crate) fn cells(&self, machine: &Machine, name: &str) -> Vec<u32> {
        cells(&self.property(machine, name).unwrap_or_default())
    }

    /// A register of the fabric, on a machine of this family.
    pub(crate) fn is_fabric(&self, family: Family) -> bool {
        self.unit().is_some_and(|unit| family.windows().iter().any(|&(first, last)| (first..=last).contains(&unit)))
    }

    /// Its parent, and the parent's parent, up to the root. `nodes` are by path, as [`nodes`] has
    /// them: each is asked for all of its ancestors.
    pub(crate) fn ancestors<'a>(&self, nodes: &'a [Self]) -> impl Iterator<Item = &'a Self> {
        let paths: Vec<_> = above(&self.path).map(str::to_owned).collect();
        paths.into_iter().filter_map(|path| nodes.binary_search_by(|node| node.path.cmp(&path)).ok().and_then(|at| nodes.get(at)))
    }

    /// The address in its name as the processor has it: through `ranges` of the buses above. A bus
    /// without them hands on its own, as one with empty ones does.
    pub(crate) fn address(&self, machine: &Machine) -> Option<u64> {
        let of = |path: &str, name: &str| cells(&machine.bytes(format!("{}/{name}", folder(path))).unwrap_or_default());
        let count = |path: &str, name: &str, default| {
            let cells = of(path, name).first().copied().unwrap_or(default);
            usize::try_from(cells).ok().filter(|cells| (1..=2).contains(cells))
        };
        let mut addr = self.unit()?;
        for bus in above(&self.path).filter(|bus| !bus.is_empty()) {
            let ranges = of(bus, "ranges");
            if ranges.is_empty() {
                continue;
            }
            let parent = above(bus).next().unwrap_or_default();
            let (child, parent) = (count(bus, "#address-cells", 2)?, count(parent, "#address-cells", 2)?);
            let size = count(bus, "#size-cells", 1)?;
            addr = ranges.chunks_exact(child + parent + size).find_map(|range| {
                let (first, rest) = range.split_at_checked(child)?;
                let (to, size) = rest.split_at_checked(parent)?;
                let offset = addr.checked_sub(joined(first)).filter(|offset| *offset < joined(size))?;
                joined(to).checked_add(offset)
            })?;
        }
        Some(addr)
    }

    /// Whether the kernel takes it for coherent: the nearest node of it and those above says it
    /// (Linux, `drivers/of/address.c`, `of_dma_is_coherent`).
    pub(crate) fn is_coherent(&self, machine: &Machine) -> bool {
        let says = |path: &str| {
            let has = |name: &str| machine.has(format!("{}/{name}", folder(path)));
            if has("dma-coherent") { Some(true) } else { has("dma-noncoherent").then_some(false) }
        };
        says(&self.path).or_else(|| above(&self.path).find_map(says)).unwrap_or(false)
    }
}

fn folder(path: &str) -> String {
    if path.is_empty() { BASE.to_owned() } else { format!("{BASE}/{path}") }
}

/// The paths above, the nearest one first, and the root last.
fn above(path: &str) -> impl Iterator<Item = &str> {
    let paths = path.rmatch_indices('/').filter_map(|(at, _)| path.get(..at));
    paths.chain((!path.is_empty()).then_some(""))
}

/// A number of one cell or two.
fn joined(cells: &[u32]) -> u64 {
    cells.iter().fold(0, |number, cell| (number << 32) | u64::from(*cell))
}

/// A property's cells.
pub(crate) fn cells(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).filter_map(|cell| cell.try_into().ok().map(u32::from_be_bytes)).collect()
}
