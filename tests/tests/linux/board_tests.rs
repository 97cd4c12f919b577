//! The board tests as a program, on a machine that need not be a board: the simulated one is tested
//! then.

use contigo_testkit::emulated;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use std::{
    fs,
    process::{Command, Output, Stdio},
    thread,
    time::Duration,
};

fn run(args: &[&str]) -> Output {
    emulated::command(env!("CARGO_BIN_EXE_contigo-board-tests")).args(args).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The value of `key` in a row: what is between it and the next comma.
fn value<'r>(row: &'r str, key: &str) -> &'r str {
    let rest =
        row.split_once(&format!("\"{key}\":")).unwrap_or_else(|| panic!("no {key} in {row}")).1;
    rest.split([',', '}']).next().unwrap().trim_matches('"')
}

#[test]
fn rows_are_one_line_each_and_have_every_key() {
    let output = run(&["--json", "--sim", "--jobs", "150", "--filter", "sim/"]);
    let text = stdout(&output);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let rows: Vec<_> = text.lines().collect();
    assert_eq!(rows.len(), 4, "{text}");
    for row in rows {
        assert!(row.starts_with("@row {\"kind\":\"jobs\",") && row.ends_with('}'), "{row}");
        for key in [
            "name",
            "memory",
            "engine",
            "mode",
            "user",
            "jobs",
            "bytes",
            "interrupts",
            "syscalls",
            "seconds",
            "reason",
        ] {
            value(row, key);
        }
        assert_eq!(
            ["jobs", "mismatches", "canary_hits", "allocations", "status"]
                .map(|key| value(row, key)),
            ["150", "0", "0", "0", "passed"]
        );
        // "null" where ptrace(2) is not possible, as under qemu-user.
        assert!(
            value(row, "mode") == "interrupt" || ["0", "null"].contains(&value(row, "syscalls")),
            "{row}"
        );
    }
}

#[test]
fn a_simulated_board_is_checked_too() {
    let output = run(&["--sim", "--jobs", "10", "--filter", "-"]);
    let text = stdout(&output);
    assert!(output.status.success(), "{text}");
    for check in [
        "unreachable-refused (sim, simulated pl330)",
        "timeout-stops (sim, simulated zdma)",
        "endless-program-killed (sim, simulated pl330)",
    ] {
        assert!(
            text.lines().any(|line| line.starts_with("passed") && line.contains(check)),
            "{check}:\n{text}"
        );
    }
}

#[test]
fn a_list_runs_nothing() {
    let output = run(&["--list", "--sim"]);
    let text = stdout(&output);
    assert!(
        output.status.success()
            && text.contains("sim/simulated pl330/polled\n")
            && !text.contains("passed"),
        "{text}"
    );
}

#[test]
fn memory_and_device_are_chosen_by_name() {
    let of = |args: &[&str]| stdout(&run(&[&["--list"], args].concat()));
    let zdma = of(&["--device", "sim:zdma"]);
    assert!(!zdma.is_empty() && zdma.lines().all(|line| line.contains("simulated zdma")), "{zdma}");
    let sim = of(&["--sim", "--memory", "sim"]);
    assert!(
        sim.lines().count() > zdma.lines().count() && sim.lines().all(|line| line.contains("sim")),
        "{sim}"
    );
    assert!(of(&["--sim", "--memory", "sim", "--device", "uio:none"]).is_empty());
    let wrong = run(&["--memory", "ddr:0"]);
    assert_eq!(
        (
            wrong.status.code(),
            String::from_utf8_lossy(&wrong.stderr).contains("there is no such kind")
        ),
        (Some(2), true)
    );
}

#[test]
fn wrong_usage_is_status_2_no_rows_is_1() {
    for args in [&["--jobs"] as &[_], &["--jobs", "x"], &["everything"]] {
        let output = run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(
            String::from_utf8_lossy(&output.stderr).contains("Usage: contigo-board-tests"),
            "{args:?}"
        );
    }
    assert_eq!(run(&["--filter", "no such row"]).status.code(), Some(1));
    assert_eq!(run(&["--help"]).status.code(), Some(0));
}

#[test]
fn report_on_full_disk_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("result.json");
    let program = emulated::command(env!("CARGO_BIN_EXE_contigo-board-tests"));
    // A file of more than 512 bytes fails, as on a disk with no room.
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "trap '' XFSZ; ulimit -f 1; exec \"$0\" \"$@\""])
        .arg(program.get_program())
        .args(program.get_args());
    let output = shell
        .args(["--sim", "--jobs", "10", "--filter", "zdma/polled", "--report"])
        .arg(&path)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && said.contains("nothing was written"), "{said}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    let nowhere = run(&["--sim", "--report", "/nowhere/result.json"]);
    assert!(
        nowhere.status.code() == Some(1) && nowhere.stdout.is_empty(),
        "it is said before the first row"
    );
}

#[test]
fn a_soak_ends_by_a_signal_and_writes_its_report() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("soak.json");
    let mut command = emulated::command(env!("CARGO_BIN_EXE_contigo-board-tests"));
    command.args(["soak", "--minutes", "5", "--device", "sim:zdma", "--report"]).arg(&path);
    let child = command.stdout(Stdio::piped()).spawn().unwrap();
    thread::sleep(Duration::from_secs(3));
    kill(Pid::from_raw(child.id().try_into().unwrap()), Signal::SIGTERM).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = stdout(&output);
    assert!(output.status.code() == Some(130) && text.contains("ended by SIGTERM after"), "{text}");
    assert!(text.contains("left out: kills: ") && text.contains(" jobs, "), "{text}");
    let report = fs::read_to_string(&path).unwrap();
    assert!(
        report.contains("\"ended_by\": \"SIGTERM\"") && report.contains("\"faults_unexpected\": 0"),
        "{report}"
    );
}
