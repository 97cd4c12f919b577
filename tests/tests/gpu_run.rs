//! `tests/gpu/run` as a bundle, with programs of a line each in the place of the real ones: its
//! steps, limits, table and exit status. `.ci/run --all` dry-runs those of a machine with sources.
//! The kernel of its step `hang` is here too, executed as the stand-in does it: it ends by itself.

use contigo_testkit::emulated;
use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};
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

/// The outcome: the exit status, the table, and the same as JSON.
struct Run {
    status: Option<i32>,
    table: String,
    json: String,
}

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

/// Runs the bundle; `sanitizer` is what stands on the PATH as compute-sanitizer. Limits are two
/// seconds in the place of minutes.
fn run(
    tests: &str,
    bench: &str,
    tool: &str,
    sanitizer: Option<&str>,
) -> Result<Run, Box<dyn std::error::Error>> {
    let folder = TempDir::new()?;
    let at = folder.path().join("a bundle");
    let bin = folder.path().join("bin");
    bundle(&at, 2, [("gpu-tests", tests), ("gpu-bench", bench), ("contigo", tool)])?;
    fs::create_dir(&bin)?;
    if let Some(body) = sanitizer {
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
        assert!(report.join(file).exists(), "no {file}");
    }
    Ok(Run {
        status,
        table: fs::read_to_string(report.join("table.txt"))?,
        json: fs::read_to_string(report.join("table.json"))?,
    })
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

/// Does a script of this machine's run the programs? Under an emulator of another processor there
/// is nothing new in it.
fn here(test: &str) -> bool {
    let why = emulated::why();
    if let Some(why) = &why {
        emulated::skipped(test, why);
    }
    why.is_none()
}

#[test]
fn passed_and_skipped_steps_are_told_apart() -> Outcome {
    if !here("passed_and_skipped_steps_are_told_apart") {
        return Ok(());
    }
    let all = run(PASSES, "echo table", GPU, Some(PASSES_WITHOUT_FREE_MEMORY))?;
    assert_eq!(
        (all.status, all.closing()),
        (Some(0), "6 passed, 0 failed, 0 skipped"),
        "{}",
        all.table
    );
    assert!(
        all.line("tests").contains("3 tests") && all.json.contains(r#""passed":6,"failed":0"#),
        "{}",
        all.json
    );
    let none = run(SKIPS, "echo 'skipped: gpu: no driver'", NO_GPU, None)?;
    assert_eq!(
        (none.status, none.closing()),
        (Some(0), "0 passed, 0 failed, 6 skipped"),
        "{}",
        none.table
    );
    for (step, why) in [
        ("tests", "no driver"),
        ("sanitizer-memcheck", "not installed"),
        ("demo", "lists no GPU: no driver"),
        ("bench", "no driver"),
    ] {
        assert!(none.line(step).contains(why), "{}", none.table);
    }
    let some = run(&format!("echo 'skipped: a::one: \"why\"'; {PASSES}"), "echo table", GPU, None)?;
    assert!(some.line("tests").contains(r#"2 tests; skipped: a::one: "why""#), "{}", some.table);
    assert!(some.json.contains(r#"a::one: \"why\""#), "{}", some.json);
    Ok(())
}

#[test]
fn failed_or_hung_step_is_named_others_run() -> Outcome {
    if !here("failed_or_hung_step_is_named_others_run") {
        return Ok(());
    }
    let broken = run(
        "printf 'failures:\n    jobs::a\n    jobs::b\n\ntest result: FAILED. 1 passed\n'; exit 101",
        "kill -SEGV $$",
        GPU,
        None,
    )?;
    assert_eq!(
        (broken.status, broken.closing()),
        (Some(1), "1 passed, 3 failed, 2 skipped"),
        "{}",
        broken.table
    );
    assert!(broken.line("tests").contains("exit status 101; jobs::a jobs::b"), "{}", broken.table);
    assert!(broken.line("bench").contains("exit status 139"), "{}", broken.table);
    let killed = run(PASSES, "kill -KILL $$", GPU, None)?;
    assert!(
        killed.status == Some(1) && killed.line("bench").contains("another signal"),
        "{}",
        killed.table
    );
    let hangs = run(PASSES, "trap '' TERM; sleep 60 & wait; sleep 60", GPU, None)?;
    assert_eq!(
        (hangs.status, hangs.closing()),
        (Some(1), "3 passed, 1 failed, 2 skipped"),
        "{}",
        hangs.table
    );
    assert!(hangs.line("bench").contains("not ended after"), "{}", hangs.table);
    Ok(())
}

#[test]
fn sanitizer_refusal_skips_finding_fails() -> Outcome {
    if !here("sanitizer_refusal_skips_finding_fails") {
        return Ok(());
    }
    let refuses = run(
        PASSES,
        "echo table",
        GPU,
        Some("echo '========= Error: Device not supported.'; exit 1"),
    )?;
    assert_eq!(
        (refuses.status, refuses.closing()),
        (Some(0), "4 passed, 0 failed, 2 skipped"),
        "{}",
        refuses.table
    );
    assert!(
        refuses.line("sanitizer-initcheck").contains("Device not supported"),
        "{}",
        refuses.table
    );
    let finds =
        run(PASSES, "echo table", GPU, Some("echo '========= ERROR SUMMARY: 2 errors'; exit 1"))?;
    assert_eq!(
        (finds.status, finds.closing()),
        (Some(1), "4 passed, 2 failed, 0 skipped"),
        "{}",
        finds.table
    );
    assert!(
        finds.line("sanitizer-memcheck").contains("ERROR SUMMARY: 2 errors"),
        "{}",
        finds.table
    );
    Ok(())
}

#[test]
fn empty_steps_and_unusable_gpu_fail() -> Outcome {
    if !here("empty_steps_and_unusable_gpu_fail") {
        return Ok(());
    }
    let none =
        run("echo 'test result: ok. 0 passed; 0 failed; 2 filtered out'", "echo", GPU, None)?;
    assert_eq!(
        (none.status, none.closing()),
        (Some(1), "1 passed, 3 failed, 2 skipped"),
        "{}",
        none.table
    );
    for (step, why) in
        [("tests", "no test ran"), ("hang", "no test ran"), ("bench", "it said nothing")]
    {
        assert!(none.line(step).contains(why), "{}", none.table);
    }
    let broken = run(SKIPS, "echo 'skipped: gpu: no driver'", BROKEN_GPU, None)?;
    assert_eq!(
        (broken.status, broken.closing()),
        (Some(1), "0 passed, 1 failed, 6 skipped"),
        "{}",
        broken.table
    );
    assert!(broken.line("info").contains("cannot be used: out of memory (2)"), "{}", broken.table);
    Ok(())
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
    bundle(
        &at,
        60,
        [
            ("gpu-tests", "echo $$ >part && mv part pid && exec sleep 60"),
            ("gpu-bench", PASSES),
            ("contigo", GPU),
        ],
    )?;
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
    use fake_cuda::ptx::{Grid, Window, parse};
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
        let mut launched = entry.start(Grid { blocks: [1; 3], threads: [1; 3] });
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
