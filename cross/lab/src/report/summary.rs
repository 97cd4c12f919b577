//! The sum of all runs: what failed, what was skipped and why, and a closing line like cargo
//! test's.

use super::{Row, Status, table};
use serde::Serialize;
use std::{fmt, time::Duration};

/// Everything that the runs showed.
#[derive(Debug, Serialize)]
pub(crate) struct Summary {
    rows: Vec<Row>,
    boards: usize,
    passed: usize,
    failed: usize,
    skipped: usize,
    seconds: f64,
}

impl Summary {
    pub(crate) fn new(mut rows: Vec<Row>, boards: usize, took: Duration) -> Self {
        rows.iter_mut().for_each(Row::distrust);
        let count = |status| rows.iter().filter(|row| row.status == status).count();
        let (passed, failed, skipped) =
            (count(Status::Passed), count(Status::Failed), count(Status::Skipped));
        Self {
            rows,
            boards,
            passed,
            failed,
            skipped,
            seconds: (took.as_secs_f64() * 10.0).round() / 10.0,
        }
    }

    /// Nothing failed, and something was tested.
    pub(crate) fn is_ok(&self) -> bool {
        self.failed == 0 && self.passed > 0
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(table) = table::rows(&self.rows) {
            writeln!(f, "{table}")?;
        }
        // By reason: one that keeps many rows from running is said once.
        let mut skipped: Vec<(&str, Vec<String>)> = Vec::new();
        for row in self.rows.iter().filter(|row| row.status == Status::Skipped) {
            match skipped.iter_mut().find(|(reason, _)| *reason == row.reason()) {
                Some((_, titles)) => titles.push(row.title()),
                None => skipped.push((row.reason(), vec![row.title()])),
            }
        }
        for (reason, titles) in skipped {
            writeln!(f, "\nskipped: {reason}")?;
            titles.iter().try_for_each(|title| writeln!(f, "    {title}"))?;
        }
        for row in self.rows.iter().filter(|row| row.status == Status::Failed) {
            writeln!(f, "\nFAILED: {}\n    {}", row.title(), row.reason())?;
        }
        let Self { boards, passed, failed, skipped, seconds, .. } = self;
        let verdict = if self.is_ok() { "ok" } else { "FAILED" };
        write!(
            f,
            "\ntest result: {verdict}. {passed} passed; {failed} failed; {skipped} ignored; 0 measured; 0 filtered out; \
             finished in {seconds:.2}s on {boards} boards"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closing_line_counts_and_the_skipped_are_named() {
        let skipped = Row {
            status: Status::Skipped,
            reason: Some("no module u-dma-buf".into()),
            ..Row::passed("virt", "u-dma-buf")
        };
        let summary = Summary::new(
            vec![Row::passed("virt", "a"), skipped.clone()],
            1,
            Duration::from_millis(34_400),
        );
        assert!(summary.is_ok());
        let text = summary.to_string();
        assert!(text.contains("skipped: no module u-dma-buf\n    virt · u-dma-buf\n"), "{text}");
        assert!(
            text.ends_with("test result: ok. 1 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 34.40s on 1 boards"),
            "{text}"
        );
        assert!(
            !Summary::new(vec![skipped], 1, Duration::ZERO).is_ok(),
            "where everything was skipped nothing was shown"
        );
    }

    #[test]
    fn a_row_that_passed_with_mismatches_has_failed() {
        let row = Row { jobs: Some(1), mismatches: Some(3), ..Row::passed("virt", "a") };
        let summary = Summary::new(vec![row, Row::passed("virt", "b")], 1, Duration::ZERO);
        assert!(!summary.is_ok() && summary.to_string().contains("FAILED. 1 passed; 1 failed"));
    }
}
