//! `tests/gpu/run` as a bundle, with programs of a line each in the place of the real ones: its steps, limits, table and exit status. What it runs
//! on a machine with sources is dry-run by `.ci/run`.

use contigo_tests::emulated;
use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::Path,
    process::Command,
};
use tempfile::TempDir;

type Outcome = Result<(), Box<dyn std::error::Error>>;

const GPU: &str = r#"[ "$1" = info ] && echo '"heap": "cuda:0"'; exit 0"#;
const NO_GPU: &str = r#"[ "$1" = info ] && printf '"heap": "cuda",\n"note": "no driver"\n}\n'; exit 0"#;
const PASSES: &str = "echo 'test result: ok. 3 passed; 0 failed'";
const SKIPS: &str = "printf 'skipped: a::one: no driver\nskipped: a::two: no driver\ntest result: ok. 2 passed; 0 failed\n'";

/// What came of it: the exit status, the table, and the same as JSON.
struct Run {
    status: Option<i32>,
    table: String,
    json: String,
}

fn program(at: &Path, body: &str) -> std::io::Result<()> {
    fs::write(at, format!("#!/usr/bin/env bash\n{body}\n"))?;
    fs::set_permissions(at, Permissions::from_mode(0o755))
}

/// Runs the bundle; `sanitizer` is what stands on the PATH as compute-sanitizer. Limits are two seconds in the place of minutes.
fn run(tests: &str, bench: &str, tool: &str, sanitizer: Option<&str>) -> Result<Run, Box<dyn std::error::Error>> {
    let folder = TempDir::new()?;
    let bundle = folder.path().join("a bundle");
    let bin = folder.path().join("bin");
    fs::create_dir(&bundle)?;
    fs::create_dir(&bin)?;
    let script = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/gpu/run"))?;
    let short = script.replace("    local name=$1 limit_s=$2 ", "    local name=$1 limit_s=2 ");
    assert_ne!(script, short, "where the limit is set has changed");
    fs::write(bundle.join("run"), short)?;
    for (name, body) in [("gpu-tests", tests), ("gpu-bench", bench), ("contigo", tool)] {
        program(&bundle.join(name), body)?;
    }
    if let Some(body) = sanitizer {
        program(&bin.join("compute-sanitizer"), body)?;
    }
    let mut bash = Command::new("bash");
    bash.arg(bundle.join("run"))
        .args(["--report", "a report"])
        .current_dir(folder.path())
        .env("PATH", format!("{}:/usr/bin:/bin", bin.display()));
    let status = bash.env_remove("CONTIGO_RUNNER").output()?.status.code();
    let report = folder.path().join("a report");
    for file in ["machine.txt", "info.json", "tests.log", "hang.log", "bench.log"] {
        assert!(report.join(file).exists(), "no {file}");
    }
    Ok(Run { status, table: fs::read_to_string(report.join("table.txt"))?, json: fs::read_to_string(report.join("table.json"))? })
}

impl Run {
    /// The line of this step.
    fn line(&self, step: &str) -> &str {
        self.table.lines().find(|line| line.starts_with(step)).unwrap_or("")
    }

    fn closing(&self) -> &str {
        self.table.lines().last().unwrap_or("")
    }
}

/// Does a script of this machine's run the programs? Under an emulator of another processor there is nothing new in it.
fn here(test: &str) -> bool {
    let why = emulated::why();
    if let Some(why) = &why {
        emulated::skipped(test, why);
    }
    why.is_none()
}

#[test]
fn steps_that_pass_and_that_are_skipped_are_told_apart() -> Outcome {
    if !here("steps_that_pass_and_that_are_skipped_are_told_apart") {
        return Ok(());
    }
    let all = run(PASSES, "echo table", GPU, Some(PASSES))?;
    assert_eq!((all.status, all.closing()), (Some(0), "6 passed, 0 failed, 0 skipped"), "{}", all.table);
    assert!(all.line("tests").contains("3 tests") && all.json.contains(r#""passed":6,"failed":0"#), "{}", all.json);
    let none = run(SKIPS, "echo 'skipped: gpu: no driver'", NO_GPU, None)?;
    assert_eq!((none.status, none.closing()), (Some(0), "0 passed, 0 failed, 6 skipped"), "{}", none.table);
    for (step, why) in
        [("tests", "no driver"), ("sanitizer-memcheck", "not installed"), ("demo", "lists no GPU: no driver"), ("bench", "no driver")]
    {
        assert!(none.line(step).contains(why), "{}", none.table);
    }
    let some = run(&format!("echo 'skipped: a::one: \"why\"'; {PASSES}"), "echo", GPU, None)?;
    assert!(some.line("tests").contains(r#"2 tests; skipped: a::one: "why""#), "{}", some.table);
    assert!(some.json.contains(r#"a::one: \"why\""#), "{}", some.json);
    Ok(())
}

#[test]
fn a_step_that_fails_or_hangs_is_named_and_the_others_go_on() -> Outcome {
    if !here("a_step_that_fails_or_hangs_is_named_and_the_others_go_on") {
        return Ok(());
    }
    let broken =
        run("printf 'failures:\n    jobs::a\n    jobs::b\n\ntest result: FAILED. 1 passed\n'; exit 101", "kill -SEGV $$", GPU, None)?;
    assert_eq!((broken.status, broken.closing()), (Some(1), "1 passed, 3 failed, 2 skipped"), "{}", broken.table);
    assert!(broken.line("tests").contains("exit status 101; jobs::a jobs::b"), "{}", broken.table);
    assert!(broken.line("bench").contains("exit status 139"), "{}", broken.table);
    let killed = run(PASSES, "kill -KILL $$", GPU, None)?;
    assert!(killed.status == Some(1) && killed.line("bench").contains("somebody's signal"), "{}", killed.table);
    let hangs = run(PASSES, "trap '' TERM; sleep 60 & wait; sleep 60", GPU, None)?;
    assert_eq!((hangs.status, hangs.closing()), (Some(1), "3 passed, 1 failed, 2 skipped"), "{}", hangs.table);
    assert!(hangs.line("bench").contains("not ended after"), "{}", hangs.table);
    Ok(())
}

#[test]
fn a_sanitizer_that_refuses_the_gpu_is_skipped_and_one_that_finds_something_is_not() -> Outcome {
    if !here("a_sanitizer_that_refuses_the_gpu_is_skipped_and_one_that_finds_something_is_not") {
        return Ok(());
    }
    let refuses = run(PASSES, "echo", GPU, Some("echo '========= Error: Device not supported.'; exit 1"))?;
    assert_eq!((refuses.status, refuses.closing()), (Some(0), "4 passed, 0 failed, 2 skipped"), "{}", refuses.table);
    assert!(refuses.line("sanitizer-initcheck").contains("Device not supported"), "{}", refuses.table);
    let finds = run(PASSES, "echo", GPU, Some("echo '========= ERROR SUMMARY: 2 errors'; exit 1"))?;
    assert_eq!((finds.status, finds.closing()), (Some(1), "4 passed, 2 failed, 0 skipped"), "{}", finds.table);
    assert!(finds.line("sanitizer-memcheck").contains("ERROR SUMMARY: 2 errors"), "{}", finds.table);
    Ok(())
}
