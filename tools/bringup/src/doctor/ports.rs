//! The registers around the fabric's ports, if the caller has read them.

use super::{Check, Facts, Outcome, fault, fine, note, skipped};
use crate::ports::{AccessError, BROADCAST, Fact, Reading, Verdict};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "port-width",
        title: "each port of the processor is as wide as the design's",
        cause: "The boot code was built for another design: half of each word is missing, and no \
                error says it.",
        cure: "sudo contigo board prepare --design top.hwh --yes, or boot code with this design's \
               handoff",
        source: "UG585, appendix B, axi_hp: AFI_RDCHAN_CTRL; UG1087, AFIFM and afi_fs",
        look: |facts| judged(facts, |name| name.ends_with(" width")),
    },
    Check {
        id: "level-shifters",
        title: "the level shifters to the fabric are on",
        cause: "With them off no signal crosses: an access to a core hangs the processor, and a \
                core's never ends.",
        cure: "sudo contigo board prepare --yes, after the bitstream was loaded",
        source: "Linux, drivers/fpga/zynq-fpga.c, zynq_fpga_ops_write_complete",
        look: |facts| judged(facts, |name| name == "level shifters"),
    },
    Check {
        id: "fabric-reset",
        title: "no reset of the fabric and no bridge is held",
        cause: "A core in reset answers nothing, and a bridge in reset hangs the processor.",
        cure: "sudo contigo board prepare --design top.hwh --yes; on Cyclone V: bridge enable in \
               U-Boot",
        source: "Linux, drivers/fpga/zynq-fpga.c, SLCR_FPGA_RST_CTRL; \
                 drivers/fpga/altera-hps2fpga.c",
        look: |facts| {
            judged(facts, |name| {
                name.starts_with("reset ")
                    || name.starts_with("bridge ")
                    || name.starts_with("ports to ")
            })
        },
    },
    Check {
        id: "hpc-snooping",
        title: "an HPC port snoops where the tree has dma-coherent",
        cause: "Else the core reads what the memory has and not what the caches have, and no error \
                says it.",
        cure: BROADCAST,
        source: "UG1087, LPD_SLCR: lpd_apu",
        look: |facts| judged(facts, |name| name.starts_with("snooping ")),
    },
];

/// The words for states in which no access passes.
const SHUT: [&str; 3] = ["held", "in reset", "closed"];

fn judged(facts: &Facts<'_>, is: fn(&str) -> bool) -> Outcome {
    let all = match &facts.registers {
        None => {
            return skipped(
                "not measurable: contigo board --registers reads it, or doctor --probe as root",
            );
        }
        Some(Err(why)) => return skipped(format!("not measurable: {why}")),
        Some(Ok(all)) => all,
    };
    let fields: Vec<_> = all.iter().filter(|fact| is(fact.field.name)).collect();
    let value = |fact: &Fact| match &fact.reading {
        Reading::Value(value) => fact.field.say(*value),
        Reading::Held => "its block is held in reset".to_owned(),
        Reading::Closed => {
            "left alone: no bitstream runs, the level shifters or all clocks are off, or no design \
             says that it is used"
                .to_owned()
        }
        Reading::Failed(error) => error.to_string(),
    };
    let listed = |of: &dyn Fn(&Fact) -> bool| -> Vec<String> {
        let those = fields.iter().filter(|fact| of(fact));
        those.map(|fact| format!("{}: {}", fact.field.name, value(fact))).collect()
    };
    let wrong = |fact: &Fact| fact.verdict == Verdict::Wrong;
    // It was the last access, whatever its purpose: nothing more may start on that processor.
    let hangs = |fact: &Fact| matches!(fact.reading, Reading::Failed(AccessError::NoAnswer { .. }));
    let wrong = listed(&|fact| wrong(fact) || hangs(fact));
    // The right value is not known. A state in which no access passes is reported anyway, but a
    // block in reset is reported only if a design uses its port.
    let shut =
        |fact: &Fact| fact.verdict == Verdict::Unknown && SHUT.contains(&value(fact).as_str());
    let shut = listed(&|fact| {
        shut(fact) || fact.wanted.is_some() && matches!(fact.reading, Reading::Held)
    });
    let right = fields.iter().filter(|fact| fact.verdict == Verdict::Right).count();
    let rest = listed(&|fact| fact.verdict != Verdict::Right).join(", ");
    match (wrong.is_empty(), shut.is_empty(), right) {
        _ if fields.is_empty() => skipped("this SoC has no such register"),
        (false, ..) => fault(wrong.join(", ")),
        (true, false, _) => note(shut.join(", ")),
        (true, true, 0) => skipped(format!(
            "not compared: neither a design (--design) nor the tree says the value; {rest}"
        )),
        (true, true, _) => fine(format!("{right} of {} are right", fields.len())),
    }
}
