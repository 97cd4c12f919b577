//! The kernel's configuration and settings: bounce buffers, huge pages, and the time from an
//! interrupt to its program.

use super::{Check, Facts, Outcome, choice, fault, fine, note, skipped};

pub(super) const MEMORY: &[Check] = &[
    Check {
        id: "swiotlb-forced",
        title: "the kernel does not bounce each transfer",
        cause: "With swiotlb=force each buffer is copied: the device never sees the program's own.",
        cure: "take swiotlb=force from the kernel's command line",
        source: "Linux, Documentation/admin-guide/kernel-parameters.txt, swiotlb",
        look: forced,
    },
    Check {
        id: "swiotlb-used",
        title: "no bounce buffer is in use",
        cause: "A driver's buffers lie where its device does not reach, and each transfer is \
                copied.",
        cure: "give that device memory below its mask: memory-region = <&pool>; in its node",
        source: "https://github.com/raspberrypi/linux/issues/3416",
        look: bounced,
    },
    Check {
        id: "hugepages-used",
        title: "a huge page is free",
        cause: "All huge pages that were set aside are taken, so the next program gets none.",
        cure: "echo N > /proc/sys/vm/nr_hugepages soon after boot, with N above HugePages_Total",
        source: "https://github.com/F-Stack/f-stack/issues/274",
        look: huge,
    },
];

fn forced(facts: &Facts<'_>) -> Outcome {
    match facts.parameter("swiotlb") {
        Some(value) if value.split(',').any(|word| word == "force") => {
            fault(format!("swiotlb={value}"))
        }
        Some(value) => fine(format!("swiotlb={value}")),
        None => fine("the kernel's own"),
    }
}

fn bounced(facts: &Facts<'_>) -> Outcome {
    match facts.number("sys/kernel/debug/swiotlb/io_tlb_used") {
        None => skipped("not readable: run as root, with debugfs"),
        Some(0) => fine("0 slots"),
        Some(slots) => note(format!("{slots} slots of 2 KiB")),
    }
}

fn huge(facts: &Facts<'_>) -> Outcome {
    match (facts.meminfo("HugePages_Total"), facts.meminfo("HugePages_Free")) {
        (Some(total), Some(0)) if total > 0 => note(format!("0 of {total}")),
        (Some(total), Some(free)) if total > 0 => fine(format!("{free} of {total}")),
        _ => skipped("none was set aside"),
    }
}

const POLICIES: &str = "sys/devices/system/cpu/cpufreq";

pub(super) const LATENCY: &[Check] = &[
    Check {
        id: "governor",
        title: "the processor's clock does not change",
        cause: "A governor that saves power wakes a program late, and slows a polled wait.",
        cure: "for p in /sys/devices/system/cpu/cpufreq/policy*; do echo performance > \
               $p/scaling_governor; done",
        source: "https://www.osadl.org/Single-View.111+M5ee8ef039f7.0.html",
        look: governor,
    },
    Check {
        id: "rt-throttled",
        title: "a PREEMPT_RT kernel does not throttle real-time programs",
        cause: "By default real-time programs stop for 50 ms of each second, in which a poll \
                misses its deadline.",
        cure: "echo -1 > /proc/sys/kernel/sched_rt_runtime_us. Warning: a real-time program that \
               never sleeps then keeps its processor until a reset",
        source: "Linux, Documentation/scheduler/sched-rt-group.rst",
        look: throttled,
    },
];

fn governor(facts: &Facts<'_>) -> Outcome {
    let policies: Vec<_> = facts
        .machine
        .list(POLICIES)
        .iter()
        .filter_map(|policy| {
            Some((
                facts.machine.text(format!("{POLICIES}/{policy}/scaling_governor"))?,
                policy.clone(),
            ))
        })
        .collect();
    if policies.is_empty() {
        return skipped("no frequency scaling");
    }
    let words = policies
        .iter()
        .map(|(governor, policy)| format!("{policy}: {governor}"))
        .collect::<Vec<_>>()
        .join(", ");
    if policies.iter().all(|(governor, _)| governor == "performance") {
        fine(words)
    } else {
        note(words)
    }
}

fn throttled(facts: &Facts<'_>) -> Outcome {
    // PREEMPT_RT's patches add this file. Mainline has had them since 6.12: its version names them.
    let version = facts.machine.text("proc/sys/kernel/version").unwrap_or_default();
    if facts.number("sys/kernel/realtime") != Some(1) && !version.contains("PREEMPT_RT") {
        return skipped("no PREEMPT_RT");
    }
    match facts.machine.text("proc/sys/kernel/sched_rt_runtime_us").as_deref() {
        Some("-1") => fine("not throttled"),
        Some(limit) => note(format!("sched_rt_runtime_us {limit}")),
        None => skipped("the limit cannot be read"),
    }
}

pub(super) const CONFIG: &[Check] = &[
    Check {
        id: "config-dma-cma",
        title: "drivers allocate from CMA",
        cause: "Without CONFIG_DMA_CMA the pool may exist, and no driver's allocation comes from \
                it.",
        cure: "a kernel with CONFIG_CMA=y and CONFIG_DMA_CMA=y",
        source: "https://github.com/ikwzm/udmabuf/issues/60",
        look: |facts| choice(option(facts, "DMA_CMA", facts.has_tree())),
    },
    Check {
        id: "config-uio",
        title: "the kernel has uio for the tree's nodes",
        cause: "The tree has nodes of generic-uio, and their driver was not built.",
        cure: "a kernel with CONFIG_UIO=y and CONFIG_UIO_PDRV_GENIRQ=m",
        source: "https://github.com/foss-for-synopsys-dwc-arc-processors/toolchain/issues/460",
        look: |facts| option(facts, "UIO_PDRV_GENIRQ", !super::uio::waiting(facts).is_empty()),
    },
    Check {
        id: "config-dma-buf",
        title: "the kernel has dma-bufs for the module contigo",
        cause: "The tree has engines of the module contigo, which needs CONFIG_DMA_SHARED_BUFFER.",
        cure: "a kernel with CONFIG_DMABUF_HEAPS=y, which selects it",
        source: "kernel-helpers/README.md, The module",
        look: |facts| {
            let outcome =
                option(facts, "DMA_SHARED_BUFFER", !super::dev_node::waiting(facts).is_empty());
            if super::dev_node::is_too_old(facts) { choice(outcome) } else { outcome }
        },
    },
    Check {
        id: "config-vfio",
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
