//! IOMMUs, VFIO, and the memory that VFIO pins.

use super::{Check, Facts, Outcome, fine, none_of, note, skipped};

const GROUPS: &str = "sys/kernel/iommu_groups";
/// The smallest useful limit: one pool of frames.
const LOCKED_MIN_BYTES: u64 = 64 << 20;
/// `CAP_IPC_LOCK`: with it VFIO checks no limit (Linux, `uapi/linux/capability.h`).
const CAP_IPC_LOCK: u64 = 1 << 14;

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "iommu-missing",
        title: "the tree's IOMMU is in use",
        cause: "The tree has an SMMU, and the kernel has no group, or each is bypassed (identity).",
        cure: "a kernel with CONFIG_ARM_SMMU=y and CONFIG_ARM_SMMU_V3=y, and no \
               iommu.passthrough=1",
        source: "https://github.com/microsoft/azurelinux/issues/6818",
        look: iommu,
    },
    Check {
        id: "iommu-strict",
        title: "the IOMMU forgets an address at once",
        cause: "In lazy mode a device reaches a buffer for a while after it was unmapped: it is \
                not confined.",
        cure: "iommu.strict=1 on the kernel's command line",
        source: "Linux, drivers/iommu/iommu.c, DMA-FQ",
        look: strict,
    },
    Check {
        id: "vfio-viable",
        title: "no driver of the kernel has a device of a VFIO group",
        cause: "VFIO refuses a group of which one device still belongs to a driver of the kernel.",
        cure: "look who uses OTHER (a disk, the network); if nothing does, in /sys/bus/pci: echo \
               vfio-pci > devices/OTHER/driver_override; echo OTHER > devices/OTHER/driver/unbind; \
               echo OTHER > drivers_probe",
        source: "https://github.com/64kramsystem/vga-passthrough/issues/15",
        look: viable,
    },
    Check {
        id: "vfio-noiommu",
        title: "VFIO has an IOMMU behind it",
        cause: "In no-IOMMU mode VFIO maps no memory, so that a program has no address for its \
                device.",
        cure: "take enable_unsafe_noiommu_mode away; intel_iommu=on on the command line of an \
               Intel PC, else the IOMMU in the firmware's setup",
        source: "https://github.com/rust-vmm/vfio/issues/152",
        look: noiommu,
    },
    Check {
        id: "memlock",
        title: "a program may pin 64 MiB",
        cause: "VFIO counts each pinned page against RLIMIT_MEMLOCK, and mapping ends with ENOMEM.",
        cure: "@dma - memlock unlimited in /etc/security/limits.conf, or LimitMEMLOCK=infinity in \
               the unit",
        source: "https://github.com/cloud-hypervisor/cloud-hypervisor/issues/165",
        look: memlock,
    },
];

fn iommu(facts: &Facts<'_>) -> Outcome {
    let smmu = |one: &String| {
        one.starts_with("arm,smmu") || one.starts_with("arm,mmu-") || one.starts_with("nvidia,smmu")
    };
    let Some(node) = facts.nodes.iter().find(|node| node.compatible.iter().any(smmu)) else {
        return skipped("the tree has none that is enabled");
    };
    match facts.iommu_groups().len() {
        0 => note(format!("{} is there, and no group", node.full_name())),
        count
            if facts
                .iommu_groups()
                .iter()
                .all(|group| kind(facts, group).as_deref() == Some("identity")) =>
        {
            note(format!("{count} groups, each of type identity"))
        }
        count => fine(format!("{count} groups")),
    }
}

/// The type of a group's domain: `DMA`, `DMA-FQ` (lazy), `identity`.
fn kind(facts: &Facts<'_>, group: &str) -> Option<String> {
    facts.machine.text(format!("{GROUPS}/{group}/type"))
}

fn strict(facts: &Facts<'_>) -> Outcome {
    // VFIO has its own domains, which flush at once.
    let ours = |(_, devices): &(String, Vec<(String, String)>)| {
        devices.iter().any(|(_, driver)| driver == "contigo")
    };
    let groups: Vec<_> = groups(facts).into_iter().filter(ours).collect();
    if groups.is_empty() {
        return skipped("no device of the module contigo is behind an IOMMU");
    }
    let lazy = |(group, _): &&(String, _)| kind(facts, group).as_deref() == Some("DMA-FQ");
    match groups.iter().filter(lazy).count() {
        0 => fine(format!("{} groups", groups.len())),
        count => note(format!("{count} of {} groups are DMA-FQ", groups.len())),
    }
}

/// The devices of each group, with their drivers.
fn groups(facts: &Facts<'_>) -> Vec<(String, Vec<(String, String)>)> {
    let driver = |device: &str| {
        ["pci", "platform"]
            .iter()
            .find_map(|bus| {
                facts.machine.link_name(format!("sys/bus/{bus}/devices/{device}/driver"))
            })
            .unwrap_or_default()
    };
    let devices = |group: &String| {
        facts
            .machine
            .list(format!("{GROUPS}/{group}/devices"))
            .into_iter()
            .map(|device| {
                let driver = driver(&device);
                (device, driver)
            })
            .collect()
    };
    facts
        .iommu_groups()
        .into_iter()
        .map(|group| {
            let devices = devices(&group);
            (group, devices)
        })
        .collect()
}

/// The groups that contain a VFIO device.
fn passed(facts: &Facts<'_>) -> Vec<(String, Vec<(String, String)>)> {
    groups(facts)
        .into_iter()
        .filter(|(_, devices)| devices.iter().any(|(_, driver)| driver.contains("vfio")))
        .collect()
}

fn viable(facts: &Facts<'_>) -> Outcome {
    let groups = passed(facts);
    if groups.is_empty() {
        return skipped("no device is VFIO's");
    }
    // A port and a stub do not block (Linux, Documentation/driver-api/vfio.rst).
    let blocks = |driver: &str| {
        !driver.is_empty()
            && !driver.contains("vfio")
            && !["pcieport", "pci-stub"].contains(&driver)
    };
    let all = groups.iter().flat_map(|(group, devices)| {
        devices.iter().map(move |(device, driver)| (group, device, driver))
    });
    let bad: Vec<_> = all
        .filter(|(.., driver)| blocks(driver))
        .map(|(group, device, driver)| format!("group {group}: {driver} has {device}"))
        .collect();
    none_of(&bad, format!("{} groups", groups.len()))
}

fn noiommu(facts: &Facts<'_>) -> Outcome {
    match facts.machine.text("sys/module/vfio/parameters/enable_unsafe_noiommu_mode").as_deref() {
        None => skipped("VFIO is not loaded, or cannot be used so"),
        Some("Y" | "1") => note("enable_unsafe_noiommu_mode=Y"),
        Some(_) => fine("enable_unsafe_noiommu_mode=N"),
    }
}

fn memlock(facts: &Facts<'_>) -> Outcome {
    if passed(facts).is_empty() {
        return skipped("no device is VFIO's");
    }
    if facts.status("CapEff", 16).unwrap_or(0) & CAP_IPC_LOCK != 0 {
        return fine("CAP_IPC_LOCK: no limit");
    }
    let limits = facts.machine.text("proc/self/limits").unwrap_or_default();
    let Some(limit) = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max locked memory")?.split_ascii_whitespace().next())
    else {
        return skipped("the limit cannot be read");
    };
    match limit.parse::<u64>() {
        Ok(bytes) if bytes < LOCKED_MIN_BYTES => note(format!("{bytes} bytes")),
        Ok(bytes) => fine(format!("{bytes} bytes")),
        Err(_) => fine("unlimited"),
    }
}
