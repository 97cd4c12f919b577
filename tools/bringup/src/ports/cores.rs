//! The cores of a machine's device tree, as far as they tell which registers they need.

use crate::bitstream::Family;
use crate::machine::Machine;
use crate::tree::{self, Buses, Node};

/// Cyclone V's two bridges to the fabric (HPS TRM, "Address Space"): first and last address.
const H2F: (u64, u64) = (0xc000_0000, 0xfbff_ffff);
const LW: (u64, u64) = (0xff20_0000, 0xff3f_ffff);

/// The needs of the cores in the device tree, and of the memory that they are given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cores {
    /// Whether a core, or a block of memory for one, is behind a port that snoops: it or its bus
    /// has `dma-coherent`.
    pub coherent: bool,
    /// Whether the processor has a core behind Cyclone V's bridge to the fabric.
    pub behind_h2f: bool,
    /// Whether it has a core behind the lightweight bridge.
    pub behind_lw: bool,
    /// Whether the tree asks for Cyclone V's ports to the SDRAM: their bridge has
    /// `bridge-enable = <1>`, or a region names the bridge and a bitstream that Linux loaded there
    /// (`firmware-name`; Linux, `drivers/fpga/of-fpga-region.c`).
    pub asks_for_sdram: bool,
}

impl Cores {
    /// Reads the needs of a machine. A tree that names no cores has no needs, and nothing is wrong.
    #[must_use]
    pub fn of(machine: &Machine, family: Family) -> Self {
        let mut found = Self::default();
        let (nodes, mut buses) = (tree::nodes(machine), Buses::of(machine));
        found.asks_for_sdram = asks_for_sdram(machine, &nodes);
        for node in nodes {
            // A bus is no core. The cores on it have their own nodes.
            if node.compatible.is_empty() || node.is("simple-bus") {
                continue;
            }
            let addr = buses.address(&node);
            let within = |&(first, last): &(u64, u64)| {
                addr.is_some_and(|addr| (first..=last).contains(&addr))
            };
            let fabric = family.windows().iter().any(within);
            found.coherent |= (node.is_block() || fabric) && node.is_coherent(machine);
            found.behind_h2f |= within(&H2F);
            found.behind_lw |= within(&LW);
        }
        for block in machine.blocks() {
            let text = machine.text(format!("{block}/dma_coherent"));
            found.coherent |= text.is_some_and(|text| text != "0");
        }
        found
    }
}

/// Whether the tree wants the bridge to the SDRAM open.
fn asks_for_sdram(machine: &Machine, nodes: &[Node]) -> bool {
    let Some(bridge) = nodes.iter().find(|node| node.is("altr,socfpga-fpga2sdram-bridge")) else {
        return false;
    };
    let own = bridge.cell(machine, "phandle");
    let names = |region: &Node| {
        let loaded = region.property(machine, "firmware-name").is_some();
        loaded && own.is_some_and(|own| region.cells(machine, "fpga-bridges").contains(&own))
    };
    bridge.cells(machine, "bridge-enable") == [1] || nodes.iter().any(names)
}
