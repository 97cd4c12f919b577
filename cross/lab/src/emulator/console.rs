//! The lines of a guest's console: lines for the lab, which begin with @, the kernel's panic, and
//! everything else.

use crate::report::{Kind, Row};
use serde_json::Value;

pub(crate) const DEMO: &str = "contigo demo";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct End {
    /// The exit status that QEMU must have, too.
    pub(crate) status: u8,
    pub(crate) rows: usize,
}

/// Everything that counts of a console.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    pub(crate) rows: Vec<Row>,
    pub(crate) garbled: Vec<String>,
    pub(crate) panic: Option<String>,
    pub(crate) end: Option<End>,
    pub(crate) setup_failed: bool,
}

impl Heard {
    /// One line of the console of `board`.
    pub(crate) fn line(&mut self, board: &str, line: &str) {
        // The kernel may have left its own line unfinished, so the mark need not be at the
        // beginning.
        if let Some((_, json)) = line.split_once("@row ") {
            match serde_json::from_str::<Row>(json) {
                Ok(row) => self.rows.push(row),
                Err(error) => self.garbled.push(format!("{line} ({error})")),
            }
        } else if let Some((_, rest)) = line.split_once("@demo ") {
            self.rows.push(demo(board, rest));
        } else if let Some((_, rest)) = line.split_once("@module-failed ") {
            let (name, reason) = rest.split_once(' ').unwrap_or((rest, ""));
            let name = format!("loading the module {name}");
            self.rows.push(Row::failed(board, &name, reason.trim()));
        } else if line.contains("@setup-failed ") {
            self.setup_failed = true;
        } else if let Some((_, rest)) = line.split_once("@end ") {
            self.end = end(rest);
        } else if line.contains("Kernel panic - not syncing") {
            self.panic.get_or_insert_with(|| line.to_owned());
        }
    }

    /// Rows that the guest counted and that did not arrive whole.
    pub(crate) fn rows_of_tests(&self) -> usize {
        self.rows.iter().filter(|row| !row.from_lab).count() + self.garbled.len()
    }
}

fn end(rest: &str) -> Option<End> {
    let mut words = rest.split_whitespace();
    Some(End { status: words.next()?.parse().ok()?, rows: words.next()?.parse().ok()? })
}

/// The demo's report as a row: `@demo STATUS {…}`.
fn demo(board: &str, rest: &str) -> Row {
    let (status, json) = rest.split_once(' ').unwrap_or((rest, ""));
    let report: Value = serde_json::from_str(json.trim()).unwrap_or_default();
    let number = |key: &str| report.get(key).and_then(Value::as_u64);
    let text = |at: &str| report.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (Some(mismatches), Some(jobs), "0") = (number("mismatches"), number("jobs"), status) else {
        return Row::failed(board, DEMO, &format!("exit status {status}: {}", json.trim()));
    };
    Row {
        kind: Kind::Jobs,
        memory: text("/memory/name"),
        engine: text("/engine"),
        mode: "polled".into(),
        user: "0".into(),
        jobs: Some(jobs),
        mismatches: Some(mismatches),
        ..Row::passed(board, DEMO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Status;

    fn heard(lines: &[&str]) -> Heard {
        let mut heard = Heard::default();
        lines.iter().for_each(|line| heard.line("b", line));
        heard
    }

    #[test]
    fn row_found_behind_unfinished_kernel_line() {
        let row = r#"[    1.2] random: @row {"kind":"check","board":"b","name":"n","status":"skipped","reason":"no module"}"#;
        let heard = heard(&[row, "hello", "@end 3 1"]);
        assert!(matches!(heard.rows.as_slice(), [Row { status: Status::Skipped, .. }]));
        assert_eq!(heard.end, Some(End { status: 3, rows: 1 }));
        assert_eq!(heard.rows_of_tests(), 1);
        let garbled = self::heard(&[r#"@row {"kind":"check","boa[  3.1] oops"#]);
        assert!(garbled.rows.is_empty() && garbled.garbled.len() == 1);
    }

    #[test]
    fn the_demo_is_a_row_that_fails_with_its_status() {
        let report =
            r#"{ "memory": { "name": "sim" }, "engine": "gemm8", "jobs": 100, "mismatches": 0 }"#;
        let passed = heard(&[&format!("@demo 0 {report}")]);
        let row = passed.rows.first().map(|row| (row.status, row.jobs, row.memory.as_str()));
        assert_eq!(row, Some((Status::Passed, Some(100), "sim")));
        for bad in [format!("@demo 1 {report}"), "@demo 0 Segmentation fault".to_owned()] {
            let status = heard(&[&bad]).rows.first().map(|row| row.status);
            assert_eq!(status, Some(Status::Failed), "{bad}");
        }
    }

    #[test]
    fn a_panic_is_heard_once() {
        let panic = "[ 1.0] Kernel panic - not syncing: VFS";
        let heard = heard(&[panic, "[ 1.0] ---[ end Kernel panic - not syncing: VFS ]---"]);
        assert_eq!(heard.panic.as_deref(), Some(panic));
    }
}
