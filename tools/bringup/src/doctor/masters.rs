//! The device tree's statements about the masters: whether their accesses snoop, and the addresses
//! that they reach.

use super::facts::last;
use super::{Check, Facts, Outcome, fault, fine, none_of, note, noted, skipped, u_dma_buf};
use crate::bitstream::Family;
use crate::tree::{Node, cells, joined};
use std::ops::Range;

/// The PL330 of a SoC whose port does not snoop. `ZynqMP`'s DMA engines may snoop, depending on
/// their registers (UG1085, chapter 19).
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

pub(super) const COHERENCY: &[Check] = &[
    Check {
        id: "coherent-engine",
        title: "no engine without snooping is called coherent",
        cause: "The kernel then leaves the caches alone, and the engine reads old bytes.",
        cure: "/delete-property/ dma-coherent; in the engine's node",
        source: "https://github.com/ikwzm/udmabuf/issues/94",
        look: engine,
    },
    Check {
        id: "coherent-bus",
        title: "no bus of the tree makes all below it coherent",
        cause: "The kernel takes dma-coherent from a parent too, so that each device there counts \
                as coherent.",
        cure: "/delete-property/ dma-coherent; in the bus, and dma-coherent; in the devices that \
               are",
        source: "Linux, drivers/of/address.c, of_dma_is_coherent",
        look: bus,
    },
    Check {
        id: "coherent-block",
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
    // On other SoCs all masters may snoop, and their trees state it at the bus: LS1043A, K3, AP806.
    if facts.family.is_none() || buses.is_empty() {
        return skipped("no bus in the tree of a Zynq or a Cyclone V");
    }
    // Below a bus with only the fabric's masters, each of them may be on ACP or HPC.
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
    let wanted = u_dma_buf::wanted(facts);
    let mut compared = 0;
    let mut bad = Vec::new();
    for block in facts.machine.blocks() {
        // Blocks from a module parameter have no node.
        let node = wanted.iter().copied().find(|node| u_dma_buf::is_of(facts, &block, node));
        if let (Some(node), Some(said)) = (node, facts.number(&format!("{block}/dma_coherent"))) {
            compared += 1;
            // As of_dma_is_coherent: the property of the node itself, or of a bus above it.
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

pub(super) const REACH: &[Check] = &[Check {
    id: "mask-narrow",
    title: "each master's DMA mask reaches its memory",
    cause: "dma-mask of a block, or dma-ranges of a bus, ends below the memory: no buffer, an \
            error, or a copy for each transfer.",
    cure: "dma-mask = <32>; in the block's node; dma-ranges in the bus, as wide as the port; or \
           memory-region = <&pool>; below it",
    source: "Linux, drivers/of/device.c, of_dma_configure_id; https://github.com/ikwzm/udmabuf, \
             Readme.md, dma-mask",
    look: narrow,
}];

/// One past the last address that a node's master reaches, and the property that limits it.
fn limit(facts: &Facts<'_>, node: &Node) -> Option<(u64, &'static str)> {
    let mask = node.cell(facts.machine, "dma-mask");
    let mask = mask.map(|bits| (1_u64.checked_shl(bits).unwrap_or(u64::MAX), "dma-mask"));
    // The nearest bus whose dma-ranges are not empty counts (of_dma_get_range).
    let ranges = |bus: &Node| {
        let list = cells(&bus.property(facts.machine, "dma-ranges")?);
        let own = |name: &str, default| count(facts, Some(bus), name, default);
        let (child, size) = (own("#address-cells", 2), own("#size-cells", 1));
        let parent = count(facts, bus.ancestors(&facts.nodes).next(), "#address-cells", 2);
        let end = |range: &[u32]| {
            joined(range.get(child..child + parent)?)
                .checked_add(joined(range.get(child + parent..)?))
        };
        list.chunks_exact((child + parent + size).max(1)).filter_map(end).max()
    };
    let ranges = node.ancestors(&facts.nodes).find_map(ranges).map(|end| (end, "dma-ranges"));
    mask.into_iter().chain(ranges).min()
}

/// A number of cells: from this node, or from the nearest one above that has the property.
fn count(facts: &Facts<'_>, node: Option<&Node>, name: &str, default: usize) -> usize {
    let said = |node: &Node| node.cell(facts.machine, name).map(|cells| cells as usize);
    let above = |node: &Node| said(node).or_else(|| node.ancestors(&facts.nodes).find_map(said));
    // The specification allows two at most.
    node.and_then(above).unwrap_or(default).min(2)
}

/// One past a pool's last byte, if the tree places it.
fn end_of_pool(facts: &Facts<'_>, pool: &Node) -> Option<u64> {
    let reg = cells(&pool.property(facts.machine, "reg")?);
    let (base, len) = reg.split_at_checked(reg.len() / 2)?;
    joined(base).checked_add(joined(len))
}

/// The pool that a node names, or else CMA.
fn pool<'a>(facts: &'a Facts<'_>, node: &Node) -> Option<&'a Node> {
    match node.property(facts.machine, "memory-region") {
        Some(named) => match *cells(&named) {
            [phandle] => facts.node_with(phandle),
            _ => None,
        },
        None => facts.cma(),
    }
}

fn narrow(facts: &Facts<'_>) -> Outcome {
    let blocks = u_dma_buf::wanted(facts);
    let confined = |node: &Node| {
        node.property(facts.machine, "iommus").is_some() || facts.grouped(&node.device())
    };
    let masters =
        facts.nodes_of("contigo,engine").into_iter().chain(blocks).filter(|node| !confined(node));
    let masters: Vec<_> = masters.collect();
    if masters.is_empty() {
        return skipped("the tree has no engine and no block without an IOMMU");
    }
    let (mut bad, mut maybe) = (Vec::new(), Vec::new());
    for node in &masters {
        let Some((reach, by)) = limit(facts, node) else { continue };
        let block =
            facts.machine.blocks().into_iter().find(|block| u_dma_buf::is_of(facts, block, node));
        let block = block.and_then(|block| {
            facts
                .number(&format!("{block}/phys_addr"))?
                .checked_add(facts.number(&format!("{block}/size"))?)
        });
        let words = |end: u64| {
            format!("{}: {by} ends at {reach:#x}, the memory at {end:#x}", node.full_name())
        };
        match block.or_else(|| end_of_pool(facts, pool(facts, node)?)) {
            Some(end) if end > reach => bad.push(words(end)),
            Some(_) => {}
            // The kernel places this memory, and may have placed it well.
            None => maybe.extend(facts.machine.memory_end().filter(|&end| end > reach).map(words)),
        }
    }
    match (bad.is_empty(), maybe.is_empty()) {
        (false, _) => fault(bad.join(", ")),
        (true, false) => note(maybe.join(", ")),
        (true, true) => fine(format!("{} masters", masters.len())),
    }
}
