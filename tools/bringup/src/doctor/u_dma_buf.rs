//! The module u-dma-buf.

use super::facts::last;
use super::{Check, Facts, Outcome, fault, fine, none_of, noted, skipped};
use crate::bitstream::Family;
use crate::tree::Node;

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "u-dma-buf-module",
        title: "the module of the tree's blocks is loaded",
        cause: "The device tree has a block of u-dma-buf, and no driver takes it.",
        cure: "modprobe u-dma-buf, or insmod u-dma-buf.ko that was built for this kernel",
        source: "https://github.com/ikwzm/udmabuf/issues/49",
        look: module,
    },
    Check {
        id: "u-dma-buf-block",
        title: "each block of the tree is there",
        cause: "The module found no memory for it, or its pool is wrong.",
        cure: "dmesg | grep u-dma-buf; then make CMA larger with cma=, or the size of the block \
               smaller",
        source: "https://github.com/ikwzm/udmabuf/issues/30",
        look: block,
    },
    Check {
        id: "u-dma-buf-version",
        title: "the module's version keeps coherency",
        cause: "Version 4.4.0 has a known fault in the coherency of its blocks on armv7.",
        cure: "build another version than 4.4.0 from https://github.com/ikwzm/udmabuf",
        source: "https://github.com/ikwzm/udmabuf/issues/101",
        look: version,
    },
    Check {
        id: "u-dma-buf-size",
        title: "a block is whole cache lines",
        cause: "The end of a block with part of a line cannot be synchronised, and Contigo refuses \
                it.",
        cure: "size = <0x1000000>; in its node, <0x0 0x1000000> on arm64: a multiple of 64",
        source: "https://github.com/ikwzm/udmabuf, Readme.md, sync_size",
        look: size,
    },
    Check {
        id: "u-dma-buf-sync-mode",
        title: "a block is mapped with the cache",
        cause: "The modes 5, 6 and 7 map it without, also for programs that do not ask for it: \
                slow.",
        cure: "echo 1 > /sys/class/u-dma-buf/NAME/sync_mode, or sync-mode = <1>; without \
               sync-always",
        source: "https://github.com/ikwzm/udmabuf/issues/16",
        look: sync_mode,
    },
    Check {
        id: "u-dma-buf-reach",
        title: "a master with 32 address bits reaches each block",
        cause: "A block above 4 GiB has an address that does not fit into the core's register.",
        cure: "memory-region = <&pool>; with a pool below 4 GiB, or a core with 64 address bits",
        source: "https://github.com/ikwzm/udmabuf/issues/98",
        look: reach,
    },
];

pub(super) fn wanted<'a>(facts: &'a Facts<'_>) -> Vec<&'a Node> {
    facts.nodes.iter().filter(|node| node.is_block()).collect()
}

fn loaded(facts: &Facts<'_>) -> bool {
    ["u-dma-buf", "udmabuf"]
        .iter()
        .any(|name| facts.machine.has(format!("sys/bus/platform/drivers/{name}")))
}

fn module(facts: &Facts<'_>) -> Outcome {
    match wanted(facts).len() {
        0 => skipped("the tree has no block"),
        count if loaded(facts) => fine(format!("{count} in the tree, loaded")),
        count => fault(format!("{count} in the tree, not loaded")),
    }
}

/// Whether a block belongs to a node: by the node if sysfs links it, else by `device-name` or the
/// node's name. A bus may have added a prefix (`amba:udmabuf0`).
pub(super) fn is_of(facts: &Facts<'_>, block: &str, node: &Node) -> bool {
    if let Some(path) = facts.of_node(&format!("{block}/device")) {
        return path == node.path;
    }
    let name = last(block);
    node.property(facts.machine, "device-name").map_or_else(
        || name.rsplit(':').next() == Some(node.name()),
        |said| String::from_utf8_lossy(&said).trim_end_matches('\0') == name,
    )
}

fn block(facts: &Facts<'_>) -> Outcome {
    let (wanted, blocks) = (wanted(facts), facts.machine.blocks());
    if wanted.is_empty() || !loaded(facts) {
        return skipped("the tree has no block, or the module is not loaded");
    }
    // A node with a number (minor-number) has yet another name.
    let numbered = |node: &Node| node.property(facts.machine, "minor-number").is_some();
    let is_there = |node: &&&Node| {
        blocks.iter().any(|block| is_of(facts, block, node))
            || numbered(node) && blocks.len() >= wanted.len()
    };
    let bad: Vec<_> =
        wanted.iter().filter(|node| !is_there(node)).map(|node| node.path.clone()).collect();
    none_of(&bad, format!("{} in the tree, {} there", wanted.len(), blocks.len()))
}

fn version(facts: &Facts<'_>) -> Outcome {
    if !matches!(facts.family, Some(Family::Zynq7000 | Family::CycloneV)) {
        return skipped("no armv7 that is known here");
    }
    let said = facts.machine.text("sys/module/u_dma_buf/version");
    let said = said.or_else(|| {
        facts
            .machine
            .blocks()
            .iter()
            .find_map(|block| facts.machine.text(format!("{block}/driver_version")))
    });
    match said.as_deref() {
        None => skipped("not loaded, or it does not say"),
        Some("4.4.0") => fault("4.4.0"),
        Some(version) => fine(version.chars().take(20).collect::<String>()),
    }
}

/// A line for each block that `bad` describes; `as_one` sets how bad that is.
fn each(
    facts: &Facts<'_>,
    as_one: fn(&[String], String) -> Outcome,
    bad: impl Fn(&str) -> Option<String>,
) -> Outcome {
    let blocks = facts.machine.blocks();
    if blocks.is_empty() {
        return skipped("no block");
    }
    let bad: Vec<_> = blocks
        .iter()
        .filter_map(|block| Some(format!("{}: {}", last(block), bad(block)?)))
        .collect();
    as_one(&bad, format!("{} blocks", blocks.len()))
}

fn size(facts: &Facts<'_>) -> Outcome {
    each(facts, none_of, |block| {
        facts
            .number(&format!("{block}/size"))
            .filter(|size| size % 64 != 0)
            .map(|size| format!("{size} bytes"))
    })
}

fn sync_mode(facts: &Facts<'_>) -> Outcome {
    each(facts, noted, |block| {
        facts
            .number(&format!("{block}/sync_mode"))
            .filter(|mode| *mode > 4)
            .map(|mode| format!("sync_mode {mode}"))
    })
}

fn reach(facts: &Facts<'_>) -> Outcome {
    each(facts, noted, |block| {
        let end = facts
            .number(&format!("{block}/phys_addr"))?
            .checked_add(facts.number(&format!("{block}/size"))?)?;
        (end > 1 << 32).then(|| format!("ends at {end:#x}"))
    })
}
