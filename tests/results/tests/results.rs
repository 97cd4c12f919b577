//! Each file in `docs/results` may be there and has its lines, and nonsense is refused.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that panics has failed, which is its purpose"
)]

use contigo_results::{Table, check, silicon};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};
use std::{env, fs};

/// A file as a board would make it. **Its numbers are invented**: no board was measured.
const INVENTED: &str = include_str!("invented.json");
/// When it was read.
const NOW: u64 = 1_790_000_100;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results")
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

#[test]
fn each_file_may_be_there_and_the_table_has_it() {
    let files = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut files: Vec<_> = files.filter(|name| name.ends_with(".json")).collect();
    files.sort();
    let mut table = Table::default();
    for file in files {
        let report = check(&fs::read_to_string(folder().join(&file)).unwrap(), now())
            .unwrap_or_else(|wrong| panic!("{file}: {wrong:#?}"));
        silicon(&report).unwrap_or_else(|why| panic!("docs/results/{file}: {why}"));
        table.add(&file, &report);
    }
    let path = folder().join("README.md");
    let page = fs::read_to_string(&path).unwrap();
    let new = table.within(&page).unwrap();
    if env::var_os("CONTIGO_WRITE_DOCS").is_some() {
        return fs::write(&path, &new).unwrap();
    }
    assert!(page == new, "CONTIGO_WRITE_DOCS=1 cargo test --package contigo-results");
}

fn invented() -> Value {
    serde_json::from_str(INVENTED).unwrap()
}

fn refusals(value: &Value) -> Vec<String> {
    check(&value.to_string(), NOW).err().unwrap_or_default()
}

#[test]
fn right_file_has_a_line_for_each_engine() {
    let report = check(INVENTED, NOW).unwrap();
    silicon(&report).unwrap();
    let mut table = Table::default();
    table.add("a.json", &report);
    let text = table.text();
    assert!(
        text.contains("| pynq-z2 | 6.1.0, PREEMPT_RT | pl330@dma | 9.0, 30.5, 81.2 µs of 1000 |"),
        "{text}"
    );
    let page = format!("x\n{}\nold\n{}\ny\n", contigo_results::START, contigo_results::END);
    assert!(
        table.within(&page).unwrap().contains("pl330@dma") && table.within("no lines").is_none()
    );
}

/// Puts `value` at `path`, and says what is refused.
fn with(path: &str, value: Value) -> Vec<String> {
    let mut report = invented();
    *report.pointer_mut(path).unwrap_or_else(|| panic!("the file has no {path}")) = value;
    refusals(&report)
}

#[test]
fn nonsense_is_refused_and_named() {
    for (path, value, said) in [
        ("/schema", json!(2), "schema: "),
        ("/tool/name", json!("another"), "tool.name: "),
        ("/tool/commit", json!("not a hash"), "tool.commit: "),
        ("/counts/passed", json!(-1), "counts.passed: "),
        ("/rows/0/seconds", json!(-0.5), "it took -0.5 s"),
        ("/rows/0/kind", json!("poem"), "rows[0].kind: "),
        ("/latency/0/n", json!(0), "latency[0].n: "),
        ("/latency/0/p50_ns", json!(-3), "latency[0].p50_ns: "),
        ("/latency/0/p50_ns", json!("9000"), "latency[0].p50_ns: "),
        ("/taken_unix_s", json!(NOW + 3600), "is in the future"),
        ("/board/name", json!("no-such-board"), "there is no board in boards/no-such-board"),
        ("/board/name", json!("virt"), "there is no board in boards/virt"),
        ("/counts/passed", json!(5), "but the rows are"),
        ("/rows/0/mismatches", json!(1), "passed with 1 mismatches"),
        ("/rows/0/jobs", json!(0), "passed without a job"),
        ("/rows/4/reason", json!(""), "has no reason"),
        ("/rows/0/mode", json!(""), "its mode is"),
        ("/latency/0/p50_ns", json!(90_000), "does not hold"),
        ("/latency/0/p99_ns", json!(90_000), "does not hold"),
        ("/latency/0/min_ns", json!(9_001), "does not hold"),
        ("/latency/0/min_ns", json!(2), "less than the clock resolves, 3 ns"),
        ("/latency/0/n", json!(999), "but the row has 1000"),
        ("/latency/1/without_interrupt", json!(1), "polled jobs had no interrupt"),
        ("/latency/0/engine", json!("another"), "no row has it"),
        ("/cyclictest/mean_us", json!(99), "does not hold"),
        ("/energy/0/nanojoules_per_job", json!(1), "nJ each, not 1"),
        ("/energy/0/engine", json!("another"), "no row has it"),
        ("/soak/jobs", json!(1), "those of its engines are"),
        ("/soak/bytes", json!(1), "each copies one at least"),
        ("/soak/rss_last_kib", json!(9999), "with a maximum of"),
        ("/soak/rss_bound_kib", json!(10), "no fault explains it"),
        ("/soak/seconds", json!(5), "ended by time after 5 s"),
        ("/soak/faults_unexpected", json!(2), "unexpected faults"),
        ("/missing", json!({"latency": "lost"}), "has a reason why it is not"),
        ("/cyclictest", json!(null), "nothing says why"),
    ] {
        let wrong = with(path, value);
        assert!(wrong.iter().any(|line| line.contains(said)), "{path}: {said}: {wrong:?}");
    }
}

#[test]
fn an_unknown_field_and_a_lost_one_are_refused() {
    let mut report = invented();
    report["rows"][0]["speed"] = json!(3);
    assert!(refusals(&report).iter().any(|line| line.contains("speed")), "{:?}", refusals(&report));
    let mut report = invented();
    report.as_object_mut().unwrap().remove("latency");
    assert!(refusals(&report).iter().any(|line| line.contains("latency")));
}

#[test]
fn non_result_file_is_refused_briefly() {
    for text in
        ["", "{", "[]", "{}", "null", &INVENTED[..INVENTED.len() / 2], &format!("{INVENTED}{{}}")]
    {
        let wrong = check(text, NOW).unwrap_err();
        assert!(wrong.len() == 1 && wrong.iter().all(|line| line.len() < 700), "{text}: {wrong:?}");
    }
}

#[test]
fn the_table_of_silicon_takes_no_other_machine() {
    for (path, value, said) in [
        ("/emulated", json!("--lab was given"), "this machine is emulated"),
        ("/options/lab", json!(true), "run with --lab"),
        ("/board/name", json!(null), "names no board of boards/"),
        ("/engines/0/name", json!("simulated zdma"), "no engine of its own"),
        ("/taken_unix_s", json!(12), "clock was never set"),
    ] {
        let mut report = invented();
        *report.pointer_mut(path).unwrap() = value;
        let why = silicon(&check(&report.to_string(), NOW).unwrap()).unwrap_err();
        assert!(why.contains(said), "{path}: {why}");
    }
    let mut report = invented();
    for (list, empty) in
        [("rows", json!([])), ("latency", json!([])), ("energy", json!([])), ("soak", json!(null))]
    {
        report[list] = empty;
    }
    report["counts"] = json!({"passed": 0, "failed": 0, "skipped": 0});
    report["missing"] = json!({"latency": "x", "energy": "x", "soak": "x"});
    assert!(
        silicon(&check(&report.to_string(), NOW).unwrap()).unwrap_err().contains("nothing was run")
    );
}

#[test]
fn the_program_says_what_is_wrong_by_its_status() {
    let run = |args: &[&str]| {
        let output =
            Command::new(env!("CARGO_BIN_EXE_contigo-results")).args(args).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let folder = tempfile::tempdir().unwrap();
    let (good, lab) = (folder.path().join("good.json"), folder.path().join("lab.json"));
    let mut report = invented();
    report["taken_unix_s"] = json!(now());
    fs::write(&good, report.to_string()).unwrap();
    report["emulated"] = json!("there is /sys/firmware/qemu_fw_cfg");
    fs::write(&lab, report.to_string()).unwrap();
    let [good, lab] = [good.to_str().unwrap(), lab.to_str().unwrap()];
    assert!(matches!(run(&[good]), (Some(0), table, _) if table.contains("pl330@dma")));
    assert!(
        matches!(run(&[good, lab]), (Some(1), _, said) if said.contains("the table is for silicon"))
    );
    assert_eq!(run(&["--emulated", lab]).0, Some(0));
    assert_eq!(run(&[]).0, Some(2));
    assert_eq!(run(&["--other", good]).0, Some(2));
    assert!(
        matches!(run(&["nowhere.json"]), (Some(1), _, said) if said.starts_with("nowhere.json: "))
    );
}

/// The board tests of the same build, where they were built: on this machine they test the
/// simulated board.
#[test]
fn the_board_tests_write_what_the_check_takes() {
    let program =
        Path::new(env!("CARGO_BIN_EXE_contigo-results")).with_file_name("contigo-board-tests");
    if !program.exists() {
        return println!(
            "skipped: contigo-board-tests was not built: cargo build --package contigo-tests"
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("result.json");
    let output = Command::new(&program)
        .args(["--sim", "--jobs", "50", "--filter", "sim/", "--report"])
        .arg(&file)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let report = check(&fs::read_to_string(&file).unwrap(), now()).unwrap();
    assert_eq!((report.latency.len(), report.counts.failed), (4, 0));
    assert!(silicon(&report).is_err());
}
