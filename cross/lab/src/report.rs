//! The results of the runs: rows as the board tests print them, one table for all boards, what
//! failed, what was skipped and why, and a closing line like cargo test's.

use comfy_table::{CellAlignment, Table};
use contigo_cross::terminal;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// Many jobs on one (board, memory, engine), with counts: a line of the table.
    Jobs,
    /// One thing that holds or does not.
    #[default]
    Check,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Status {
    #[default]
    Passed,
    Failed,
    Skipped,
}

/// A result. The lab ignores keys that it does not know, so that the tests may say more.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
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
        Self { board: board.into(), name: name.into(), from_lab: true, ..Self::default() }
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
        let is_root = self.user.is_empty() || self.user == "0";
        let user = if is_root { String::new() } else { format!("user {}", self.user) };
        let parts = [&self.board, &self.name].into_iter().chain(more).chain([&user]);
        parts.filter(|part| !part.is_empty()).map(String::as_str).collect::<Vec<_>>().join(" · ")
    }

    pub(crate) fn reason(&self) -> &str {
        self.reason.as_deref().filter(|reason| !reason.is_empty()).unwrap_or("no reason given")
    }

    /// A row that says "passed" and counts what must not be counts as failed.
    pub(crate) fn distrust(&mut self) {
        let wrong = self.mismatches.unwrap_or(0) > 0 || self.canary_hits.unwrap_or(0) > 0;
        if self.status == Status::Passed && wrong {
            self.status = Status::Failed;
            self.reason = Some("it says passed, but counts mismatches or canary hits".into());
        }
    }
}

/// How many rows passed, failed and were skipped.
pub(crate) fn counts(rows: &[Row]) -> [usize; 3] {
    [Status::Passed, Status::Failed, Status::Skipped]
        .map(|status| rows.iter().filter(|row| row.status == status).count())
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
        let [passed, failed, skipped] = counts(&rows);
        let seconds = (took.as_secs_f64() * 10.0).round() / 10.0;
        Self { rows, boards, passed, failed, skipped, seconds }
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

/// The columns with words, those with numbers, and the result.
const WORDS: [&str; 5] = ["board", "memory", "engine", "mode", "user"];
const NUMBERS: [&str; 6] =
    ["jobs", "bytes", "mismatches", "canary hits", "allocations", "system calls"];

/// One line for each (board, memory, engine, mode) that ran jobs, with the sums of all users;
/// `None` where none did.
fn table(rows: &[Row]) -> Option<Table> {
    let mut table = terminal::table(&[&WORDS[..], &NUMBERS, &["result"]].concat());
    for column in WORDS.len()..WORDS.len() + NUMBERS.len() {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let key = |row: &Row| [&row.board, &row.memory, &row.engine, &row.mode].map(String::clone);
    let mut lines: Vec<([String; 4], Vec<&Row>)> = Vec::new();
    for row in rows.iter().filter(|row| row.kind == Kind::Jobs && row.status != Status::Skipped) {
        match lines.iter_mut().find(|(first, _)| *first == key(row)) {
            Some((_, group)) => group.push(row),
            None => lines.push((key(row), vec![row])),
        }
    }
    for (key, group) in &lines {
        table.add_row(key.iter().cloned().chain(sums(group)));
    }
    (!lines.is_empty()).then_some(table)
}

/// The users of a group, its numbers and its result.
fn sums(group: &[&Row]) -> impl Iterator<Item = String> {
    let users: BTreeSet<_> = group.iter().map(|row| row.user.as_str()).collect();
    let users: Vec<_> = users.into_iter().filter(|user| !user.is_empty()).collect();
    // Where no row has a count, this is a dash and not 0.
    let sum = |count: fn(&Row) -> Option<u64>| {
        let sum = group.iter().filter_map(|row| count(row)).reduce(u64::saturating_add);
        sum.map_or_else(|| "–".to_owned(), thousands)
    };
    let numbers = [
        sum(|row| row.jobs),
        sum(|row| row.bytes),
        sum(|row| row.mismatches),
        sum(|row| row.canary_hits),
        sum(|row| row.allocations),
        sum(|row| row.syscalls),
    ];
    let failed = group.iter().any(|row| row.status == Status::Failed);
    let result = if failed { "FAILED" } else { "passed" }.to_owned();
    [users.join(", ")].into_iter().chain(numbers).chain([result])
}

/// `1,234,567`
fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_counts_and_names_skipped() {
        let skipped = Row::skipped("virt", "u-dma-buf", "no module u-dma-buf");
        let rows = vec![Row::passed("virt", "a"), skipped.clone()];
        let summary = Summary::new(rows, 1, Duration::from_millis(34_400));
        let text = summary.to_string();
        assert!(
            summary.is_ok()
                && text.contains("skipped: no module u-dma-buf\n    virt · u-dma-buf\n")
        );
        let last = "test result: ok. 1 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; \
                    finished in 34.40s on 1 boards";
        assert!(text.ends_with(last), "{text}");
        let nothing = Summary::new(vec![skipped], 1, Duration::ZERO);
        assert!(!nothing.is_ok(), "where everything was skipped nothing was shown");
    }

    #[test]
    fn a_row_that_passed_with_mismatches_has_failed() {
        let row = Row { jobs: Some(1), mismatches: Some(3), ..Row::passed("virt", "a") };
        let summary = Summary::new(vec![row, Row::passed("virt", "b")], 1, Duration::ZERO);
        assert!(!summary.is_ok() && summary.to_string().contains("FAILED. 1 passed; 1 failed"));
    }

    fn jobs(mode: &str, jobs: u64, canary_hits: u64) -> Row {
        Row {
            kind: Kind::Jobs,
            memory: "huge".into(),
            engine: "edu".into(),
            mode: mode.into(),
            jobs: Some(jobs),
            bytes: Some(1024 * jobs),
            mismatches: Some(0),
            canary_hits: Some(canary_hits),
            ..Row::passed("virt", "jobs")
        }
    }

    #[test]
    fn rows_of_engine_and_mode_are_summed() {
        let mut failed = Row { user: "1000".into(), ..jobs("polled", 500, 2) };
        failed.distrust();
        let skipped = Row::skipped("virt", "u-dma-buf", "");
        let text = table(&[jobs("polled", 10_000, 0), jobs("interrupt", 7, 0), failed, skipped])
            .map(|table| table.to_string())
            .unwrap_or_default();
        // A polled job does not count the system calls of interrupts.
        assert_eq!(text.lines().filter(|line| line.contains("huge")).count(), 2, "{text}");
        for expected in ["10,500", "10,752,000", "interrupt", "FAILED", " 2 ", "–"] {
            assert!(text.contains(expected), "{expected} in {text}");
        }
        assert!(!text.contains("u-dma-buf"), "{text}");
        assert!(table(&[Row::passed("virt", "a check")]).is_none(), "no jobs, no table");
    }

    #[test]
    fn thousands_are_grouped() {
        assert_eq!([0, 999, 1000, 1_234_567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
    }
}
