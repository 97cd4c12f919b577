//! One run: QEMU is started, its console read along, and its end judged.

use super::console::{End, Heard};
use crate::board::Board;
use contigo_cross::command::{Tool, in_words, last_lines};
use contigo_cross::failure::Result;
use contigo_cross::interrupt;
use contigo_cross::terminal::{Step, say};
use std::path::Path;
use std::process::ExitStatus;
use std::thread;
use std::time::{Duration, Instant};

const LOOK: Duration = Duration::from_millis(40);
const LAST_LINES: usize = 20;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Watch {
    pub(crate) verbose: bool,
    /// There may be no row at all: a filter may leave none on this board.
    pub(crate) may_be_empty: bool,
}

#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) heard: Heard,
    pub(crate) took: Duration,
    /// Why the run as a whole failed, whatever its rows say; and its last lines.
    pub(crate) problem: Option<String>,
    pub(crate) last: Vec<String>,
}

/// Runs `qemu` with its console in `log`, until it ends or until the board's time limit.
pub(crate) fn run(board: &Board, qemu: Tool, log: &Path, watch: Watch) -> Result<Ran> {
    let step = Step::begin(format!("running {}", board.name), None);
    let begun = Instant::now();
    let deadline = begun + board.time_limit();
    let mut heard = Heard::default();
    let mut each = |line: &str| {
        step.say(line);
        if watch.verbose {
            say(&format!("{}: {line}", board.name));
        }
        heard.line(&board.name, line);
    };
    let (mut running, mut console) = qemu.start(log)?;
    let ended = loop {
        let ended = running.ended()?;
        console.new_lines(&mut each)?;
        if ended.is_some() || Instant::now() >= deadline {
            break ended;
        }
        interrupt::check()?;
        thread::sleep(LOOK);
    };
    // Where the limit was reached, this ends QEMU.
    drop(running);
    console.rest(&mut each)?;
    let took = begun.elapsed();
    drop(step);
    let problem = problem(board, &heard, ended, watch.may_be_empty);
    let last = if problem.is_some() { last_lines(log, LAST_LINES) } else { Vec::new() };
    Ok(Ran { heard, took, problem, last })
}

/// The error of a run beside its rows. A cause comes before its effects.
fn problem(
    board: &Board,
    heard: &Heard,
    ended: Option<ExitStatus>,
    may_be_empty: bool,
) -> Option<String> {
    let Some(status) = ended else {
        let limit = board.about.time_limit_s;
        return Some(format!("the guest did not end within {limit} s and was ended"));
    };
    let how = in_words(status);
    if let Some(panic) = &heard.panic {
        return Some(format!("the kernel panicked: {panic}"));
    }
    if heard.setup_failed {
        return Some("the board's setup.sh failed".into());
    }
    let Some(end) = heard.end else {
        return Some(format!("QEMU ended ({how}) before the guest had said that it was done"));
    };
    if status.code() != Some(i32::from(end.status)) {
        return Some(format!("the guest ended with {}, but QEMU with {how}", end.status));
    }
    let arrived = heard.rows_of_tests();
    if arrived != end.rows {
        return Some(format!("the guest printed {} rows, {arrived} arrived", end.rows));
    }
    if let Some(line) = heard.garbled.first() {
        return Some(format!("a row cannot be read: {line}"));
    }
    // The board tests answer so where the filter leaves nothing.
    if may_be_empty && end == (End { status: 1, rows: 0 }) {
        return None;
    }
    let failed = heard.rows.iter().any(|row| row.status == crate::report::Status::Failed);
    if end.status != 0 && !failed {
        return Some(format!("the guest ended with status {}, but no row says why", end.status));
    }
    if arrived == 0 {
        return Some("no test was run".into());
    }
    None
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;
    use std::os::unix::process::ExitStatusExt;

    const ROW: &str = r#"@row {"kind":"check","board":"b","name":"n","status":"passed"}"#;

    fn judged(lines: &[&str], code: Option<i32>, may_be_empty: bool) -> Option<String> {
        let boards = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../boards"));
        let board = Board::named(boards, &["virt".to_owned()]).unwrap().pop().unwrap();
        let mut heard = Heard::default();
        lines.iter().for_each(|line| heard.line("b", line));
        problem(&board, &heard, code.map(|code| ExitStatus::from_raw(code << 8)), may_be_empty)
    }

    #[test]
    fn a_run_passes_only_when_everything_agrees() {
        assert_eq!(judged(&[ROW, "@end 0 1"], Some(0), false), None);
        // A filter may leave nothing on a board.
        assert_eq!(judged(&["@end 1 0"], Some(1), true), None);
        assert!(judged(&["@end 139 0"], Some(139), true).is_some(), "but a crash is one");
        let cases: &[(&[&str], Option<i32>, &str)] = &[
            (&[ROW, "@end 0 1"], None, "did not end"),
            (&[ROW], Some(0), "before the guest had said"),
            (&[ROW, "@end 0 1"], Some(1), "but QEMU with"),
            (&[ROW, "@end 0 2"], Some(0), "2 rows, 1 arrived"),
            (&[ROW, "@row {", "@end 0 2"], Some(0), "cannot be read"),
            (&[ROW, "@end 4 1"], Some(4), "no row says why"),
            (&["@end 0 0"], Some(0), "no test was run"),
            (&["Kernel panic - not syncing: x"], Some(0), "panicked"),
            (&["@setup-failed 1", "@end 1 0"], Some(1), "setup.sh"),
        ];
        for (lines, code, expected) in cases {
            let got = judged(lines, *code, false).unwrap_or_default();
            assert!(got.contains(expected), "{lines:?}: {got}");
        }
    }
}
