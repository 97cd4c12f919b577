//! The board tests as a program, on a machine that need not be a board: the simulated one is tested
//! then.

use contigo_testkit::emulated;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::process::{Command, Output, Stdio};
use std::time::Duration;
use std::{fs, thread};

fn program() -> Command {
    emulated::command(env!("CARGO_BIN_EXE_contigo-board-tests"))
}

/// Its status, and what it wrote to both of its files.
fn run(args: &[&str]) -> (i32, String, String) {
    said(&program().args(args).output().unwrap())
}

fn said(output: &Output) -> (i32, String, String) {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

/// The value of `key` in a row: what is between it and the next comma.
fn value<'r>(row: &'r str, key: &str) -> &'r str {
    let rest =
        row.split_once(&format!("\"{key}\":")).unwrap_or_else(|| panic!("no {key} in {row}")).1;
    rest.split([',', '}']).next().unwrap().trim_matches('"')
}

#[test]
fn rows_are_one_line_each_and_have_every_key() {
    let (status, text, errors) = run(&["--json", "--sim", "--jobs", "150", "--filter", "sim/"]);
    assert_eq!(status, 0, "{text}{errors}");
    assert_eq!(text.lines().count(), 4, "{text}");
    for row in text.lines() {
        assert!(row.starts_with("@row {\"kind\":\"jobs\",") && row.ends_with('}'), "{row}");
        for key in ["name", "memory", "engine", "user", "bytes", "interrupts", "seconds", "reason"]
        {
            value(row, key);
        }
        let keys = ["jobs", "mismatches", "canary_hits", "allocations", "status"];
        assert_eq!(keys.map(|key| value(row, key)), ["150", "0", "0", "0", "passed"]);
        // "null" where ptrace(2) is not possible, as under qemu-user.
        let no_calls = ["0", "null"].contains(&value(row, "syscalls"));
        assert!(no_calls || value(row, "mode") == "interrupt", "{row}");
    }
}

#[test]
fn a_simulated_board_is_checked_too() {
    let (status, text, _) = run(&["--sim", "--jobs", "10", "--filter", "-"]);
    assert_eq!(status, 0, "{text}");
    for check in [
        "unreachable-refused (sim, simulated pl330)",
        "timeout-stops (sim, simulated zdma)",
        "endless-program-killed (sim, simulated pl330)",
    ] {
        let passed = |line: &str| line.starts_with("passed") && line.contains(check);
        assert!(text.lines().any(passed), "{check}:\n{text}");
    }
}

#[test]
fn a_list_runs_nothing_and_chooses_by_name() {
    let list = |args: &[&str]| {
        let (status, text, errors) = run(&[&["--list"], args].concat());
        assert!(status == 0 && !text.contains("passed"), "{text}{errors}");
        text
    };
    assert!(list(&["--sim"]).contains("sim/simulated pl330/polled\n"));
    let zdma = list(&["--device", "sim:zdma"]);
    assert!(!zdma.is_empty() && zdma.lines().all(|line| line.contains("simulated zdma")), "{zdma}");
    let sim = list(&["--sim", "--memory", "sim"]);
    assert!(sim.lines().count() > zdma.lines().count(), "{sim}");
    assert!(sim.lines().all(|line| line.contains("sim")), "{sim}");
    assert!(list(&["--sim", "--memory", "sim", "--device", "uio:none"]).is_empty());
}

#[test]
fn wrong_usage_is_status_2_no_rows_is_1() {
    let usage = "Usage: contigo-board-tests";
    for (args, expected) in [
        (&["--jobs"] as &[_], usage),
        (&["--jobs", "x"], usage),
        (&["everything"], usage),
        (&["--memory", "ddr:0"], "there is no such kind"),
    ] {
        let (status, _, errors) = run(args);
        assert!(status == 2 && errors.contains(expected), "{args:?}: {errors}");
    }
    assert_eq!(run(&["--filter", "no such row"]).0, 1);
    assert_eq!(run(&["--help"]).0, 0);
}

#[test]
fn report_on_full_disk_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("result.json");
    let program = program();
    // A file of more than 512 bytes fails, as on a disk with no room.
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "trap '' XFSZ; ulimit -f 1; exec \"$0\" \"$@\""])
        .arg(program.get_program())
        .args(program.get_args())
        .args(["--sim", "--jobs", "10", "--filter", "zdma/polled", "--report"]);
    let (status, _, errors) = said(&shell.arg(&path).output().unwrap());
    assert!(status == 1 && errors.contains("nothing was written"), "{errors}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    let (status, rows, _) = run(&["--sim", "--report", "/nowhere/result.json"]);
    assert!(status == 1 && rows.is_empty(), "it is said before the first row");
}

#[test]
fn a_soak_ends_by_a_signal_and_writes_its_report() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("soak.json");
    let mut command = program();
    command.args(["soak", "--minutes", "5", "--device", "sim:zdma", "--report"]).arg(&path);
    let child = command.stdout(Stdio::piped()).spawn().unwrap();
    thread::sleep(Duration::from_secs(3));
    kill(Pid::from_raw(child.id().try_into().unwrap()), Signal::SIGTERM).unwrap();
    let (status, text, _) = said(&child.wait_with_output().unwrap());
    assert!(status == 130 && text.contains("ended by SIGTERM after"), "{text}");
    assert!(text.contains("left out: kills: ") && text.contains(" jobs, "), "{text}");
    let report = fs::read_to_string(&path).unwrap();
    for expected in ["\"ended_by\": \"SIGTERM\"", "\"faults_unexpected\": 0"] {
        assert!(report.contains(expected), "{report}");
    }
}
