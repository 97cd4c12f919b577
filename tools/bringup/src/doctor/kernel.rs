//! The kernel's configuration.

use super::{Check, Facts, Outcome, choice, fault, fine, skipped};

const AREA: &str = "kernel";

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "config-dma-cma",
        area: AREA,
        title: "drivers allocate from CMA",
        cause: "Without CONFIG_DMA_CMA the pool may exist, and no driver's allocation comes from it.",
        cure: "a kernel with CONFIG_CMA=y and CONFIG_DMA_CMA=y",
        source: "https://github.com/ikwzm/udmabuf/issues/60",
        look: |facts| choice(option(facts, "DMA_CMA", facts.has_tree())),
    },
    Check {
        id: "config-uio",
        area: AREA,
        title: "the kernel has uio for the tree's nodes",
        cause: "The tree has nodes of generic-uio, and their driver was not built.",
        cure: "a kernel with CONFIG_UIO=y and CONFIG_UIO_PDRV_GENIRQ=m",
        source: "https://github.com/foss-for-synopsys-dwc-arc-processors/toolchain/issues/460",
        look: |facts| option(facts, "UIO_PDRV_GENIRQ", !super::uio::waiting(facts).is_empty()),
    },
    Check {
        id: "config-dma-buf",
        area: AREA,
        title: "the kernel has dma-bufs for the module contigo",
        cause: "The tree has engines of the module contigo, which needs CONFIG_DMA_SHARED_BUFFER.",
        cure: "a kernel with CONFIG_DMABUF_HEAPS=y, which selects it",
        source: "kernel-helpers/README.md, The module",
        look: |facts| {
            let outcome =
                option(facts, "DMA_SHARED_BUFFER", !super::guard::waiting(facts).is_empty());
            if super::guard::is_too_old(facts) { choice(outcome) } else { outcome }
        },
    },
    Check {
        id: "config-vfio",
        area: AREA,
        title: "the kernel has VFIO for its IOMMU",
        cause: "There are IOMMU groups, and VFIO was not built, so no program can have a device.",
        cure: "a kernel with CONFIG_VFIO=m, CONFIG_VFIO_PCI=m or CONFIG_VFIO_PLATFORM=m",
        source: "https://github.com/lf-edge/eve/pull/778",
        look: |facts| choice(option(facts, "VFIO", !facts.iommu_groups().is_empty())),
    },
];

fn option(facts: &Facts<'_>, name: &str, needed: bool) -> Outcome {
    match facts.config(name) {
        _ if !needed => skipped("not needed here"),
        None => skipped("not measurable: no /proc/config.gz and no /boot/config"),
        Some(true) => fine(format!("CONFIG_{name}")),
        Some(false) => fault(format!("no CONFIG_{name}")),
    }
}
