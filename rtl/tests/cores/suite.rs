//! A core in Verilog through the suite for drivers.

use super::skip;
use contigo_rtl::{Core, PowerOn, RtlModel};
use contigo_testkit::conformance::report;
use contigo_testkit::suite::{Subject, faults};

/// Runs it with so many seeds that each kind of fault strikes, a lost answer too.
pub(crate) fn run(core: &str, subject: &impl Subject<Model = RtlModel>, seeds: u64) {
    if skip::or_skip(Core::open(core, PowerOn::Zeros)).is_none() {
        return;
    }
    let verdict = faults(subject, 0..seeds).map(|tally| {
        println!("{}: {tally:?}", subject.name());
        assert!(
            tally.completed > 2 * seeds
                && tally.failed > 0
                && tally.cancelled > 0
                && tally.resets > 0,
            "{tally:?}"
        );
    });
    report("suite", subject.name(), verdict);
}
