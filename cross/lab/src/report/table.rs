//! One table for all boards.

use super::{Kind, Row, Status};
use comfy_table::{CellAlignment, Table};
use std::collections::BTreeSet;

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
pub(crate) fn rows(rows: &[Row]) -> Option<Table> {
    let mut header = HEADER.to_vec();
    header.push("result");
    let mut table = contigo_cross::table::new(&header);
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

/// 1,234,567
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
    fn rows_of_one_engine_and_mode_are_one_line_with_their_sum() {
        let mut failed = Row { user: "1000".into(), ..jobs("polled", 500, 2) };
        failed.distrust();
        let skipped = Row { status: Status::Skipped, ..Row::passed("virt", "u-dma-buf") };
        let text = rows(&[jobs("polled", 10_000, 0), jobs("interrupt", 7, 0), failed, skipped])
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
        assert!(rows(&[Row::passed("virt", "a check")]).is_none());
    }

    #[test]
    fn thousands_are_grouped() {
        assert_eq!([0, 999, 1000, 1_234_567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
    }
}
