//! The tests of VFIO, each as a row.

use crate::row::{Name, Row, Status};
pub(crate) use crate::vfio::TESTS;

/// Test `number`, on the PCI function at `address`.
pub(super) fn row(name: &Name, number: usize, address: &str) -> Row {
    let Some((_, test)) = TESTS.get(number) else { return Row::new(name, Status::Failed, "there is no such test") };
    match test(address) {
        Ok(outcome) => {
            let wrong = outcome.failed || outcome.mismatches + outcome.canary_hits > 0;
            let status = match (wrong, outcome.skipped) {
                (true, _) => Status::Failed,
                (false, true) => Status::Skipped,
                (false, false) => Status::Passed,
            };
            Row {
                jobs: outcome.jobs,
                bytes: outcome.bytes,
                mismatches: outcome.mismatches,
                canary_hits: outcome.canary_hits,
                ..Row::new(name, status, outcome.detail)
            }
        }
        Err(error) => Row::new(name, Status::Failed, error.to_string()),
    }
}
