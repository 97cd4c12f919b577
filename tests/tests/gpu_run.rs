#![allow(clippy::panic, reason = "a test that panics has failed, which is its purpose")]
//! `tests/gpu/run` as a bundle, with programs of a line each in the place of the real ones: its
//! steps, limits, table and exit status. `.ci/run --all` dry-runs those of a machine with sources.
//! The kernel of its step `hang` is here too, executed as the stand-in does it: it ends by itself.

use contigo_testkit::emulated;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

#[cfg(target_pointer_width = "64")]
#[path = "gpu/hang/spin.rs"]
mod spin;

type Outcome = Result<(), Box<dyn std::error::Error>>;

const GPU: &str = r#"echo digits; [ "$1" = info ] && printf '"name": "cuda:0",\n"state": "ready",\n"note": "GPU 0"\n}\n"devices": [\n"name": "cuda:0",\n"state": "ready",\n"note": "no registers"\n}\n'; exit 0"#;
const BROKEN_GPU: &str = r#"[ "$1" = info ] && printf '"name": "cuda:0",\n"state": "blocked",\n"size_bytes": null,\n"note": "out of memory (2)"\n}\n'; exit 0"#;
const NO_GPU: &str =
    r#"[ "$1" = info ] && printf '"name": "cuda",\n"note": "no driver"\n}\n'; exit 0"#;
const PASSES: &str = "echo 'test result: ok. 3 passed; 0 failed'";
/// Nothing can be said of the free memory beside the sanitizer's own.
const PASSES_WITHOUT_FREE_MEMORY: &str = r#"case "$*" in
*" --skip hang:: --skip leave_nothing_behind --skip leaves_nothing_behind") echo 'test result: ok. 3 passed; 0 failed' ;;
*) exit 1 ;;
esac"#;
const SKIPS: &str = "printf 'skipped: a::one: no driver\nskipped: a::two: no driver\ntest result: ok. 2 passed; 0 failed\n'";

/// A run of the bundle, and its outcome.
struct Row {
    name: &'static str,
    tests: &'static str,
    bench: &'static str,
    tool: &'static str,
    /// The program that stands on the PATH as compute-sanitizer.
    sanitizer: Option<&'static str>,
    status: i32,
    closing: &'static str,
    /// Steps, and a part of the line of each.
    lines: &'static [(&'static str, &'static str)],
    /// A part of the table as JSON.
    json: &'static str,
}

/// Every step that can run passes.
const PASSED: Row = Row {
    name: "all pass",
    tests: PASSES,
    bench: "echo table",
    tool: GPU,
    sanitizer: None,
    status: 0,
    closing: "4 passed, 0 failed, 2 skipped",
    lines: &[("tests", "3 tests")],
    json: "",
};

const ROWS: [Row; 10] = [
    Row {
        sanitizer: Some(PASSES_WITHOUT_FREE_MEMORY),
        closing: "6 passed, 0 failed, 0 skipped",
        json: r#""passed":6,"failed":0"#,
        ..PASSED
    },
    Row {
        name: "no driver",
        tests: SKIPS,
        bench: "echo 'skipped: gpu: no driver'",
        tool: NO_GPU,
        closing: "0 passed, 0 failed, 6 skipped",
        lines: &[
            ("tests", "no driver"),
            ("sanitizer-memcheck", "not installed"),
            ("demo", "lists no GPU: no driver"),
            ("bench", "no driver"),
        ],
        ..PASSED
    },
    Row {
        name: "one test is skipped",
        tests: "echo 'skipped: a::one: \"why\"'; echo 'test result: ok. 3 passed; 0 failed'",
        lines: &[("tests", r#"2 tests; skipped: a::one: "why""#)],
        json: r#"a::one: \"why\""#,
        ..PASSED
    },
    Row {
        name: "tests fail, and the benchmark crashes",
        tests: "printf 'failures:\n    jobs::a\n    jobs::b\n\ntest result: FAILED. 1 passed\n'
exit 101",
        bench: "kill -SEGV $$",
        status: 1,
        closing: "1 passed, 3 failed, 2 skipped",
        lines: &[("tests", "exit status 101; jobs::a jobs::b"), ("bench", "exit status 139")],
        ..PASSED
    },
    Row {
        name: "the benchmark is killed",
        bench: "kill -KILL $$",
        status: 1,
        closing: "3 passed, 1 failed, 2 skipped",
        lines: &[("bench", "another signal")],
        ..PASSED
    },
    Row {
        name: "the benchmark hangs",
        bench: "trap '' TERM; sleep 60 & wait; sleep 60",
        status: 1,
        closing: "3 passed, 1 failed, 2 skipped",
        lines: &[("bench", "not ended after")],
        ..PASSED
    },
    Row {
        name: "the sanitizer refuses the device",
        sanitizer: Some("echo '========= Error: Device not supported.'; exit 1"),
        lines: &[("sanitizer-initcheck", "Device not supported")],
        ..PASSED
    },
    Row {
        name: "the sanitizer finds something",
        sanitizer: Some("echo '========= ERROR SUMMARY: 2 errors'; exit 1"),
        status: 1,
        closing: "4 passed, 2 failed, 0 skipped",
        lines: &[("sanitizer-memcheck", "ERROR SUMMARY: 2 errors")],
        ..PASSED
    },
    Row {
        name: "steps without a result",
        tests: "echo 'test result: ok. 0 passed; 0 failed; 2 filtered out'",
        bench: "echo",
        status: 1,
        closing: "1 passed, 3 failed, 2 skipped",
        lines: &[("tests", "no test ran"), ("hang", "no test ran"), ("bench", "it said nothing")],
        ..PASSED
    },
    Row {
        name: "a GPU that is blocked",
        tests: SKIPS,
        bench: "echo 'skipped: gpu: no driver'",
        tool: BROKEN_GPU,
        status: 1,
        closing: "0 passed, 1 failed, 6 skipped",
        lines: &[("info", "cannot be used: out of memory (2)")],
        ..PASSED
    },
];

fn program(at: &Path, body: &str) -> std::io::Result<()> {
    fs::write(at, format!("#!/usr/bin/env bash\n{body}\n"))?;
    fs::set_permissions(at, Permissions::from_mode(0o755))
}

/// The bundle's folder there, each step with this limit.
fn bundle(at: &Path, limit_s: u32, programs: [(&str, &str); 3]) -> std::io::Result<()> {
    fs::create_dir(at)?;
    let script = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/gpu/run"))?;
    let limited = script
        .replace("    local name=$1 limit_s=$2 ", &format!("    local name=$1 limit_s={limit_s} "));
    assert_ne!(script, limited, "where the limit is set has changed");
    fs::write(at.join("run"), limited)?;
    programs.into_iter().try_for_each(|(name, body)| program(&at.join(name), body))
}

/// Runs the bundle as a row says. Limits are two seconds in the place of minutes.
fn run(row: &Row) -> Outcome {
    let folder = TempDir::new()?;
    let at = folder.path().join("a bundle");
    let bin = folder.path().join("bin");
    let programs = [("gpu-tests", row.tests), ("gpu-bench", row.bench), ("contigo", row.tool)];
    bundle(&at, 2, programs)?;
    fs::create_dir(&bin)?;
    if let Some(body) = row.sanitizer {
        program(&bin.join("compute-sanitizer"), body)?;
    }
    let mut bash = Command::new("bash");
    bash.arg(at.join("run"))
        .args(["--report", "a report"])
        .current_dir(folder.path())
        .env("PATH", format!("{}:/usr/bin:/bin", bin.display()));
    let status = bash.env_remove("CONTIGO_RUNNER").output()?.status.code();
    let report = folder.path().join("a report");
    for file in ["machine.txt", "info.json", "tests.log", "hang.log", "bench.log"] {
        assert!(report.join(file).exists(), "{}: no {file}", row.name);
    }
    let table = fs::read_to_string(report.join("table.txt"))?;
    let closing = table.lines().last().unwrap_or("");
    assert_eq!((status, closing), (Some(row.status), row.closing), "{}: {table}", row.name);
    for (step, why) in row.lines {
        let line = table.lines().find(|line| line.starts_with(step)).unwrap_or("");
        assert!(line.contains(why), "{}: {table}", row.name);
    }
    let json = fs::read_to_string(report.join("table.json"))?;
    assert!(json.contains(row.json), "{}: {json}", row.name);
    Ok(())
}

/// Does a script of this machine's run the programs? Under an emulator of another processor there
/// is nothing new in it.
fn here(test: &str) -> bool {
    let why = emulated::why();
    if let Some(why) = &why {
        contigo_testkit::skipped(test, why);
    }
    why.is_none()
}

#[test]
fn every_outcome_of_a_step_is_told() {
    if here("every_outcome_of_a_step_is_told") {
        thread::scope(|scope| {
            for row in &ROWS {
                scope.spawn(|| run(row).unwrap_or_else(|error| panic!("{}: {error}", row.name)));
            }
        });
    }
}

/// The process that started it has gone. The programs that it runs go too, long before its limit.
#[test]
fn a_hang_up_ends_what_runs() -> Outcome {
    const SOON: Duration = Duration::from_secs(20);
    if !here("a_hang_up_ends_what_runs") {
        return Ok(());
    }
    let folder = TempDir::new()?;
    let (at, pid) = (folder.path().join("a bundle"), folder.path().join("pid"));
    let waits = "echo $$ >part && mv part pid && exec sleep 60";
    bundle(&at, 60, [("gpu-tests", waits), ("gpu-bench", PASSES), ("contigo", GPU)])?;
    // These tests may run under nohup, which ignores the signal.
    let mut run = Command::new("env");
    run.args(["--default-signal=HUP", "bash"])
        .arg(at.join("run"))
        .current_dir(folder.path())
        .env_remove("CONTIGO_RUNNER");
    let mut run = run.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let becomes = |done: &dyn Fn() -> bool| {
        let since = Instant::now();
        while !done() && since.elapsed() < SOON {
            thread::sleep(Duration::from_millis(20));
        }
        done()
    };
    let began = becomes(&|| pid.exists());
    let sent = Command::new("kill").args(["-HUP", &run.id().to_string()]).status()?;
    let status = run.wait()?.code();
    assert!(began && sent.success() && status == Some(130), "{status:?}");
    let process = Path::new("/proc").join(fs::read_to_string(pid)?.trim());
    assert!(becomes(&|| !process.exists()), "{} goes on", process.display());
    Ok(())
}

#[cfg(target_pointer_width = "64")]
#[test]
fn spin_kernel_ends_by_flag_or_gives_up() -> Outcome {
    use fake_cuda::Launch;
    use fake_cuda::ptx::{Window, parse};
    const LOOKS: &str = "200000000";
    let text = spin::PTX.to_str()?;
    assert_eq!(text.matches(LOOKS).count(), 1, "where the looks are counted has changed");
    let text = text.replace(LOOKS, "1000");
    let entries = parse(&text, 53)?;
    let [entry] = &entries[..] else { return Err("one kernel".into()) };
    let run = |flag: u8, statements_max| {
        let (out, flag_at) = (0x1000, 0x2000);
        let mut windows =
            [Window::new(out, vec![0; 4], true), Window::new(flag_at, vec![flag, 0, 0, 0], false)];
        let mut launched = entry.start(Launch { grid: [1; 3], block: [1; 3], shared_bytes: 0 });
        let ended = entry.run(&mut launched, &[out, flag_at], &mut windows, statements_max);
        let word: u32 = windows.first().map_or(0, |out| {
            out.bytes().iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte))
        });
        (ended, word)
    };
    assert_eq!(run(1, 100), (Ok(true), spin::ENDED));
    assert_eq!(
        run(0, 5_000),
        (Ok(false), spin::BEGUN),
        "a thousand looks are six thousand statements"
    );
    assert_eq!(run(0, 7_000), (Ok(true), spin::GAVE_UP));
    Ok(())
}
