//! Coherency, as the device tree tells it to the kernel.

use super::facts::last;
use super::{Check, Facts, Outcome, none_of, noted, skipped};
use crate::bitstream::Family;
use crate::tree::Node;
use std::ops::Range;

const AREA: &str = "coherency";

/// The PL330 of a SoC whose port does not snoop. `ZynqMP`'s DMA engines may snoop, by their
/// registers (UG1085, chapter 19).
///
/// # References
/// UG585, chapter 9; Cyclone V HPS TRM, "DMA Controller".
fn not_coherent(family: Family) -> Range<u64> {
    match family {
        Family::Zynq7000 => 0xF800_3000..0xF800_5000,
        Family::CycloneV => 0xFFE0_1000..0xFFE0_3000,
        Family::ZynqMp => 0..0,
    }
}

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "coherent-engine",
        area: AREA,
        title: "no engine without snooping is called coherent",
        cause: "The kernel then leaves the caches alone, and the engine reads old bytes.",
        cure: "/delete-property/ dma-coherent; in the engine's node",
        source: "https://github.com/ikwzm/udmabuf/issues/94",
        look: engine,
    },
    Check {
        id: "coherent-bus",
        area: AREA,
        title: "no bus of the tree makes all below it coherent",
        cause: "The kernel takes dma-coherent from a parent too, so that each device there counts as coherent.",
        cure: "/delete-property/ dma-coherent; in the bus, and dma-coherent; in the devices that are",
        source: "Linux, drivers/of/address.c, of_dma_is_coherent",
        look: bus,
    },
    Check {
        id: "coherent-block",
        area: AREA,
        title: "u-dma-buf and the tree agree on coherency",
        cause: "The module says another thing than the node of the block: no sync, or a slow one.",
        cure: "dma-coherent; in the block's node for ACP and HPC, and nothing for HP",
        source: "https://github.com/ikwzm/udmabuf/issues/69",
        look: block,
    },
];

fn engine(facts: &Facts<'_>) -> Outcome {
    let Some(range) = facts.family.map(not_coherent) else {
        return skipped("no engine that is known here");
    };
    let engines: Vec<_> = facts
        .nodes
        .iter()
        .filter(|node| node.unit().is_some_and(|unit| range.contains(&unit)))
        .collect();
    if engines.is_empty() {
        return skipped("no engine that is known here");
    }
    let bad: Vec<_> =
        engines.iter().filter(|node| node.coherent).map(|node| node.path.clone()).collect();
    none_of(&bad, format!("{} engines", engines.len()))
}

fn bus(facts: &Facts<'_>) -> Outcome {
    let buses: Vec<_> = facts.nodes.iter().filter(|node| node.is("simple-bus")).collect();
    // On other SoCs all masters may snoop, and their trees say so at the bus: LS1043A, K3, AP806.
    if facts.family.is_none() || buses.is_empty() {
        return skipped("no bus in the tree of a Zynq or a Cyclone V");
    }
    // Below a bus of the fabric alone, each master may be on ACP or HPC.
    let others = |bus: &Node| {
        let below = format!("{}/", bus.path);
        let mut devices = facts
            .nodes
            .iter()
            .filter(|node| node.path.starts_with(&below) && node.unit().is_some());
        devices.any(|node| facts.family.is_some_and(|family| !node.is_fabric(family)))
    };
    let (bad, maybe): (Vec<_>, Vec<_>) =
        buses.iter().filter(|node| node.coherent).partition(|bus| others(bus));
    let paths =
        |nodes: Vec<&&Node>| nodes.into_iter().map(|node| node.path.clone()).collect::<Vec<_>>();
    let good = format!("{} buses", buses.len());
    if bad.is_empty() { noted(&paths(maybe), good) } else { none_of(&paths(bad), good) }
}

fn block(facts: &Facts<'_>) -> Outcome {
    let wanted = super::u_dma_buf::wanted(facts);
    let mut compared = 0;
    let mut bad = Vec::new();
    for block in facts.machine.blocks() {
        // Blocks of a parameter have none.
        let node = wanted.iter().copied().find(|node| super::u_dma_buf::is_of(facts, &block, node));
        if let (Some(node), Some(said)) = (node, facts.number(&format!("{block}/dma_coherent"))) {
            compared += 1;
            // As of_dma_is_coherent: the node's own word, or one of the buses' above it.
            let coherent =
                node.coherent || node.ancestors(&facts.nodes).any(|above| above.coherent);
            if coherent != (said == 1) {
                bad.push(format!(
                    "{}: the module says {said}, the tree {}",
                    last(&block),
                    u8::from(coherent)
                ));
            }
        }
    }
    if compared == 0 {
        skipped("no block with a node")
    } else {
        none_of(&bad, format!("{compared} blocks"))
    }
}
