//! The suite for drivers: 1,000 seeds of random jobs under random faults for each driver and mode.
//! The price of a job is counted too, and is a page of the documents.

/// A test for each subject: `name: SUBJECT;`.
macro_rules! suite {
    ($($(#[$about:meta])* $name:ident: $subject:expr;)*) => {
        $(
            $(#[$about])*
            #[test]
            fn $name() {
                $crate::suite::run(&$subject);
            }
        )*
    };
}

pub(crate) mod ap_ctrl;
mod axi_cdma;
pub(crate) mod axi_dma;
mod axi_dmac;
mod axi_mcdma;
mod axi_vdma;
mod litepcie;
mod msgdma;
mod page;
mod pl330;
mod programs;
mod stale;
mod zdma;

use contigo_testkit::conformance::report;
use contigo_testkit::suite::{Subject, faults};
use contigo_testkit::{emulated, rounds};

const SEEDS: u64 = 1_000;
/// Under an emulator, where the same code is only translated: each kind of fault, both ways to
/// memory.
const FEW: u64 = 8;

/// Sees subjects of any type.
pub(crate) trait See {
    fn see(&mut self, subject: &impl Subject);
}

/// Every driver, in its modes.
fn each_driver(see: &mut impl See) {
    ap_ctrl::each(see);
    msgdma::each(see);
    axi_dma::each(see);
    axi_mcdma::each(see);
    axi_vdma::each(see);
    axi_cdma::each(see);
    axi_dmac::each(see);
    litepcie::each(see);
    zdma::each(see);
}

/// All seeds for one subject. Every way in which a job ends was met.
fn run(subject: &impl Subject) {
    let all = emulated::why().is_none();
    let seeds = if all { rounds(SEEDS) } else { FEW };
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
