//! How long an interrupt takes to its program.

use super::{Check, Facts, Outcome, fine, note, skipped};

const AREA: &str = "latency";
const POLICIES: &str = "sys/devices/system/cpu/cpufreq";

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "governor",
        area: AREA,
        title: "the processor's clock does not change",
        cause: "A governor that saves power wakes a program late, and slows a polled wait.",
        cure: "for p in /sys/devices/system/cpu/cpufreq/policy*; do echo performance > $p/scaling_governor; done",
        source: "https://www.osadl.org/Single-View.111+M5ee8ef039f7.0.html",
        look: governor,
    },
    Check {
        id: "rt-throttled",
        area: AREA,
        title: "a PREEMPT_RT kernel does not throttle real-time programs",
        cause: "By default real-time programs stop for 50 ms of each second, in which a poll misses its deadline.",
        cure: "echo -1 > /proc/sys/kernel/sched_rt_runtime_us. Warning: a real-time program that never \
               sleeps then keeps its processor until a reset",
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
    // The file is of PREEMPT_RT's patches. Mainline has those since 6.12: its version names them.
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
