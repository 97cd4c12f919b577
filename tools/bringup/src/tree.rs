//! The device tree of the running kernel: its nodes, as far as the checks, the clocks and the ports
//! need them.
//!
//! # References
//! Devicetree Specification 0.4, 2.3 (`status`, `phandle`, `ranges`, `dma-coherent`).

use crate::bitstream::Family;
use crate::machine::Machine;
use std::collections::HashMap;

const BASE: &str = "sys/firmware/devicetree/base";
/// More nodes than the largest trees in the kernel's sources have, about 3000.
const NODES_MAX: usize = 8192;
/// More levels than the deepest of them has, nine.
const DEPTH_MAX: usize = 12;

/// A node that is not disabled, and is not below a disabled one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    /// Its path below the root: `amba/dmac@f8003000`; empty for the root.
    pub(crate) path: String,
    /// The strings of its `compatible`.
    pub(crate) compatible: Vec<String>,
    /// Whether it has `dma-coherent` itself.
    pub(crate) coherent: bool,
}

/// All nodes, sorted by path; none if the machine has no tree.
pub(crate) fn nodes(machine: &Machine) -> Vec<Node> {
    let (mut found, mut todo) = (Vec::new(), vec![(String::new(), 0)]);
    // Each turn removes one node, and adds no more than there is room for.
    while let Some((path, depth)) = todo.pop() {
        let folder = folder(&path);
        if machine.text(format!("{folder}/status")).is_some_and(|status| !status.starts_with("ok"))
        {
            continue;
        }
        if depth < DEPTH_MAX {
            let room = NODES_MAX.saturating_sub(found.len() + todo.len());
            let below = |name| if path.is_empty() { name } else { format!("{path}/{name}") };
            todo.extend(
                machine
                    .folders(&folder)
                    .into_iter()
                    .take(room)
                    .map(|name| (below(name), depth + 1)),
            );
        }
        let text = machine.text(format!("{folder}/compatible")).unwrap_or_default();
        let compatible = text
            .split('\0')
            .map(str::trim)
            .filter(|word| !word.is_empty())
            .map(str::to_owned)
            .collect();
        found.push(Node {
            coherent: machine.has(format!("{folder}/dma-coherent")),
            path,
            compatible,
        });
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

    /// The address in its name. Some trees write it with 0x, contrary to the specification.
    pub(crate) fn unit(&self) -> Option<u64> {
        let unit = self.full_name().split_once('@')?.1.split(',').next()?;
        u64::from_str_radix(unit.trim_start_matches("0x"), 16).ok()
    }

    /// The kernel's name of its platform device: `f8003000.dmac`.
    pub(crate) fn device(&self) -> String {
        self.full_name()
            .split_once('@')
            .map_or_else(|| self.name().to_owned(), |(name, unit)| format!("{unit}.{name}"))
    }

    pub(crate) fn is(&self, compatible: &str) -> bool {
        self.compatible.iter().any(|one| one == compatible)
    }

    /// A property's bytes; `None` if it is missing.
    pub(crate) fn property(&self, machine: &Machine, name: &str) -> Option<Vec<u8>> {
        machine.bytes(format!("{}/{name}", self.folder()))
    }

    /// A property's cells; none if it is missing.
    pub(crate) fn cells(&self, machine: &Machine, name: &str) -> Vec<u32> {
        cells(&self.property(machine, name).unwrap_or_default())
    }

    pub(crate) fn cell(&self, machine: &Machine, name: &str) -> Option<u32> {
        self.cells(machine, name).first().copied()
    }

    /// Whether it is a block of u-dma-buf, by the module's new or old name.
    pub(crate) fn is_block(&self) -> bool {
        let ours =
            |one: &String| one.starts_with("ikwzm,u-dma-buf") || one.starts_with("ikwzm,udmabuf");
        self.compatible.iter().any(ours)
    }

    /// Whether its address is in the fabric, on a machine of this family.
    pub(crate) fn is_fabric(&self, family: Family) -> bool {
        self.unit().is_some_and(|unit| {
            family.windows().iter().any(|&(first, last)| (first..=last).contains(&unit))
        })
    }

    /// Its parent, the parent's parent, and so on up to the root. `nodes` is sorted by path, like
    /// [`nodes`]: it is searched for each of the ancestors.
    pub(crate) fn ancestors<'a>(&self, nodes: &'a [Self]) -> impl Iterator<Item = &'a Self> {
        let paths: Vec<_> = above(&self.path).map(str::to_owned).collect();
        paths.into_iter().filter_map(|path| {
            nodes.binary_search_by(|node| node.path.cmp(&path)).ok().and_then(|at| nodes.get(at))
        })
    }

    /// Whether the kernel takes it for coherent: the nearest node decides, of this one and those
    /// above (Linux, `drivers/of/address.c`, `of_dma_is_coherent`).
    pub(crate) fn is_coherent(&self, machine: &Machine) -> bool {
        let says = |path: &str| {
            let has = |name: &str| machine.has(format!("{}/{name}", folder(path)));
            if has("dma-coherent") { Some(true) } else { has("dma-noncoherent").then_some(false) }
        };
        says(&self.path).or_else(|| above(&self.path).find_map(says)).unwrap_or(false)
    }
}

/// The buses of a tree. Each is read once, because thousands of nodes may be on one.
pub(crate) struct Buses<'a> {
    machine: &'a Machine,
    known: HashMap<String, Bus>,
}

enum Bus {
    /// It has no `ranges`, or empty ones: its addresses are those of the bus above.
    HandsOn,
    /// The first address, the first address on the bus above, and the length.
    Maps(Vec<[u64; 3]>),
    /// The number of its address cells is not known here.
    Unknown,
}

impl<'a> Buses<'a> {
    pub(crate) fn of(machine: &'a Machine) -> Self {
        Self { machine, known: HashMap::new() }
    }

    /// The address in a node's name, translated for the processor by `ranges` of the buses above.
    pub(crate) fn address(&mut self, node: &Node) -> Option<u64> {
        let mut addr = node.unit()?;
        for path in above(&node.path).filter(|path| !path.is_empty()) {
            if !self.known.contains_key(path) {
                let bus = self.read(path).unwrap_or(Bus::Unknown);
                self.known.insert(path.to_owned(), bus);
            }
            match self.known.get(path)? {
                Bus::HandsOn => {}
                Bus::Unknown => return None,
                Bus::Maps(ranges) => {
                    addr = ranges.iter().find_map(|[first, to, size]| {
                        let offset = addr.checked_sub(*first).filter(|offset| offset < size)?;
                        to.checked_add(offset)
                    })?;
                }
            }
        }
        Some(addr)
    }

    fn read(&self, bus: &str) -> Option<Bus> {
        let of = |path: &str, name: &str| {
            cells(&self.machine.bytes(format!("{}/{name}", folder(path))).unwrap_or_default())
        };
        let count = |path: &str, name: &str, default| {
            let cells = of(path, name).first().copied().unwrap_or(default);
            usize::try_from(cells).ok().filter(|cells| (1..=2).contains(cells))
        };
        let ranges = of(bus, "ranges");
        if ranges.is_empty() {
            return Some(Bus::HandsOn);
        }
        let parent = above(bus).next().unwrap_or_default();
        let (child, parent) =
            (count(bus, "#address-cells", 2)?, count(parent, "#address-cells", 2)?);
        let size = count(bus, "#size-cells", 1)?;
        let range = |range: &[u32]| {
            let (first, rest) = range.split_at_checked(child)?;
            let (to, size) = rest.split_at_checked(parent)?;
            Some([joined(first), joined(to), joined(size)])
        };
        Some(Bus::Maps(ranges.chunks_exact(child + parent + size).filter_map(range).collect()))
    }
}

fn folder(path: &str) -> String {
    if path.is_empty() { BASE.to_owned() } else { format!("{BASE}/{path}") }
}

/// The paths above, from the nearest one to the root.
fn above(path: &str) -> impl Iterator<Item = &str> {
    let paths = path.rmatch_indices('/').filter_map(|(at, _)| path.get(..at));
    paths.chain((!path.is_empty()).then_some(""))
}

/// A number of one cell or two.
pub(crate) fn joined(cells: &[u32]) -> u64 {
    cells.iter().fold(0, |number, cell| (number << 32) | u64::from(*cell))
}

pub(crate) fn cells(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).filter_map(|cell| cell.try_into().ok().map(u32::from_be_bytes)).collect()
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that panics has failed, which is its purpose"
)]
mod tests {
    use crate::bitstream::Family;
    use crate::doctor::doctor;
    use crate::machine::Machine;
    use crate::ports::Cores;
    use crate::{clocks, resets};
    use std::fs;
    use std::path::Path;

    /// Makes a copy whose bus has `count` nodes and ranges. Each node has its own block of memory,
    /// and properties that name every other node, as interrupts and as clocks.
    ///
    /// Returns the copy's size in bytes.
    fn copy(root: &Path, count: u32) -> u64 {
        let mut size = 0;
        let mut put = |path: String, bytes: &[u8]| {
            size += bytes.len() as u64;
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        };
        let cells =
            |cells: &[u32]| cells.iter().flat_map(|cell| cell.to_be_bytes()).collect::<Vec<_>>();
        put("proc/meminfo".into(), b"MemTotal: 500000 kB\n");
        let bus = format!("{}/bus", super::BASE);
        for name in ["#address-cells", "#size-cells"] {
            put(format!("{}/{name}", super::BASE), &cells(&[1]));
            put(format!("{bus}/{name}"), &cells(&[1]));
        }
        put(format!("{}/compatible", super::BASE), b"xlnx,zynq-7000\0");
        put(format!("{bus}/compatible"), b"simple-bus\0");
        put(format!("{bus}/interrupt-parent"), &cells(&[1]));
        // Longer than everything that one node has.
        let ranges: Vec<_> =
            (0..16 * count).flat_map(|at| [at << 12, 0x4000_0000 + (at << 12), 0x1000]).collect();
        put(format!("{bus}/ranges"), &cells(&ranges));
        let names: Vec<_> = (1..=count).collect();
        for at in 0..count {
            let node = format!("{bus}/core@{:x}", at << 12);
            put(
                format!("{node}/compatible"),
                [&b"generic-uio\0contigo,engine\0"[..], b"ikwzm,u-dma-buf\0"][(at % 2) as usize],
            );
            put(format!("{node}/phandle"), &cells(&[at + 1]));
            put(format!("{node}/#interrupt-cells"), &cells(&[0]));
            put(format!("{node}/#clock-cells"), &cells(&[0]));
            for names_all in ["interrupts-extended", "clocks"] {
                put(format!("{node}/{names_all}"), &cells(&names));
            }
            put(format!("{node}/memory-region"), &cells(&[count - at]));
            put(format!("sys/class/contigo/{at}/device/of_node/clocks"), &cells(&names));
        }
        size
    }

    /// The most reads of each byte by a reader: the doctor has several checks for one property.
    const FEW: u64 = 8;

    /// Each reader of the tree reads each byte a few times, and visits each node a few times,
    /// however many there are.
    #[test]
    #[cfg_attr(miri, ignore = "Miri has no openat")]
    fn a_large_tree_is_read_a_few_times() {
        type Reader = fn(&Machine);
        let readers: [(&str, Reader); 4] = [
            ("doctor", |machine| drop(doctor(machine).unwrap())),
            ("cores", |machine| _ = Cores::of(machine, Family::Zynq7000)),
            ("clocks", |machine| drop(clocks::wanted(machine))),
            ("resets", |machine| drop(resets::lines(machine).map_err(|error| error.to_string()))),
        ];
        let [small, large] = [64, 128].map(|count| {
            let root = tempfile::tempdir().unwrap();
            let size = copy(root.path(), count);
            readers.map(|(reader, read)| {
                let machine = Machine::copy(root.path());
                read(&machine);
                let [bytes, looks] = machine.files().cost();
                assert!(bytes <= FEW * size, "{reader}: {bytes} bytes of {size}");
                looks
            })
        });
        for (((reader, _), before), looks) in readers.iter().zip(small).zip(large) {
            std::eprintln!("{reader}: {before} looks, and {looks}");
            assert!(
                looks <= before * 5 / 2,
                "{reader}: {before} looks for 64 nodes, and {looks} for 128"
            );
        }
    }
}
