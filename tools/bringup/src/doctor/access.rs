//! The permissions to open the devices.

use super::facts::last;
use super::{Check, Facts, Outcome, choice, fine, none_of, note, noted, skipped};
use std::fs;
use std::os::unix::fs::MetadataExt;

const CURE: &str = "install kernel-helpers/udev/60-contigo.rules, then udevadm trigger; for now: \
                    chgrp dma NODE; chmod 660 NODE. Warning: a program that opens it reaches all \
                    memory that its device reaches";
const CAUSE: &str = "Only root can open the node, and a program without root ends with EACCES.";

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "group-missing",
        title: "the group dma is there",
        cause: "udev gives the devices to a group that was not made, so they stay with root: \
                enough where all runs as root.",
        cure: "groupadd --system dma; usermod --append --groups dma USER",
        source: "kernel-helpers/README.md, Install",
        look: group,
    },
    Check {
        id: "heap-rights",
        title: "the group may open the dma-heaps",
        cause: CAUSE,
        cure: CURE,
        source: "https://github.com/Freescale/libimxdmabuffer/issues/8",
        look: |facts| {
            let heaps = below(facts, "dev/dma_heap").into_iter();
            // The program chooses its heap.
            choice(nodes(facts, heaps.filter(|path| !last(path).starts_with("system")).collect()))
        },
    },
    Check {
        id: "u-dma-buf-rights",
        title: "the group may open the blocks of u-dma-buf",
        cause: CAUSE,
        cure: CURE,
        source: "kernel-helpers/README.md, Does it work?",
        look: |facts| {
            nodes(
                facts,
                facts.machine.blocks().iter().map(|block| format!("dev/{}", last(block))).collect(),
            )
        },
    },
    Check {
        id: "uio-rights",
        title: "the group may open uio's devices",
        cause: CAUSE,
        cure: CURE,
        source: "kernel-helpers/README.md, With uio instead",
        look: |facts| {
            nodes(
                facts,
                super::uio::devices(facts).iter().map(|name| format!("dev/{name}")).collect(),
            )
        },
    },
    Check {
        id: "contigo-rights-node",
        title: "the group may open the contigo devices",
        cause: CAUSE,
        cure: CURE,
        source: "kernel-helpers/README.md, Who may",
        look: |facts| nodes(facts, below(facts, "dev/contigo")),
    },
    Check {
        id: "vfio-rights",
        title: "the group may open the VFIO groups",
        cause: CAUSE,
        cure: CURE,
        source: "https://github.com/VoltCyclone/PCILeechFWGenerator/issues/160",
        look: |facts| {
            let groups = below(facts, "dev/vfio").into_iter();
            // A group may belong to a virtual machine.
            choice(nodes(facts, groups.filter(|path| last(path).parse::<u32>().is_ok()).collect()))
        },
    },
];

fn below(facts: &Facts<'_>, folder: &str) -> Vec<String> {
    facts.machine.list(folder).into_iter().map(|name| format!("{folder}/{name}")).collect()
}

/// The number of the group, and whether the machine has a list of groups.
fn dma(facts: &Facts<'_>) -> (Option<u32>, bool) {
    let Some(text) = facts.machine.text("etc/group") else { return (None, false) };
    (text.lines().find_map(|line| line.strip_prefix("dma:")?.split(':').nth(1)?.parse().ok()), true)
}

fn group(facts: &Facts<'_>) -> Outcome {
    if !facts.prepared() {
        return skipped("no device for it");
    }
    match dma(facts) {
        (_, false) => skipped("no /etc/group"),
        (Some(id), true) => fine(format!("group {id}")),
        (None, true) => note("no dma in /etc/group"),
    }
}

/// Reports the nodes that only root may read and write: a fault if the machine has the group for
/// them. Another group may be intended.
fn nodes(facts: &Facts<'_>, paths: Vec<String>) -> Outcome {
    let (id, _) = dma(facts);
    if !facts.prepared() {
        return skipped("this machine was not prepared for programs");
    }
    let all: Vec<_> = paths
        .into_iter()
        .filter_map(|path| Some((facts.machine.metadata(&path).ok()?, path)))
        .collect();
    if all.is_empty() {
        return skipped("there is none");
    }
    let allowed = |(data, _): &&(fs::Metadata, String)| {
        let (others, group) = (data.mode() & 0o006 == 0o006, data.mode() & 0o060 == 0o060);
        others || group && (data.gid() != 0 || id == Some(0))
    };
    let words = |(data, path): &(fs::Metadata, String)| {
        format!("/{path}: group {}, mode {:o}", data.gid(), data.mode() & 0o777)
    };
    let bad: Vec<_> = all.iter().filter(|node| !allowed(node)).map(words).collect();
    let good = format!("{} nodes", all.len());
    if !bad.is_empty() {
        return if id.is_some() { none_of(&bad, good) } else { noted(&bad, good) };
    }
    // The group has access, but this user is not in it. Another user may be.
    let outside = all.iter().filter(|(data, _)| !facts.may_open(data));
    noted(
        &outside
            .map(|node| format!("you are not in the group: {}", words(node)))
            .collect::<Vec<_>>(),
        good,
    )
}
