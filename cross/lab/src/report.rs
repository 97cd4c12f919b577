//! The results of the runs: rows as the board tests print them, one table for all boards, what
//! failed, what was skipped and why, and a closing line like cargo test's.

use comfy_table::{CellAlignment, Table};
use contigo_cross::terminal;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeSet, fmt, time::Duration};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// Many jobs on one (board, memory, engine), with counts: a line of the table.
    Jobs,
    /// One thing that holds or does not.
    Check,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Status {
    Passed,
    Failed,
    Skipped,
}

/// A result. The lab ignores keys that it does not know, so that the tests may say more.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Row {
    pub(crate) kind: Kind,
    #[serde(default)]
    pub(crate) board: String,
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) memory: String,
    #[serde(default)]
    pub(crate) engine: String,
    #[serde(default)]
    pub(crate) mode: String,
    #[serde(default)]
    pub(crate) user: String,
    pub(crate) jobs: Option<u64>,
    pub(crate) bytes: Option<u64>,
    pub(crate) mismatches: Option<u64>,
    pub(crate) canary_hits: Option<u64>,
    pub(crate) allocations: Option<u64>,
    pub(crate) syscalls: Option<u64>,
    pub(crate) status: Status,
    pub(crate) reason: Option<String>,
    /// Made by the lab itself, not printed by the board tests.
    #[serde(skip)]
    pub(crate) from_lab: bool,
}

impl Row {
    /// A check of the lab's own that held.
    pub(crate) fn passed(board: &str, name: &str) -> Self {
        Self {
            kind: Kind::Check,
            board: board.into(),
            name: name.into(),
            memory: String::new(),
            engine: String::new(),
            mode: String::new(),
            user: String::new(),
            jobs: None,
            bytes: None,
            mismatches: None,
            canary_hits: None,
            allocations: None,
            syscalls: None,
            status: Status::Passed,
            reason: None,
            from_lab: true,
        }
    }

    /// A check of the lab's own that did not hold.
    pub(crate) fn failed(board: &str, name: &str, reason: &str) -> Self {
        Self { status: Status::Failed, reason: Some(reason.into()), ..Self::passed(board, name) }
    }

    /// Something that the lab cannot do here.
    pub(crate) fn skipped(board: &str, name: &str, reason: &str) -> Self {
        Self { status: Status::Skipped, ..Self::failed(board, name, reason) }
    }

    /// The name in a list. A name that has the memory and the engine in it does not get them twice.
    pub(crate) fn title(&self) -> String {
        let more = [&self.memory, &self.engine, &self.mode]
            .into_iter()
            .filter(|part| !self.name.contains(part.as_str()));
        let user = if self.user.is_empty() || self.user == "0" {
            String::new()
        } else {
            format!("user {}", self.user)
        };
        let parts = [&self.board, &self.name].into_iter().chain(more).chain([&user]);
        parts.filter(|part| !part.is_empty()).map(String::as_str).collect::<Vec<_>>().join(" · ")
    }

    pub(crate) fn reason(&self) -> &str {
        self.reason.as_deref().filter(|reason| !reason.is_empty()).unwrap_or("no reason given")
    }

    /// A row that says "passed" and counts what must not be counts as failed.
    pub(crate) fn distrust(&mut self) {
        let wrong =
            [self.mismatches, self.canary_hits].into_iter().flatten().any(|count| count != 0);
        if self.status == Status::Passed && wrong {
            self.status = Status::Failed;
            self.reason = Some("it says passed, but counts mismatches or canary hits".into());
        }
    }
}

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
        if let Some(table) = table(&self.rows) {
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
            "\ntest result: {verdict}. {passed} passed; {failed} failed; {skipped} ignored; \
             0 measured; 0 filtered out; finished in {seconds:.2}s on {boards} boards"
        )
    }
}

const HEADER: [&str; 11] = [
    "board",
    "memory",
    "engine",
    "mode",
    "user",
    "jobs",
    "bytes",
    "mismatches",
    "canary hits",
    "allocations",
    "system calls",
];
/// The columns from here on are numbers, up to the last, which is the result.
const FIRST_NUMBER: usize = 5;

/// One line for each (board, memory, engine, mode) that ran jobs, with the sums of all users;
/// `None` where none did.
fn table(rows: &[Row]) -> Option<Table> {
    let mut header = HEADER.to_vec();
    header.push("result");
    let mut table = terminal::table(&header);
    for column in FIRST_NUMBER..HEADER.len() {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let mut lines: Vec<(&Row, Vec<&Row>)> = Vec::new();
    for row in rows.iter().filter(|row| row.kind == Kind::Jobs && row.status != Status::Skipped) {
        let key = |row: &Row| {
            (row.board.clone(), row.memory.clone(), row.engine.clone(), row.mode.clone())
        };
        match lines.iter_mut().find(|(first, _)| key(first) == key(row)) {
            Some((_, group)) => group.push(row),
            None => lines.push((row, vec![row])),
        }
    }
    for (first, group) in &lines {
        table.add_row(line(first, group));
    }
    (!lines.is_empty()).then_some(table)
}

fn line(first: &Row, group: &[&Row]) -> Vec<String> {
    let words = |word: fn(&Row) -> &str| {
        group.iter().map(|row| word(row)).filter(|word| !word.is_empty()).collect::<BTreeSet<_>>()
    };
    let joined = |word: fn(&Row) -> &str| words(word).into_iter().collect::<Vec<_>>().join(", ");
    // Where no row has a count, this is a dash and not 0.
    let sum = |count: fn(&Row) -> Option<u64>| {
        let counted: Vec<u64> = group.iter().filter_map(|row| count(row)).collect();
        if counted.is_empty() {
            "–".to_owned()
        } else {
            thousands(counted.iter().fold(0, |sum: u64, count| sum.saturating_add(*count)))
        }
    };
    let failed = group.iter().any(|row| row.status == Status::Failed);
    vec![
        first.board.clone(),
        first.memory.clone(),
        first.engine.clone(),
        first.mode.clone(),
        joined(|row| &row.user),
        sum(|row| row.jobs),
        sum(|row| row.bytes),
        sum(|row| row.mismatches),
        sum(|row| row.canary_hits),
        sum(|row| row.allocations),
        sum(|row| row.syscalls),
        if failed { "FAILED" } else { "passed" }.to_owned(),
    ]
}

fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_counts_and_names_skipped() {
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
            text.ends_with(
                "test result: ok. 1 passed; 0 failed; 1 ignored; 0 measured; 0 filtered \
                            out; finished in 34.40s on 1 boards"
            ),
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

    fn jobs(mode: &str, jobs: u64, canary_hits: u64) -> Row {
        let row = Row {
            kind: Kind::Jobs,
            memory: "huge".into(),
            engine: "edu".into(),
            mode: mode.into(),
            ..Row::passed("virt", "jobs")
        };
        Row {
            jobs: Some(jobs),
            bytes: Some(1024 * jobs),
            mismatches: Some(0),
            canary_hits: Some(canary_hits),
            ..row
        }
    }

    #[test]
    fn rows_of_engine_and_mode_are_summed() {
        let mut failed = Row { user: "1000".into(), ..jobs("polled", 500, 2) };
        failed.distrust();
        let skipped = Row { status: Status::Skipped, ..Row::passed("virt", "u-dma-buf") };
        let text = table(&[jobs("polled", 10_000, 0), jobs("interrupt", 7, 0), failed, skipped])
            .map(|table| table.to_string())
            .unwrap_or_default();
        let lines: Vec<&str> = text.lines().filter(|line| line.contains("huge")).collect();
        assert_eq!(
            lines.len(),
            2,
            "a polled job does not count the system calls of interrupts: {text}"
        );
        for expected in ["10,500", "10,752,000", "interrupt", "FAILED", " 2 ", "–"] {
            assert!(text.contains(expected), "{expected} in {text}");
        }
        assert!(!text.contains("u-dma-buf"), "{text}");
    }

    #[test]
    fn no_jobs_no_table() {
        assert!(table(&[Row::passed("virt", "a check")]).is_none());
    }

    #[test]
    fn thousands_are_grouped() {
        assert_eq!([0, 999, 1000, 1_234_567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
    }
}
