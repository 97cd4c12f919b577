//! The kernel's contiguous memory, and the dma-heaps that allocate from it for programs.

use super::{Check, Facts, Outcome, fault, fine, note, noted, skipped};
use crate::tree::{Node, cells, joined};

/// A network's weights did not fit into this size: apache/tvm#3394.
const SMALL_KIB: u64 = 16 * 1024;

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "cma-missing",
        title: "the kernel has contiguous memory",
        cause: "Without CMA large blocks come from the page allocator, which has none soon after \
                boot.",
        cure: "add cma=64M to the kernel's command line, or a node linux,cma to /reserved-memory",
        source: "https://github.com/ikwzm/udmabuf/issues/23",
        look: missing,
    },
    Check {
        id: "cma-small",
        title: "CMA is larger than 16 MiB",
        cause: "The default of many kernels is 16 MiB, and display or network take part of it.",
        cure: "add cma=64M to the kernel's command line, or size = <0x0 0x4000000>; (arm64) in \
               linux,cma",
        source: "https://github.com/apache/tvm/pull/3394",
        look: small,
    },
    Check {
        id: "cma-failed",
        title: "no request to CMA has failed since boot",
        cause: "A driver or a program asked for more than was free in one piece.",
        cure: "allocate at boot, before memory is in use, or make CMA larger with cma=128M",
        source: "https://github.com/anholt/linux/issues/94",
        look: failed,
    },
    Check {
        id: "cma-fragmented",
        title: "the free part of CMA is in large pieces",
        cause: "Blocks that stay between free ones leave no large piece, whatever CmaFree says.",
        cure: "allocate soon after boot, or give the block a pool of its own in /reserved-memory",
        source: "https://github.com/Freescale/gstreamer-imx/issues/30",
        look: fragmented,
    },
    Check {
        id: "cma-twice",
        title: "CMA's size is said in one place",
        cause: "cma= on the command line wins: the node of the device tree is bypassed, and the \
                heap has another name.",
        cure: "take cma= from the kernel's command line, or delete the node with linux,cma-default",
        source: "https://github.com/raspberrypi/linux/pull/3571",
        look: twice,
    },
    Check {
        id: "cma-high",
        title: "CMA begins below 4 GiB",
        cause: "A master with 32 address bits does not reach it, and the allocation for it fails.",
        cure: "alloc-ranges = <0x0 BASE 0x0 0x40000000>; in the node with linux,cma-default, with \
               BASE where RAM begins (/proc/iomem)",
        source: "https://github.com/ikwzm/udmabuf/issues/98",
        look: high,
    },
];

/// Whether CMA memory still has to be allocated: the machine is prepared, and u-dma-buf has no
/// block, or not all of the tree's blocks.
fn wants(facts: &Facts<'_>) -> bool {
    let blocks = facts.machine.blocks().len();
    facts.prepared() && (blocks == 0 || blocks < super::u_dma_buf::wanted(facts).len())
}

fn missing(facts: &Facts<'_>) -> Outcome {
    match facts.meminfo("CmaTotal") {
        Some(total) if total > 0 => fine(format!("{total} KiB")),
        _ if !facts.has_tree() => skipped("a machine without a device tree can do without"),
        // An IOMMU, huge pages or a card's own memory may serve instead.
        _ if wants(facts) => fault("CmaTotal is 0 or not there"),
        _ => note("CmaTotal is 0 or not there"),
    }
}

fn small(facts: &Facts<'_>) -> Outcome {
    match facts.meminfo("CmaTotal").filter(|&total| total > 0) {
        None => skipped("no CMA"),
        Some(total) if total > SMALL_KIB || !facts.has_tree() => fine(format!("{total} KiB")),
        Some(total) if wants(facts) => fault(format!("{total} KiB")),
        Some(total) => note(format!("{total} KiB")),
    }
}

fn failed(facts: &Facts<'_>) -> Outcome {
    let folder = "sys/kernel/mm/cma";
    let areas = facts.machine.list(folder);
    if areas.is_empty() {
        return skipped("this kernel does not count (CONFIG_CMA_SYSFS)");
    }
    let count = |area: &String| {
        facts
            .number(&format!("{folder}/{area}/alloc_pages_fail"))
            .filter(|&pages| pages > 0)
            .map(|pages| format!("{area}: {pages} pages"))
    };
    let bad: Vec<_> = areas.iter().filter_map(count).collect();
    noted(&bad, "0 pages")
}

fn fragmented(facts: &Facts<'_>) -> Outcome {
    let folder = "sys/kernel/debug/cma";
    let areas = facts.machine.list(folder);
    if areas.is_empty() {
        return skipped("not readable: run as root, with CONFIG_CMA_DEBUGFS");
    }
    let bad: Vec<_> = areas
        .iter()
        .filter_map(|area| {
            let number = |name: &str| facts.number(&format!("{folder}/{area}/{name}"));
            let free = number("count")?.saturating_sub(number("used")?);
            let largest = number("maxchunk")?;
            // Only with at least 4 MiB of free pages: a quarter of less is smaller than a frame.
            (free >= 1024 && largest < free / 4)
                .then(|| format!("{area}: {free} pages are free, the largest piece has {largest}"))
        })
        .collect();
    noted(&bad, format!("{} areas", areas.len()))
}

fn twice(facts: &Facts<'_>) -> Outcome {
    let node = facts.nodes.iter().find(|node| {
        facts.machine.has(format!("sys/firmware/devicetree/base/{}/linux,cma-default", node.path))
    });
    match (facts.parameter("cma"), node) {
        (Some(size), Some(node)) => note(format!("cma={size}, and {}", node.path)),
        (Some(size), None) => fine(format!("cma={size}")),
        (None, Some(node)) => fine(node.path.clone()),
        (None, None) => fine("the kernel's own"),
    }
}

/// The end of what a master with 32 address bits reaches.
const HIGH: u64 = 1 << 32;

fn high(facts: &Facts<'_>) -> Outcome {
    let mut begins: Vec<(String, u64)> = Vec::new();
    // The kernel's own numbers come first. A page has at least 4 KiB.
    let folder = "sys/kernel/debug/cma";
    for area in facts.machine.list(folder) {
        let pages = facts.number(&format!("{folder}/{area}/base_pfn"));
        begins.extend(pages.and_then(|pages| Some((area, pages.checked_mul(4096)?))));
    }
    for pool in facts.nodes_of("shared-dma-pool") {
        let first = place(facts, pool, "reg").map(|(base, _)| base);
        // The kernel chooses inside these ranges, so only a property of a whole range is known.
        let range = place(facts, pool, "alloc-ranges")
            .filter(|&(base, len)| base >= HIGH || base.saturating_add(len) <= HIGH);
        begins.extend(
            first.or(range.map(|(base, _)| base)).map(|base| (pool.full_name().to_owned(), base)),
        );
    }
    let said =
        facts.parameter("cma").and_then(|value| bytes(value.split_once('@')?.1.split('-').next()?));
    begins.extend(said.map(|base| ("cma=".to_owned(), base)));
    if begins.is_empty() {
        return match facts.machine.memory_end() {
            _ if facts.meminfo("CmaTotal").unwrap_or(0) == 0 => skipped("no CMA"),
            Some(end) if end <= HIGH => fine(format!("memory ends at {end:#x}")),
            _ => skipped("nothing says where it is: run as root, with CONFIG_CMA_DEBUGFS"),
        };
    }
    let words = |(name, base): &(String, u64)| format!("{name} begins at {base:#x}");
    noted(
        &begins.iter().filter(|(_, base)| *base >= HIGH).map(words).collect::<Vec<_>>(),
        format!("{} places", begins.len()),
    )
}

/// The first address and length of a property, which has equally many cells for both.
fn place(facts: &Facts<'_>, pool: &Node, name: &str) -> Option<(u64, u64)> {
    let cells = cells(&pool.property(facts.machine, name)?);
    let parent = pool.ancestors(&facts.nodes).next();
    let wide = parent
        .and_then(|parent| parent.cell(facts.machine, "#address-cells"))
        .map_or(cells.len().is_multiple_of(4), |cells| cells == 2);
    let each = if wide { 2 } else { 1 };
    Some((joined(cells.get(..each)?), joined(cells.get(each..2 * each)?)))
}

/// A number of bytes in the kernel's format: 64M, or `0x1000_0000` without the underscore.
fn bytes(text: &str) -> Option<u64> {
    let unit = match text.chars().last()?.to_ascii_uppercase() {
        'K' => 10,
        'M' => 20,
        'G' => 30,
        _ => 0,
    };
    let digits = if unit > 0 { text.get(..text.len() - 1)? } else { text };
    let number = digits
        .strip_prefix("0x")
        .map_or_else(|| digits.parse().ok(), |hex| u64::from_str_radix(hex, 16).ok())?;
    number.checked_mul(1_u64 << unit)
}

/// `CAP_SYS_ADMIN`, without which `/proc/self/pagemap` hides the addresses (Linux,
/// `Documentation/admin-guide/mm/pagemap.rst`).
const CAP_SYS_ADMIN: u64 = 1 << 21;

pub(super) const HEAPS: &[Check] = &[
    Check {
        id: "heap-missing",
        title: "programs can allocate from CMA",
        cause: "The kernel has CMA, and nothing that gives it to programs: neither a heap nor \
                u-dma-buf.",
        cure: "a kernel with CONFIG_DMABUF_HEAPS=y and CONFIG_DMABUF_HEAPS_CMA=y, or modprobe \
               u-dma-buf",
        source: "https://github.com/siderolabs/pkgs/issues/1649",
        look: unreachable,
    },
    Check {
        id: "heap-address",
        title: "something tells the address of a heap's buffer",
        cause: "Before Linux 6.9 pagemap tells it to CAP_SYS_ADMIN; from then on only a kernel \
                module does.",
        cure: "modprobe contigo, with a node that says compatible = \"contigo,engine\";",
        source: "Linux, drivers/dma-buf/heaps/cma_heap.c",
        look: address,
    },
];

fn heaps(facts: &Facts<'_>) -> Vec<String> {
    // Heaps such as "system" are not contiguous.
    facts
        .machine
        .list("dev/dma_heap")
        .into_iter()
        .filter(|name| !name.starts_with("system"))
        .collect()
}

fn unreachable(facts: &Facts<'_>) -> Outcome {
    let heaps = heaps(facts);
    if !heaps.is_empty() {
        return fine(heaps.join(", "));
    }
    if !facts.has_tree() || facts.meminfo("CmaTotal").unwrap_or(0) == 0 {
        return skipped("no CMA, or no device tree");
    }
    if facts.machine.blocks().is_empty() {
        note("no heap, and no block of u-dma-buf")
    } else {
        fine("u-dma-buf serves")
    }
}

fn address(facts: &Facts<'_>) -> Outcome {
    if heaps(facts).is_empty() {
        return skipped("no heap");
    }
    let Some((major, minor)) = facts.kernel() else {
        return skipped("the kernel's version is not known");
    };
    if facts.machine.has("sys/module/contigo") {
        fine("the module contigo")
    } else if (major, minor) < (6, 9)
        && facts.status("CapEff", 16).is_some_and(|all| all & CAP_SYS_ADMIN == 0)
        && facts.machine.blocks().is_empty()
    {
        note(format!("pagemap on {major}.{minor}, without CAP_SYS_ADMIN"))
    } else if (major, minor) < (6, 9) {
        fine(format!("pagemap, on {major}.{minor}"))
    } else if !facts.machine.blocks().is_empty() {
        fine("u-dma-buf serves")
    } else {
        note(format!("Linux {major}.{minor}, no module contigo"))
    }
}
