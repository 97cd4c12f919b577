//! The table of cores: few jobs here, and its rows on standard error, where the harness shows them.
//! A core that writes too late or the wrong bytes fails the run.

use super::skip;
use contigo_rtl::table::{CASES, Row, Setting, TableError, Tally, frames, words};
use contigo_rtl::{Core, PowerOn};
use std::io::{Write, stderr};
use std::process::{Command, Output};

/// Each row has so many, and some more that are stopped.
const JOBS: &str = "8";

fn table(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rtl-table"))
        .args(["--jobs", JOBS])
        .args(arguments)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Four rows for each core that is here, and a line for each that is not.
#[test]
fn every_core_keeps_the_rules_in_each_row() {
    let run = table(&[]);
    let rows = text(&run.stdout);
    write!(stderr(), "{}{}", rows, text(&run.stderr)).unwrap();
    assert!(run.status.success());
    for case in CASES.iter().filter(|case| case.keeps) {
        let here = Row::skipped(case).is_none();
        assert_eq!(
            rows.lines().filter(|row| row.starts_with(&format!("{} ", case.core))).count(),
            4 * usize::from(here),
            "{}",
            case.core
        );
        assert_eq!(text(&run.stderr).contains(&format!("core {} was not built", case.core)), !here);
    }
}

#[test]
fn a_core_that_writes_after_a_stop_fails_the_run() {
    if skip::or_skip(Core::open("ungated", PowerOn::Zeros)).is_none() {
        return;
    }
    let run = table(&["--core", "ungated", "--json"]);
    let rows = text(&run.stdout);
    assert_eq!(run.status.code(), Some(1), "{rows}");
    assert_eq!(
        (rows.matches("\"core\":\"ungated\"").count(), rows.matches("\"stray_writes\":0,").count()),
        (4, 0),
        "{rows}"
    );
}

fn tally(tally: Result<Tally, TableError>) -> Option<Tally> {
    match tally {
        Err(TableError::NoCore(why)) => skip::or_skip(Err(why)),
        tally => Some(tally.unwrap()),
    }
}

/// Fault 7 of `cores/broken`: data that was not taken yet changes.
#[test]
fn a_core_that_writes_wrong_bytes_fails_its_row() {
    let copies = |fault| tally(words::copies("broken32", fault, &Setting::hostile(1), 8));
    let (Some(right), Some(wrong)) = (copies(0), copies(7)) else { return };
    assert_eq!((right.mismatches, right.is_good()), (0, true), "{right:?}");
    assert!(wrong.mismatches > 0 && wrong.jobs == 8 && !wrong.findings.is_empty(), "{wrong:?}");
}

/// The mistakes of `cores/s2mm`: a packet's last beat is lost, memory's answers are not waited for,
/// and a beat too few is counted. Only the second goes on writing what was given back.
#[test]
fn each_mistake_of_a_camera_fails_its_row() {
    for (fault, writes_late) in [(1, false), (2, true), (3, false)] {
        let Some(wrong) = tally(frames::run(fault, &Setting::hostile(1), 40)) else { return };
        assert_eq!(
            (wrong.jobs, wrong.mismatches > 0, wrong.stray > 0),
            (40, true, writes_late),
            "mistake {fault}: {wrong:?}"
        );
        println!(
            "mistake {fault}: {} of 40 frames are wrong, {} stray writes",
            wrong.mismatches, wrong.stray
        );
    }
}

#[test]
fn an_unknown_core_is_answered_with_the_names() {
    let run = table(&["--core", "unknown"]);
    assert_eq!((run.status.code(), text(&run.stdout)), (Some(2), ""));
    assert!(
        text(&run.stderr).contains("the table has no core unknown; it has broken32, "),
        "{}",
        text(&run.stderr)
    );
}
