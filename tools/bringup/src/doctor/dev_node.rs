//! The module contigo.

use super::{Check, Facts, Outcome, fault, fine, none_of, note, noted, skipped};
use crate::tree::Node;

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "contigo-module",
        title: "the module of contigo,engine nodes is loaded",
        cause: "The tree has engines for the module contigo, and it is not there.",
        cure: "modprobe contigo; before: make -C kernel-helpers/module dkms; dkms install \
               contigo/0.1.0",
        source: "kernel-helpers/README.md, The module",
        look: module,
    },
    Check {
        id: "contigo-bound",
        title: "the module has each engine of the tree",
        cause: "Another driver has the device, its clock or reset is missing, or the probe failed.",
        cure: "dmesg | grep contigo; then in /sys/bus/platform: echo contigo > \
               devices/DEVICE/driver_override; echo DEVICE > devices/DEVICE/driver/unbind; echo \
               DEVICE > drivers_probe",
        source: "kernel-helpers/README.md, Does it work?",
        look: bound,
    },
    Check {
        id: "contigo-rights",
        title: "the group may open an engine that nothing confines",
        cause: "Without an IOMMU an engine reaches all memory, so opening it needs CAP_SYS_RAWIO.",
        cure: "options contigo unprivileged=1 in /etc/modprobe.d, or setcap cap_sys_rawio+ep \
               PROGRAM. Warning: a program that drives such an engine reaches all memory, the \
               kernel's too",
        source: "kernel-helpers/README.md, Who may",
        look: rights,
    },
    Check {
        id: "contigo-lockdown",
        title: "the kernel is not locked down",
        cause: "A kernel that is locked down (Secure Boot) refuses devices that no IOMMU confines, \
                and /dev/mem.",
        cure: "put the device behind an IOMMU; else take lockdown= from the command line, or \
               switch Secure Boot off",
        source: "Linux, security/lockdown/lockdown.c",
        look: lockdown,
    },
];

/// The engines that wait for the module: they have no other driver.
pub(super) fn waiting<'a>(facts: &'a Facts<'_>) -> Vec<&'a Node> {
    facts
        .nodes_of("contigo,engine")
        .into_iter()
        .filter(|node| facts.given_away(node, "contigo").is_none())
        .collect()
}

/// The module needs Linux 5.10. On an older kernel another driver serves.
pub(super) fn is_too_old(facts: &Facts<'_>) -> bool {
    facts.kernel().is_some_and(|version| version < (5, 10))
}

fn module(facts: &Facts<'_>) -> Outcome {
    match waiting(facts).len() {
        0 => skipped("the tree has no engine, or other drivers have each"),
        count if facts.machine.has("sys/module/contigo") => fine(format!("{count} engines")),
        count if is_too_old(facts) => {
            note(format!("{count} engines, and a kernel before 5.10, for which the module is not"))
        }
        count => fault(format!("{count} engines, not loaded")),
    }
}

fn bound(facts: &Facts<'_>) -> Outcome {
    let nodes = facts.nodes_of("contigo,engine");
    if nodes.is_empty() || !facts.machine.has("sys/module/contigo") {
        return skipped("no engine, or the module is not loaded");
    }
    let there = facts.class("sys/class/contigo");
    // By its node if sysfs links it, because buses translate the address in a device's name.
    let is = |node: &Node| {
        let mut named = there.iter();
        named.any(|(name, of)| {
            of.as_ref().map_or_else(|| *name == node.device(), |path| *path == node.path)
        })
    };
    let (mut bad, mut given, all) = (Vec::new(), Vec::new(), nodes.len());
    for node in nodes.into_iter().filter(|node| !is(node)) {
        match facts.given_away(node, "contigo") {
            Some(words) => given.push(words),
            None => bad.push(node.device()),
        }
    }
    if bad.is_empty() { noted(&given, format!("{all} engines")) } else { none_of(&bad, "") }
}

/// The engines of the module, or those of the tree if it is not loaded.
fn engines(facts: &Facts<'_>) -> Vec<String> {
    let there = facts.machine.list("sys/class/contigo");
    if there.is_empty() {
        facts.nodes_of("contigo,engine").into_iter().map(Node::device).collect()
    } else {
        there
    }
}

fn rights(facts: &Facts<'_>) -> Outcome {
    if facts.machine.list("sys/class/contigo").is_empty()
        || !facts.machine.has("sys/module/contigo")
    {
        return skipped("no engine, or the module is not loaded");
    }
    if engines(facts).iter().all(|device| facts.grouped(device)) {
        return skipped(
            "an IOMMU is before each of them, and the module looks whether it confines",
        );
    }
    match facts.machine.text("sys/module/contigo/parameters/unprivileged").as_deref() {
        Some("Y" | "1") => fine("unprivileged=1"),
        _ => note("unprivileged=0: root, or CAP_SYS_RAWIO"),
    }
}

fn lockdown(facts: &Facts<'_>) -> Outcome {
    if facts.nodes_of("contigo,engine").is_empty()
        && facts.machine.list("sys/class/contigo").is_empty()
    {
        return skipped("no engine");
    }
    match facts.machine.text("sys/kernel/security/lockdown") {
        None => skipped("this kernel cannot be locked down"),
        Some(_) if engines(facts).iter().all(|device| facts.grouped(device)) => {
            fine("an IOMMU is before each engine")
        }
        Some(state) if state.contains("[integrity]") || state.contains("[confidentiality]") => {
            fault(state)
        }
        Some(state) => fine(state.chars().take(60).collect::<String>()),
    }
}
