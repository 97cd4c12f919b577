//! How far a master reaches, as the tree tells it to the kernel.

use super::{Check, Facts, Outcome, fault, note, skipped};
use super::{fine, u_dma_buf};
use crate::tree::{Node, cells, joined};

pub(super) const CHECKS: &[Check] = &[Check {
    id: "mask-narrow",
    area: "memory",
    title: "each master's DMA mask reaches its memory",
    cause: "dma-mask of a block, or dma-ranges of a bus, ends below the memory: no buffer, an error, or a copy for each transfer.",
    cure: "dma-mask = <32>; in the block's node; dma-ranges in the bus, as wide as the port; or memory-region = <&pool>; below it",
    source: "Linux, drivers/of/device.c, of_dma_configure_id; https://github.com/ikwzm/udmabuf, Readme.md, dma-mask",
    look: narrow,
}];

/// One past the last address that a node's master reaches, and the property that says it.
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

/// A count of cells: of this node, or of the nearest one above that says it.
fn count(facts: &Facts<'_>, node: Option<&Node>, name: &str, default: usize) -> usize {
    let said = |node: &Node| node.cell(facts.machine, name).map(|cells| cells as usize);
    let above = |node: &Node| said(node).or_else(|| node.ancestors(&facts.nodes).find_map(said));
    // The specification has two at most.
    node.and_then(above).unwrap_or(default).min(2)
}

/// One past a pool's last byte, where the tree has its place.
fn end_of_pool(facts: &Facts<'_>, pool: &Node) -> Option<u64> {
    let reg = cells(&pool.property(facts.machine, "reg")?);
    let (base, len) = reg.split_at_checked(reg.len() / 2)?;
    joined(base).checked_add(joined(len))
}

/// The pool that a node names, or CMA.
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
            // The kernel chooses the place of its memory, and may have chosen well.
            None => maybe.extend(facts.machine.memory_end().filter(|&end| end > reach).map(words)),
        }
    }
    match (bad.is_empty(), maybe.is_empty()) {
        (false, _) => fault(bad.join(", ")),
        (true, false) => note(maybe.join(", ")),
        (true, true) => fine(format!("{} masters", masters.len())),
    }
}
