//! Bounce buffers and huge pages.

use super::{Check, Facts, Outcome, fault, fine, note, skipped};

const AREA: &str = "memory";

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "swiotlb-forced",
        area: AREA,
        title: "the kernel does not bounce each transfer",
        cause: "With swiotlb=force each buffer is copied: the device never sees the program's own.",
        cure: "take swiotlb=force from the kernel's command line",
        source: "Linux, Documentation/admin-guide/kernel-parameters.txt, swiotlb",
        look: forced,
    },
    Check {
        id: "swiotlb-used",
        area: AREA,
        title: "no bounce buffer is in use",
        cause: "A driver's buffers lie where its device does not reach, and each transfer is copied.",
        cure: "give that device memory below its mask: memory-region = <&pool>; in its node",
        source: "https://github.com/raspberrypi/linux/issues/3416",
        look: bounced,
    },
    Check {
        id: "hugepages-used",
        area: AREA,
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
