//! `contigo log` as its user runs it: live, after `kill -9`, and each file that it refuses.
//! `cargo test --package contigo-cli --features log --test log`.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that panics has failed; a JSON value answers an absent key with null, and an \
              assertion then fails"
)]

use contigo_log::{Decoder, Piece, Reader};
use serde_json::Value;
use std::io::{BufRead, BufReader, Lines};
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::{OnceLock, mpsc};
use std::time::Duration;
use std::{fs, thread};
use tempfile::TempDir;

/// The example that logs. `cargo test --workspace` has built it; a narrower run builds it here.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let own = std::env::current_exe().unwrap();
        let built = own.parent().unwrap().parent().unwrap().join("examples/flight");
        if !built.exists() {
            let done = Command::new(env!("CARGO"))
                .args(["build", "--quiet", "--locked", "-p", "contigo-log", "--example", "flight"])
                .status();
            assert!(done.unwrap().success(), "the example was not built");
        }
        built
    })
}

/// A program that is killed when its test ends, however it ends.
struct Running {
    child: Child,
    /// While it is there, the limit counts.
    _alive: mpsc::Sender<()>,
}

/// A follower that prints nothing more is ended, and its test fails: fifty times what one takes.
const LIMIT: Duration = Duration::from_secs(60);

impl Running {
    fn new(command: &mut Command) -> (Self, Lines<BufReader<ChildStdout>>) {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let said = BufReader::new(child.stdout.take().unwrap()).lines();
        let (alive, ended) = mpsc::channel();
        let pid = child.id().to_string();
        thread::spawn(move || {
            if ended.recv_timeout(LIMIT) == Err(mpsc::RecvTimeoutError::Timeout) {
                let _ = Command::new("kill").args(["-9", &pid]).status();
            }
        });
        (Self { child, _alive: alive }, said)
    }

    /// `kill -9`.
    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The log of a flight that was killed after 1,000 jobs, of 9 bytes each: twice the ring.
fn killed(log: &Path) -> u32 {
    let (mut flight, mut told) = Running::new(Command::new(program()).arg(log));
    assert!(told.any(|line| line.unwrap() == "1000"), "the flight ended by itself");
    flight.kill();
    // A last line that the kill cut has fewer digits, and so is no larger number.
    told.map_while(Result::ok).filter_map(|line| line.parse().ok()).max().unwrap_or(1_000)
}

fn contigo(args: &[&str], log: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_contigo")).arg("log").args(args).arg(log).output().unwrap()
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn after_kill_9_the_last_events_are_printed() {
    let folder = TempDir::new().unwrap();
    let log = folder.path().join("flight.log");
    let printed = killed(&log);

    let text = stdout(&contigo(&[], &log));
    let first = text.lines().next().unwrap();
    assert!(
        first.starts_with(&format!("-- {}, process ", program().display()))
            && first.contains(", build "),
        "{first}"
    );
    assert!(text.lines().nth(1).unwrap().contains("bytes before this were overwritten"), "{text}");
    let last = text.lines().rfind(|line| line.contains(" is done")).unwrap();
    assert!(last.contains(" WARN  job ") && last.contains("examples/flight.rs:"), "{last}");

    let lines: Vec<Value> = stdout(&contigo(&["--json"], &log))
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines[0]["program"], program().to_str().unwrap());
    assert!(
        lines[0]["pid"].as_u64().unwrap() > 1 && lines[0]["build_id"].as_str().unwrap().len() >= 16,
        "{}",
        lines[0]
    );
    assert!(lines[1]["overwritten_bytes"].as_u64().unwrap() > 0);
    assert_eq!(lines.last().unwrap()["dropped_events"], 0);
    let events = &lines[2..lines.len() - 1];
    assert!(
        events.iter().all(|event| event["time_us"].is_u64() && event["level"].is_string()),
        "{events:?}"
    );
    let newest = events.iter().filter_map(job).next_back().unwrap();
    assert!(
        newest == printed || newest == printed + 1,
        "the log ends at {newest}, the output at {printed}"
    );
}

/// The number of the job that an event tells as done.
fn job(event: &Value) -> Option<u32> {
    event["text"].as_str()?.strip_prefix("job ")?.strip_suffix(" is done")?.parse().ok()
}

#[test]
fn it_follows_a_program_and_its_next_run() {
    let folder = TempDir::new().unwrap();
    let log = folder.path().join("flight.log");
    let (mut flight, mut told) = Running::new(Command::new(program()).arg(&log));
    assert_eq!(told.next().unwrap().unwrap(), "1");
    // A thread reads what it prints, or it would stop.
    let reader = thread::spawn(move || told.for_each(drop));

    let mut command = Command::new(env!("CARGO_BIN_EXE_contigo"));
    let (mut follow, said) = Running::new(command.args(["log", "--follow", "--json"]).arg(&log));
    let mut said = said.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    let first = said.next().unwrap()["pid"].as_u64().unwrap();
    let early = said.by_ref().find_map(|line| job(&line)).unwrap();
    assert!(
        said.by_ref().filter_map(|line| job(&line)).any(|job| job > early + 1_000),
        "it does not go on"
    );
    flight.kill();
    reader.join().unwrap();

    assert!(
        Command::new(program())
            .arg(&log)
            .arg("3")
            .stdout(Stdio::null())
            .status()
            .unwrap()
            .success()
    );
    let next = said.find(|line| line["pid"].is_u64()).unwrap();
    assert_ne!(next["pid"], first, "the next run is reported");
    let jobs: Vec<u32> = said.filter_map(|line| job(&line)).take(3).collect();
    assert_eq!(jobs, [1, 2, 3]);
    follow.kill();
}

/// One line on standard error, which has all of `parts`, and exit status 1.
fn refused(output: &Output, parts: &[&str]) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{said}");
    for part in parts {
        assert!(said.contains(part), "{part:?} is not in {said}");
    }
}

#[test]
fn each_refusal_says_what_to_do() {
    let folder = TempDir::new().unwrap();
    let log = folder.path().join("flight.log");
    assert!(
        Command::new(program())
            .arg(&log)
            .arg("3")
            .stdout(Stdio::null())
            .status()
            .unwrap()
            .success()
    );
    let whole = fs::read(&log).unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    };
    let nowhere = folder.path().join("nowhere.log");
    refused(&contigo(&[], &nowhere), &["nowhere.log: ", "No such file"]);
    refused(&contigo(&[], folder.path()), &["no log of Contigo's"]);
    refused(&contigo(&[], &file("none", b"")), &["no log of Contigo's yet", "contigo_log::start"]);
    refused(&contigo(&[], &file("nonsense", &[0x5a; 9000])), &["no log of Contigo's"]);
    refused(
        &contigo(&[], &file("cut", &whole[..5000])),
        &["it has 5000 of its 8192 bytes", "copy the whole file"],
    );
    let mut damaged = whole.clone();
    damaged[128..136].fill(0xff);
    refused(&contigo(&[], &file("damaged", &damaged)), &["header is damaged", "FILE.before"]);

    let elf = |path: &Path| contigo(&["--elf", path.to_str().unwrap()], &log);
    refused(
        &elf(Path::new(env!("CARGO_BIN_EXE_contigo"))),
        &["another build", "--elf PROGRAM names the right file"],
    );
    refused(&elf(&file("no-elf", b"no program")), &["its build ID is none", "--elf PROGRAM"]);
    refused(&elf(&nowhere), &["No such file", "--elf PROGRAM"]);
    // The right build, whose section has another name: as linked without the script.
    let mut bare = fs::read(program()).unwrap();
    let name = b"\0.defmt\0";
    let places: Vec<usize> = bare
        .windows(name.len())
        .enumerate()
        .filter(|(_, window)| window == name)
        .map(|(at, _)| at)
        .collect();
    assert!(!places.is_empty());
    places.into_iter().for_each(|at| bare[at + 1..at + 7].copy_from_slice(b".other"));
    refused(
        &elf(&file("bare", &bare)),
        &["no texts of events", "give the file that was not stripped"],
    );
    // And the right file under another name is right.
    assert!(stdout(&elf(&file("copy", &fs::read(program()).unwrap()))).contains("job 3 is done"));
}

/// A flight of three jobs, whose log is whole.
fn flown(log: &Path) {
    assert!(
        Command::new(program()).arg(log).arg("3").stdout(Stdio::null()).status().unwrap().success()
    );
}

/// `frame` as the ring has it, with its check byte and its zero. Each seven bytes have a zero among
/// them: then a sign says which ones are zero.
fn encoded(frame: &[u8]) -> Vec<u8> {
    let check = frame.iter().fold(0xff, |check, byte| {
        (0..8).fold(
            check ^ byte,
            |value: u8, _| if value & 0x80 == 0 { value << 1 } else { value << 1 ^ 0x07 },
        )
    });
    let mut whole = [frame, &[check]].concat();
    whole.resize(whole.len().next_multiple_of(7), 0);
    let mut encoded = Vec::new();
    for seven in whole.chunks(7) {
        assert!(seven.contains(&0), "{seven:?}");
        encoded.extend(seven.iter().filter(|byte| **byte != 0));
        encoded.push((0..7).map(|bit| u8::from(seven[bit] == 0) << bit).sum());
    }
    encoded.push(0);
    encoded
}

/// The log with `frames` behind its own, which has room for them.
fn forged(log: &Path, frames: &[&[u8]]) {
    let mut bytes = fs::read(log).unwrap();
    let written = u64::from_le_bytes(bytes[128..136].try_into().unwrap());
    let more = frames.iter().flat_map(|frame| encoded(frame)).collect::<Vec<_>>();
    let (at, end) = (4096 + usize::try_from(written).unwrap(), written + more.len() as u64);
    bytes[at..at + more.len()].copy_from_slice(&more);
    [128, 136]
        .into_iter()
        .for_each(|count| bytes[count..count + 8].copy_from_slice(&end.to_le_bytes()));
    fs::write(log, bytes).unwrap();
}

/// A count of 4,294,967,295 values: the decoder asks for 200 GB, and ends.
#[test]
fn a_bad_event_is_one_line_and_the_next_is_read() {
    let folder = TempDir::new().unwrap();
    let log = folder.path().join("flight.log");
    flown(&log);
    let mut reader = Reader::open(&log).unwrap();
    let decoder = Decoder::new(&fs::read(program()).unwrap(), &reader.header().unwrap()).unwrap();
    let mut good = reader
        .pieces()
        .unwrap()
        .into_iter()
        .find_map(|piece| match piece {
            Piece::Frame(frame) => decoder
                .entry(&frame)
                .is_some_and(|entry| entry.text.starts_with("its pool"))
                .then_some(frame),
            _ => None,
        })
        .unwrap();
    // Its number, the time, the count, the kind of value, and two values of two bytes.
    good.truncate(2 + 8 + 4 + 2 + 4);
    good[2..10].fill(0);
    let mut bad = good[..16].to_vec();
    bad[10..14].fill(0xff);

    forged(&log, &[&bad, &good, &bad, &good]);
    let text = stdout(&contigo(&[], &log));
    assert_eq!(text.matches("its pool has pieces of [256, 256] bytes").count(), 3, "{text}");
    assert_eq!(text.matches("bytes here are damaged").count(), 2, "{text}");
    forged(&log, &[bad.as_slice(); 9]);
    refused(
        &Command::new(env!("CARGO_BIN_EXE_contigo")).arg("log").arg(&log).output().unwrap(),
        &["damaged or hostile"],
    );
}

/// A program's file may ask for a number with gigabytes of digits.
#[test]
fn gigabyte_format_costs_only_its_event() {
    let folder = TempDir::new().unwrap();
    let log = folder.path().join("flight.log");
    flown(&log);
    let own = fs::read(program()).unwrap();
    let format = b"this flight has {=u32} jobs at most";
    let places: Vec<_> =
        (0..own.len() - format.len()).filter(|&at| own[at..].starts_with(format)).collect();
    assert!(!places.is_empty(), "the format is in the file");
    let with = |hostile: &str| {
        let mut elf = own.clone();
        places.iter().for_each(|&at| {
            elf[at..at + format.len()].copy_from_slice(format!("{hostile:<35}").as_bytes())
        });
        let path = folder.path().join("hostile");
        fs::write(&path, elf).unwrap();
        stdout(&contigo(&["--elf", path.to_str().unwrap()], &log))
    };
    assert!(
        with("this ship has {=u32} jobs").contains("this ship has 3 jobs"),
        "the format is this event's"
    );
    // The last is no number for the decoder, and so no hint.
    for (digits, damaged) in [("4000000000", 1), ("65536", 1), ("99999999999999999999", 0)] {
        let text = with(&format!("{{=u32:0{digits}}} jobs"));
        assert_eq!(
            text.matches("bytes here are damaged").count(),
            damaged,
            "{digits}: {}",
            text.len()
        );
        assert!(
            text.len() < 10_000
                && text.contains("its pool has pieces of [256, 256] bytes")
                && text.contains("job 3 is done"),
            "{text}"
        );
    }
}

#[test]
fn it_waits_for_a_program_that_has_not_begun() {
    let folder = TempDir::new().unwrap();
    let log = folder.path().join("flight\u{1b}[2J.log");
    let mut command = Command::new(env!("CARGO_BIN_EXE_contigo"));
    let (mut follow, mut said) =
        Running::new(command.args(["log", "--follow"]).arg(&log).stderr(Stdio::piped()));
    let mut warned = String::new();
    BufReader::new(follow.child.stderr.take().unwrap()).read_line(&mut warned).unwrap();
    assert!(
        warned.contains("flight\\u{1b}[2J.log is no log yet: waiting for its program"),
        "{warned}"
    );
    // An empty file is what a program's start makes first; three looks see it.
    fs::write(&log, b"").unwrap();
    thread::sleep(Duration::from_millis(300));
    flown(&log);
    assert!(said.any(|line| line.unwrap().contains("job 3 is done")));
    follow.kill();
}

/// A log from elsewhere names what it likes.
#[test]
fn log_opens_no_file_its_reader_may_not() {
    let folder = TempDir::new().unwrap();
    let log = folder.path().join("flight.log");
    flown(&log);
    let whole = fs::read(&log).unwrap();
    let named = |path: &Path| {
        let (mut bytes, name) = (whole.clone(), path.to_str().unwrap());
        bytes[252..256].copy_from_slice(&u32::try_from(name.len()).unwrap().to_le_bytes());
        bytes[256..256 + name.len()].copy_from_slice(name.as_bytes());
        let other = folder.path().join("other.log");
        fs::write(&other, bytes).unwrap();
        contigo(&[], &other)
    };
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let writer = thread::spawn({
        let pipe = pipe.clone();
        move || fs::OpenOptions::new().write(true).open(pipe).map(drop)
    });
    refused(&named(&pipe), &["it is no file", "--elf PROGRAM"]);
    // Its writer waits still: the tool has not opened the other end.
    thread::sleep(Duration::from_millis(100));
    assert!(!writer.is_finished());
    drop(fs::File::open(&pipe).unwrap());
    writer.join().unwrap().unwrap();
    refused(&named(Path::new("/dev/zero")), &["/dev/zero: it is no file"]);
    refused(
        &named(Path::new("/nowhere/\u{1b}[2J\u{202e}")),
        &["/nowhere/\\u{1b}[2J\\u{202e}: No such file"],
    );
    let large = folder.path().join("large");
    fs::File::create(&large).unwrap().set_len((256 << 20) + 1).unwrap();
    refused(&named(&large), &["no program has more than 268435456: strip --strip-debug keeps"]);
    // Another build is refused by its first bytes: what follows them costs nothing.
    let other = folder.path().join("other");
    fs::copy(env!("CARGO_BIN_EXE_contigo"), &other).unwrap();
    fs::OpenOptions::new().write(true).open(&other).unwrap().set_len(256 << 20).unwrap();
    refused(&named(&other), &["another build"]);
    if chown(&log, Some(1000), None).is_err() {
        return contigo_testkit::skipped(
            "log::a_log_has_no_file_opened",
            "only root gives a file away",
        );
    }
    refused(
        &contigo(&[], &log),
        &[
            "the log is user 1000's, and no file is opened that another user's log names",
            "--elf PROGRAM",
        ],
    );
    assert!(
        stdout(&contigo(&["--elf", program().to_str().unwrap()], &log)).contains("job 3 is done")
    );
}
