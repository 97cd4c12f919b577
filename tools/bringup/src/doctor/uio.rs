//! The devices of uio, and their interrupts.

use super::{Check, Facts, Outcome, fault, fine, none_of, noted, skipped};
use crate::tree::{Node, cells};

const CLASS: &str = "sys/class/uio";
const DRIVER: &str = "sys/bus/platform/drivers/uio_pdrv_genirq";
const DRIVER_NAME: &str = "uio_pdrv_genirq";

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "uio-module",
        title: "the driver of generic-uio nodes is loaded",
        cause: "The tree has nodes for user space, and the kernel has no driver for them.",
        cure: "modprobe uio_pdrv_genirq of_id=generic-uio, or a kernel with CONFIG_UIO_PDRV_GENIRQ",
        source: "https://github.com/foss-for-synopsys-dwc-arc-processors/toolchain/issues/460",
        look: module,
    },
    Check {
        id: "uio-parameter",
        title: "the driver takes generic-uio nodes",
        cause: "uio_pdrv_genirq takes no node at all unless its parameter of_id names one.",
        cure: "uio_pdrv_genirq.of_id=generic-uio on the command line; for a module in modprobe.d, \
               as options",
        source: "Linux, drivers/uio/uio_pdrv_genirq.c, of_id",
        look: parameter,
    },
    Check {
        id: "uio-interrupt-wired",
        title: "each node has an interrupt",
        cause: "A wait for the interrupt of a node without one never ends; the core must be \
                polled.",
        cure: "interrupt-parent = <&intc>; interrupts = <0 29 4>; or open the device without \
               interrupt",
        source: "https://github.com/hdlguy/zcu104_ubuntu/issues/6",
        look: wired,
    },
    Check {
        id: "uio-interrupt-named",
        title: "the kernel has each node's interrupt",
        cause: "The kernel could not map it: another number, another controller, or a name in the \
                way.",
        cure: "dmesg | grep -i irq; interrupts = <0 29 4>; with the number minus 32, as the GIC's \
               binding counts",
        source: "https://github.com/hdlguy/zcu104_ubuntu/issues/6",
        look: named,
    },
    Check {
        id: "uio-interrupt-counts",
        title: "each interrupt has come once",
        cause: "The core never raised it, it is masked in the core, or it goes to another line.",
        cure: "run one job, and look at /proc/interrupts; then at the core's own enable register",
        source: "https://github.com/Xilinx/XRT/issues/9737",
        look: counts,
    },
    Check {
        id: "uio-one-interrupt",
        title: "no node has a second interrupt",
        cause: "uio serves a node's first interrupt only; the others are lost.",
        cure: "a node for each interrupt, or compatible = \"contigo,engine\"; which serves all of \
               them",
        source: "Linux, drivers/uio/uio_pdrv_genirq.c, platform_get_irq_optional(pdev, 0)",
        look: one,
    },
    Check {
        id: "intc-driver",
        title: "a driver enables the AXI interrupt controller",
        cause: "Until a driver writes its master enable register (MER), the controller raises \
                nothing.",
        cure: "a kernel with CONFIG_XILINX_INTC=y, whose driver writes MER; never generic-uio for \
               it",
        source: "https://github.com/Xilinx/XRT/issues/9737",
        look: intc,
    },
];

/// The nodes, each with the name of its uio device, if the kernel has one.
fn nodes<'a>(facts: &'a Facts<'_>) -> Vec<(&'a Node, Option<String>)> {
    let there = served(facts);
    let named = |node: &Node| {
        there.iter().find(|one| is_of(facts, one, node)).map(|(.., name)| name.clone())
    };
    facts.nodes_of("generic-uio").into_iter().map(|node| (node, named(node))).collect()
}

/// Whether a uio device belongs to a node: by the node if sysfs links it, else by name, which two
/// nodes may share.
fn is_of(facts: &Facts<'_>, (_, of, name): &(String, Option<String>, String), node: &Node) -> bool {
    of.as_ref().map_or_else(|| *name == named_as(facts, node), |path| *path == node.path)
}

/// The nodes that wait for uio's driver: they have no other driver.
pub(super) fn waiting<'a>(facts: &'a Facts<'_>) -> Vec<&'a Node> {
    facts
        .nodes_of("generic-uio")
        .into_iter()
        .filter(|node| facts.given_away(node, DRIVER_NAME).is_none())
        .collect()
}

/// The uio devices: each with the path of its node, and its name.
fn served(facts: &Facts<'_>) -> Vec<(String, Option<String>, String)> {
    let name = |uio: &String| facts.machine.text(format!("{CLASS}/{uio}/name")).unwrap_or_default();
    facts
        .class(CLASS)
        .into_iter()
        .map(|(uio, node)| (name(&uio), uio, node))
        .map(|(name, uio, node)| (uio, node, name))
        .collect()
}

/// The uio devices of the tree's nodes, without a vendor's own.
pub(super) fn devices(facts: &Facts<'_>) -> Vec<String> {
    let nodes = facts.nodes_of("generic-uio");
    let ours =
        |one: &(String, Option<String>, String)| nodes.iter().any(|node| is_of(facts, one, node));
    served(facts).into_iter().filter(ours).map(|(uio, ..)| uio).collect()
}

/// The name of a node's device: `linux,uio-name`, or the node's own.
fn named_as(facts: &Facts<'_>, node: &Node) -> String {
    let said = node
        .property(facts.machine, "linux,uio-name")
        .map(|bytes| String::from_utf8_lossy(&bytes).trim_end_matches('\0').to_owned());
    said.unwrap_or_else(|| node.name().to_owned())
}

fn module(facts: &Facts<'_>) -> Outcome {
    match waiting(facts).len() {
        0 => skipped("the tree has no such node, or other drivers have each"),
        count if facts.machine.has(DRIVER) => fine(format!("{count} nodes")),
        count => fault(format!("{count} nodes, no driver")),
    }
}

fn parameter(facts: &Facts<'_>) -> Outcome {
    let nodes = nodes(facts);
    if nodes.is_empty() || !facts.machine.has(DRIVER) {
        return skipped("no such node, or no driver");
    }
    let (mut bad, mut given) = (Vec::new(), Vec::new());
    for (node, _) in nodes.iter().filter(|(_, served)| served.is_none()) {
        match facts.given_away(node, DRIVER_NAME) {
            Some(words) => given.push(words),
            None => bad.push(format!("{} has no /dev/uio", node.full_name())),
        }
    }
    if bad.is_empty() {
        noted(&given, format!("{} nodes are served", nodes.len()))
    } else {
        none_of(&bad, "")
    }
}

/// The number of a node's interrupts. A controller defines how many cells each interrupt has.
fn interrupts(facts: &Facts<'_>, node: &Node) -> usize {
    let property =
        |node: &Node, name: &str| node.property(facts.machine, name).map(|bytes| cells(&bytes));
    let first = |node: &Node, name: &str| property(node, name)?.first().copied();
    // The GIC has three cells.
    let each = |phandle: Option<u32>| {
        phandle.and_then(|phandle| facts.interrupt_cells(phandle)).map_or(3, |n| n as usize)
    };
    // By the specification the second property takes precedence (chapter 2.4).
    let Some(list) = property(node, "interrupts-extended") else {
        let parent = first(node, "interrupt-parent");
        let parent = parent.or_else(|| {
            node.ancestors(&facts.nodes).find_map(|above| first(above, "interrupt-parent"))
        });
        return property(node, "interrupts")
            .map_or(0, |list| list.len().div_ceil(each(parent).max(1)));
    };
    let (mut rest, mut count) = (list.as_slice(), 0);
    while let Some((&phandle, more)) = rest.split_first() {
        count += 1;
        rest = more.get(each(Some(phandle))..).unwrap_or_default();
    }
    count
}

fn wired(facts: &Facts<'_>) -> Outcome {
    let nodes = nodes(facts);
    if nodes.is_empty() {
        return skipped("the tree has no such node");
    }
    let bad: Vec<_> = nodes
        .iter()
        .filter(|(node, _)| interrupts(facts, node) == 0)
        .map(|(node, _)| node.full_name().to_owned())
        .collect();
    noted(&bad, format!("{} nodes", nodes.len()))
}

/// Served nodes with an interrupt, and its count; `None`: the kernel does not list it. The line of
/// a shared interrupt lists each device behind a comma.
fn counted<'a>(facts: &'a Facts<'_>) -> Vec<(&'a Node, Option<u64>)> {
    let text = facts.machine.text("proc/interrupts").unwrap_or_default();
    let count = |name: &str| {
        let is = |line: &&str| {
            line.ends_with(&format!(" {name}"))
                || line.split([',', ' ']).skip(1).any(|word| word == name)
        };
        let came = |line: &str| {
            line.split_ascii_whitespace()
                .skip(1)
                .map_while(|word| word.parse::<u64>().ok())
                .fold(0, u64::saturating_add)
        };
        text.lines().filter(is).map(came).reduce(u64::saturating_add)
    };
    // The interrupt has the device's own name, even if the tree has changed since.
    let nodes = nodes(facts).into_iter().filter(|(node, _)| interrupts(facts, node) > 0);
    nodes.filter_map(|(node, served)| Some((node, count(&served?)))).collect()
}

fn named(facts: &Facts<'_>) -> Outcome {
    let nodes = counted(facts);
    if nodes.is_empty() {
        return skipped("no node with an interrupt is served");
    }
    let bad: Vec<_> = nodes
        .iter()
        .filter(|(_, count)| count.is_none())
        .map(|(node, _)| node.full_name().to_owned())
        .collect();
    none_of(&bad, format!("{} in /proc/interrupts", nodes.len()))
}

fn counts(facts: &Facts<'_>) -> Outcome {
    let nodes: Vec<_> =
        counted(facts).into_iter().filter_map(|(node, count)| Some((node, count?))).collect();
    if nodes.is_empty() {
        return skipped("the kernel lists none");
    }
    let bad: Vec<_> = nodes
        .iter()
        .filter(|(_, count)| *count == 0)
        .map(|(node, _)| format!("{}: 0", node.full_name()))
        .collect();
    let good = nodes
        .iter()
        .map(|(node, count)| format!("{}: {count}", node.full_name()))
        .collect::<Vec<_>>();
    noted(&bad, good.join(", "))
}

fn one(facts: &Facts<'_>) -> Outcome {
    let nodes = nodes(facts);
    if nodes.is_empty() {
        return skipped("the tree has no such node");
    }
    let more = |(node, _): &(&Node, Option<String>)| {
        Some(interrupts(facts, node))
            .filter(|&count| count > 1)
            .map(|count| format!("{}: {count}", node.full_name()))
    };
    let bad: Vec<_> = nodes.iter().filter_map(more).collect();
    noted(&bad, format!("{} nodes", nodes.len()))
}

/// For each controller the driver maps an interrupt domain, and writes MER when it does (Linux,
/// drivers/irqchip/irq-xilinx-intc.c). It is no platform driver: only the domain shows it.
fn intc(facts: &Facts<'_>) -> Outcome {
    let ours = |node: &&Node| {
        node.compatible
            .iter()
            .any(|one| one.starts_with("xlnx,xps-intc") || one.starts_with("xlnx,axi-intc"))
    };
    let all: Vec<_> = facts.nodes.iter().filter(ours).collect();
    if all.is_empty() {
        return skipped("the tree has no such controller");
    }
    let domains = facts.machine.list("sys/kernel/debug/irq/domains");
    let config = facts.config("XILINX_INTC");
    let (mut bad, mut unknown) = (Vec::new(), 0);
    for node in &all {
        // A domain is named by its node's path, with colons.
        let name = format!(":{}", node.path.replace('/', ":"));
        let name = name.as_str();
        match facts.driver(node) {
            _ if node.is("generic-uio") => {
                bad.push(format!("{} is a node of uio", node.full_name()))
            }
            Some(driver @ ("uio_pdrv_genirq" | "contigo")) => {
                bad.push(format!("{} has {driver}", node.full_name()))
            }
            _ if domains
                .iter()
                .any(|domain| domain == name || domain.starts_with(&format!("{name}-"))) => {}
            _ if !domains.is_empty() => {
                bad.push(format!("{} has no domain of interrupts", node.full_name()))
            }
            _ if config == Some(false) => {
                bad.push(format!("{}, and no CONFIG_XILINX_INTC", node.full_name()))
            }
            _ if config.is_none() => unknown += 1,
            _ => {}
        }
    }
    if bad.is_empty() && unknown > 0 {
        return skipped(
            "not measurable: no kernel's configuration, and no domains of interrupts in debugfs",
        );
    }
    none_of(&bad, format!("{} controllers", all.len()))
}
