//! One test of this program again, in a process of its own.
#![allow(dead_code, reason = "each program of tests takes of it")]

use contigo_testkit::emulated;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use std::{env, fs, thread};

const CHILD: &str = "CONTIGO_GPU_CHILD";
/// The last line of a child that does not end by itself.
pub(crate) const END: &str = "the child has seen it all";
/// How long such a child lives at most, if its parent is gone.
const LIFE: Duration = Duration::from_secs(120);

/// The name of this thread's test.
fn this_test() -> String {
    thread::current().name().unwrap_or("a thread of a test").to_owned()
}

/// Says that this thread's test was skipped, and why.
pub(crate) fn skipped(why: &str) {
    contigo_testkit::skipped(&this_test(), why);
}

/// This thread's test again, in which [`is_child`] is true.
pub(crate) fn child() -> Command {
    child_of(&this_test())
}

/// The test of this name, as [`child`].
pub(crate) fn child_of(test: &str) -> Command {
    let mut command = emulated::command(env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]).env(CHILD, "1");
    command
}

pub(crate) fn is_child() -> bool {
    env::var_os(CHILD).is_some()
}

/// Runs a child that ends well, and returns its words.
pub(crate) fn said(mut child: Command) -> String {
    let output = child.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}\n{errors}", output.status);
    said
}

/// Runs a child until it has said [`END`], and kills it: a process whose kernel runs may not end by
/// itself. Returns its lines.
pub(crate) fn said_until_end(mut child: Command) -> Vec<String> {
    let mut child = child.stdout(Stdio::piped()).spawn().unwrap();
    let output = child.stdout.take().unwrap();
    let (say, hear) = mpsc::channel();
    thread::spawn(move || {
        BufReader::new(output).lines().map_while(Result::ok).try_for_each(|line| say.send(line))
    });
    let (deadline, mut lines) = (Instant::now() + LIFE, Vec::new());
    let ended = loop {
        match hear.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(line) if line.contains(END) => break true,
            Ok(line) => lines.push(line),
            Err(_) => break false,
        }
    };
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(ended, "the child said no more than: {lines:#?}");
    lines
}

/// In the child: it ends, whatever hangs and also if its parent is gone.
pub(crate) fn ends_in_time() {
    thread::spawn(|| {
        thread::sleep(LIFE);
        std::process::abort();
    });
}

/// In the child: its last words. It then waits to be killed.
pub(crate) fn has_seen_it_all() {
    println!("{END}");
    thread::sleep(LIFE);
}

/// Is the page that has this byte mapped?
pub(crate) fn is_mapped(addr: usize) -> bool {
    let hex = |text: &str| usize::from_str_radix(text, 16).unwrap();
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines()
        .filter_map(|line| line.split_once(' ')?.0.split_once('-'))
        .any(|(from, to)| (hex(from)..hex(to)).contains(&addr))
}
