//! The fabric: clocks, bridges, and what its nodes wait for.

use super::{Check, Facts, Outcome, fault, fine, none_of, note, skipped};
use crate::clocks::{Crystal, Fabric, fabrics, providers};
use crate::fpga::Bridge;
use crate::tree::Node;

const CLOCKS: &str = "sys/kernel/debug/clk";

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "clk-off",
        title: "a clock of the fabric runs",
        cause: "A register of a core without clock hangs the processor.",
        cure: "clk_ignore_unused on the command line, or clocks = <&clkc 15>; in a node of \
               contigo,engine",
        source: "https://github.com/analogdevicesinc/linux/pull/3406",
        look: clock,
    },
    Check {
        id: "clk-unused",
        title: "no driver turns off the clocks of uio's nodes",
        cause: "At the end of its boot the kernel turns off each clock that no driver asks for; \
                uio asks for none.",
        cure: "clk_ignore_unused on the kernel's command line, or nodes of contigo,engine with \
               clocks",
        source: "https://github.com/analogdevicesinc/linux/pull/3406",
        look: unused,
    },
    Check {
        id: "clk-crystal",
        title: "the tree has the rate of the board's crystal",
        cause: "The kernel reckons every rate from it: with a tree of another board all are wrong \
                by one factor.",
        cure: "ps-clk-frequency = <50000000>; in &clkc, on a PYNQ-Z2; contigo boards --json has \
               each board's",
        source: "Linux, drivers/clk/zynq/clkc.c, zynq_clk_setup",
        look: crystal,
    },
    Check {
        id: "device-waits",
        title: "no device of a program waits for its clock or its reset",
        cause: "The driver that has the clock, the reset or the power domain is missing, so the \
                device never comes.",
        cure: "build that provider's driver into the kernel; cat \
               /sys/kernel/debug/devices_deferred names it",
        source: "Linux, drivers/base/dd.c, devices_deferred",
        look: waits,
    },
    Check {
        id: "bridge-closed",
        title: "a bridge to the fabric is open",
        cause: "An access through a closed bridge hangs the processor, or is a bus error.",
        cure: "bridge enable in U-Boot, bridge-enable = <1>; in its node, or load by an \
               fpga-region",
        source: "https://github.com/zangman/de10-nano/issues/1",
        look: bridge,
    },
    Check {
        id: "fabric-empty",
        title: "the fabric has a bitstream",
        cause: "The tree has cores of the fabric, and the kernel's manager has loaded nothing; the \
                boot loader may have.",
        cure: "contigo fpga load FILE.bit",
        source: "Linux, drivers/fpga/zynq-fpga.c, zynq_fpga_ops_state",
        look: empty,
    },
];

/// The kernel's clocks of the fabric: the name, the number of users that enabled it, and whether it
/// runs. The hardware's state counts before the kernel's (Linux 5.9).
fn clocks(facts: &Facts<'_>) -> Vec<(String, u64, bool)> {
    let ours = |name: &String| Fabric::named(name).is_some();
    let summary = crate::clocks::clocks(facts.machine).unwrap_or_default();
    let gate = |name: &str| summary.iter().find(|clock| clock.name == name)?.running;
    let names = facts.machine.list(CLOCKS).into_iter().filter(ours);
    names
        .filter_map(|name| {
            let count = facts.number(&format!("{CLOCKS}/{name}/clk_enable_count"))?;
            let runs = gate(&name).unwrap_or(count > 0);
            Some((name, count, runs))
        })
        .collect()
}

fn clock(facts: &Facts<'_>) -> Outcome {
    let has = |node: &Node| node.property(facts.machine, "clocks").is_some();
    // The module contigo enables a node's clocks while a program has the device open.
    let cores = facts.fabric();
    let providers = providers(facts.machine);
    let named = |node: &Node| -> Vec<_> {
        let found =
            fabrics(facts.machine, &providers, &node.folder(), "clocks").into_iter().flatten();
        found.map(|found| found.fabric).collect()
    };
    // A core that uses no clock of the fabric is left out.
    let cores: Vec<_> = cores
        .into_iter()
        .filter(|node| {
            if node.is("contigo,engine") {
                !has(node)
            } else {
                !has(node) || !named(node).is_empty()
            }
        })
        .collect();
    if cores.is_empty() || facts.parameter("clk_ignore_unused").is_some() {
        return skipped("no core of the fabric that wants a running clock, or clk_ignore_unused");
    }
    let clocks = clocks(facts);
    if clocks.is_empty() {
        return skipped("not readable: run as root, with debugfs");
    }
    let word = |(name, count, runs): &(String, u64, bool)| {
        format!("{name}: {count}, {}", if *runs { "runs" } else { "off" })
    };
    let words = clocks.iter().map(word).collect::<Vec<_>>().join("; ");
    let is_off = |fabric: Fabric| {
        clocks.iter().any(|(name, _, runs)| !*runs && Fabric::named(name) == Some(fabric))
    };
    let off: Vec<_> = cores
        .iter()
        .filter(|node| named(node).into_iter().any(is_off))
        .map(|node| node.full_name())
        .collect();
    // A core without a named clock may use one of the board's own.
    match (off.is_empty(), clocks.iter().any(|(.., runs)| *runs)) {
        (false, _) => fault(format!("{words}; off for {}", off.join(", "))),
        (true, true) => fine(words),
        (true, false) => note(words),
    }
}

fn unused(facts: &Facts<'_>) -> Outcome {
    let uio = facts.fabric().iter().filter(|node| node.is("generic-uio")).count();
    if uio == 0 {
        skipped("no core of the fabric is uio's")
    } else if facts.parameter("clk_ignore_unused").is_some() {
        fine("clk_ignore_unused")
    } else if clocks(facts).is_empty() {
        note(format!("{uio} cores, and no clk_ignore_unused"))
    } else {
        fine("the clocks are known")
    }
}

fn crystal(facts: &Facts<'_>) -> Outcome {
    let Some(crystal) = Crystal::of(facts.machine) else {
        return skipped("the tree names no board whose crystal is known, or has no rate of it");
    };
    let Crystal { board, board_hz, place, tree_hz, .. } = &crystal;
    let words = format!("{tree_hz} Hz by {place}; {board} has {board_hz} Hz");
    if crystal.is_right() { fine(words) } else { fault(words) }
}

fn waits(facts: &Facts<'_>) -> Outcome {
    let Some(text) = facts.machine.text("sys/kernel/debug/devices_deferred") else {
        return skipped("not readable: run as root, with debugfs");
    };
    // Other devices wait on working machines, too: the kernel may be built without their driver.
    let ours =
        |node: &&Node| node.is("contigo,engine") || node.is("generic-uio") || node.is_block();
    let ours: Vec<_> = facts.nodes.iter().filter(ours).collect();
    let is_ours = |device: &str| {
        let of = facts.of_node(&format!("sys/bus/platform/devices/{device}"));
        ours.iter().any(|node| {
            of.as_ref().map_or_else(|| node.device() == device, |path| *path == node.path)
        })
    };
    let (mut bad, mut others) = (Vec::new(), 0);
    for line in text.lines() {
        let words: Vec<_> = line.split_ascii_whitespace().collect();
        if words.first().is_some_and(|device| is_ours(device)) {
            bad.push(words.join(" "));
        } else {
            others += 1;
        }
    }
    none_of(&bad, format!("{others} of the kernel's own wait"))
}

fn bridge(facts: &Facts<'_>) -> Outcome {
    let bridges = Bridge::all(facts.machine);
    if bridges.is_empty() || facts.fabric().is_empty() {
        return skipped("the kernel knows none, or the tree has no core of the fabric");
    }
    let (mut open, mut closed) = (Vec::new(), Vec::new());
    for bridge in bridges {
        if bridge.open == Some(false) { &mut closed } else { &mut open }.push(bridge.name);
    }
    // Few designs have a core behind every bridge.
    if open.is_empty() {
        fault(closed.join(", "))
    } else {
        fine(format!("open: {}, closed: {}", open.join(" "), closed.join(" ")))
    }
}

fn empty(facts: &Facts<'_>) -> Outcome {
    let folder = "sys/class/fpga_manager";
    let states: Vec<_> = facts
        .machine
        .list(folder)
        .iter()
        .filter_map(|id| {
            Some(format!("{id}: {}", facts.machine.text(format!("{folder}/{id}/state"))?))
        })
        .collect();
    if states.is_empty() || facts.fabric().is_empty() {
        return skipped("no manager, or the tree has no core of the fabric");
    }
    let words = states.join(", ");
    if states.iter().any(|state| state.ends_with(": operating")) {
        fine(words)
    } else {
        note(words)
    }
}
