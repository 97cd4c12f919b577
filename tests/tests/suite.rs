//! The suite for drivers: 1,000 seeds of random jobs under random faults for each driver and mode.
//! The price of a job is counted too, and is a page of the documents.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that panics has failed, which is its purpose"
)]

#[path = "suite/ap_ctrl.rs"]
mod ap_ctrl;
#[path = "suite/axi_cdma.rs"]
mod axi_cdma;
#[path = "suite/axi_dma.rs"]
mod axi_dma;
#[path = "suite/axi_dmac.rs"]
mod axi_dmac;
#[path = "suite/axi_mcdma.rs"]
mod axi_mcdma;
#[path = "suite/axi_vdma.rs"]
mod axi_vdma;
#[path = "suite/litepcie.rs"]
mod litepcie;
#[path = "suite/msgdma.rs"]
mod msgdma;
#[path = "suite/page.rs"]
mod page;
#[path = "suite/programs.rs"]
mod programs;
#[path = "suite/stale.rs"]
mod stale;
#[path = "suite/unseen.rs"]
mod unseen;
#[path = "suite/zdma.rs"]
mod zdma;

use contigo_testkit::{
    conformance::report,
    emulated,
    suite::{Subject, faults},
};

const SEEDS: u64 = 1_000;
/// Under an emulator, where the same code is only translated: each kind of fault, both ways to
/// memory.
const FEW: u64 = 8;

/// All seeds for one subject. Every way in which a job ends was met.
fn run(subject: &impl Subject) {
    let all = emulated::why().is_none();
    let seeds = if all { SEEDS } else { FEW };
    let verdict = faults(subject, 0..seeds).map(|tally| {
        println!("{}: {tally:?}", subject.name());
        let failed = tally.failed > seeds / 10 || !subject.tells_failures();
        let met = tally.completed > 10 * seeds
            && failed
            && tally.cancelled > seeds / 2
            && tally.resets > 0;
        assert!(met || !all, "{tally:?}");
    });
    report("suite", subject.name(), verdict);
}
