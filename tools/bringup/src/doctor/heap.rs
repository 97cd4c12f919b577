//! dma-heaps.

use super::{Check, Facts, Outcome, fine, note, skipped};

const AREA: &str = "dma-heap";
/// `CAP_SYS_ADMIN`, without which `/proc/self/pagemap` hides the addresses (Linux,
/// `Documentation/admin-guide/mm/pagemap.rst`).
const CAP_SYS_ADMIN: u64 = 1 << 21;

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "heap-missing",
        area: AREA,
        title: "programs can allocate from CMA",
        cause: "The kernel has CMA, and nothing that gives it to programs: neither a heap nor u-dma-buf.",
        cure: "a kernel with CONFIG_DMABUF_HEAPS=y and CONFIG_DMABUF_HEAPS_CMA=y, or modprobe u-dma-buf",
        source: "https://github.com/siderolabs/pkgs/issues/1649",
        look: missing,
    },
    Check {
        id: "heap-address",
        area: AREA,
        title: "something tells the address of a heap's buffer",
        cause: "Before Linux 6.9 pagemap tells it to CAP_SYS_ADMIN; from then on only a kernel module does.",
        cure: "modprobe contigo, with a node that says compatible = \"contigo,engine\";",
        source: "Linux, drivers/dma-buf/heaps/cma_heap.c",
        look: address,
    },
];

fn heaps(facts: &Facts<'_>) -> Vec<String> {
    // "system" and its like are not contiguous.
    facts
        .machine
        .list("dev/dma_heap")
        .into_iter()
        .filter(|name| !name.starts_with("system"))
        .collect()
}

fn missing(facts: &Facts<'_>) -> Outcome {
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
