//! Miri reads the runtime's unsafe code a second time: the core's own tests, its end-to-end file
//! and its error paths. It needs the nightly component `miri`, and minutes. `CONTIGO_MIRI=1`, as
//! `.ci/run` has it, reads the core's own tests under one aliasing model; `CONTIGO_MIRI=all`, as
//! `.ci/nightly` has it, all of them under both, except for two long ones. Elsewhere it prints that
//! it was skipped.

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

/// The sets of tests: a package and a target, the tests to leave out, and how many must have
/// passed, so that a filter that fits nothing shows. Left out of the unit tests: the allocator's
/// property tests (minutes each, and safe code), and tests with an ioctl, which Miri cannot run.
/// Left out of the audit: tests that map a device's registers. The sets that are long come last:
/// only the second model reads those.
const SETS: [(&[&str], &[&str], u32); 7] = [
    (
        &["--package=contigo-core", "--lib"],
        &[
            "span::",
            "region::",
            "types::shared::",
            "types::boxed::",
            "--skip",
            "one_block",
            "--skip",
            "few_blocks",
            "--skip",
            "many_blocks",
        ],
        10,
    ),
    (&["--package=contigo-tests", "--test=runtime"], &["core_smoke::"], 8),
    (&["--package=contigo-tests", "--test=runtime"], &["dlpack::"], 20),
    (
        &["--package=contigo-tests", "--test=runtime"],
        &["audit::", "--skip", "registers_are", "--skip", "an_iommu"],
        10,
    ),
    (&["--package=contigo-tests", "--test=runtime"], &["errors::memory::", "errors::jobs::"], 8),
    (&["--package=contigo-tests", "--test=runtime"], &["own_queue::"], 10),
    (&["--package=contigo-tests", "--test=drivers"], &["pl330::named::last_taken"], 1),
];

/// A model of the accesses that a reference forbids, with how many of the sets it reads. A leak of
/// the runtime's on purpose is no finding.
type Model = (&'static str, &'static str, usize);
const STACKED: &str = "-Zmiri-ignore-leaks";
const TREE: &str = "-Zmiri-ignore-leaks -Zmiri-tree-borrows";
/// A minute or two; the others first build all that the tests need.
const SHORT: &[Model] = &[("Tree Borrows", TREE, 1)];
const ALL: &[Model] = &[("Stacked Borrows", STACKED, 5), ("Tree Borrows", TREE, SETS.len())];

/// One set under one model: 15 s here, and a minute more to build Miri's own standard library the
/// first time.
const LIMIT: Duration = Duration::from_secs(600);

/// A line that is seen also when the test passes: the harness only keeps what `println!` prints.
fn say(text: &str) {
    std::io::stderr().write_all(format!("{text}\n").as_bytes()).unwrap();
}

fn cargo_miri(arguments: &[&str]) -> Command {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut command = Command::new("cargo");
    command.current_dir(root).args(["+nightly", "miri"]).args(arguments);
    // The variables that the outer cargo and its rustup proxy set would choose their toolchain
    // again.
    for name in [
        "RUSTUP_TOOLCHAIN",
        "CARGO",
        "RUSTC",
        "RUSTDOC",
        "RUSTFLAGS",
        "CARGO_ENCODED_RUSTFLAGS",
        "CARGO_BUILD_TARGET",
        "LD_LIBRARY_PATH",
    ] {
        command.env_remove(name);
    }
    // Not the outer cargo's folder: it may hold its lock.
    command
        .env("CARGO_TARGET_DIR", root.join("target").join("miri"))
        .env("CARGO_TERM_COLOR", "never");
    command
}

/// Runs it, its output in `log`, at most for `LIMIT`.
fn run(mut command: Command, log: &Path) -> ExitStatus {
    let file = File::create(log).unwrap();
    command.stdout(file.try_clone().unwrap()).stderr(file).process_group(0);
    let mut child = command.spawn().unwrap();
    let deadline = Instant::now() + LIMIT;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if Instant::now() > deadline {
            // The whole group: cargo's children would run on.
            killpg(Pid::from_raw(child.id().cast_signed()), Signal::SIGKILL).unwrap();
            return child.wait().unwrap();
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Why Miri cannot run here.
fn missing() -> Option<String> {
    match cargo_miri(&["--version"]).output() {
        Err(error) => Some(format!("no cargo to run it with: {error}")),
        Ok(output) if !output.status.success() => {
            let told = String::from_utf8_lossy(&output.stderr);
            let told = told.lines().next().unwrap_or("it says nothing");
            Some(format!("rustup component add --toolchain nightly miri rust-src ({told})"))
        }
        Ok(_) => None,
    }
}

/// How many tests the harnesses in `text` say have passed.
fn passed(text: &str) -> u32 {
    let counts = text.lines().filter_map(|line| {
        line.strip_prefix("test result: ok. ")?.split(' ').next()?.parse::<u32>().ok()
    });
    counts.sum()
}

#[test]
fn miri_finds_no_undefined_behaviour() {
    let models = match std::env::var("CONTIGO_MIRI").as_deref() {
        Ok("1") => SHORT,
        Ok("all") => ALL,
        _ => {
            let why = "CONTIGO_MIRI=1 asks for it, or CONTIGO_MIRI=all";
            return contigo_testkit::skipped("sources::miri", why);
        }
    };
    if let Some(why) = missing() {
        return contigo_testkit::skipped("sources::miri", &why);
    }
    let folder = tempfile::tempdir().unwrap();
    // Both models at once: a test that Miri reads has one thread. Cargo builds each set for the
    // first that asks.
    std::thread::scope(|scope| {
        for (number, &(model, flags, sets)) in models.iter().enumerate() {
            let log = folder.path().join(format!("miri-{number}.log"));
            scope.spawn(move || read_sets(model, flags, sets, &log));
        }
    });
}

/// The first `sets` of the sets under one model; their output goes through `log`.
fn read_sets(model: &str, flags: &str, sets: usize, log: &Path) {
    for (target, filters, at_least) in SETS.into_iter().take(sets) {
        let mut command = cargo_miri(&["test", "--locked"]);
        command.args(target).arg("--").args(filters).env("MIRIFLAGS", flags);
        let status = run(command, log);
        let text = fs::read_to_string(log).unwrap();
        assert!(status.success(), "{model}: {status}\n{text}");
        assert!(passed(&text) >= at_least, "{model}: too few tests\n{text}");
        say(&format!("Miri, {model}, {}: {} tests passed", target.join(" "), passed(&text)));
    }
}
