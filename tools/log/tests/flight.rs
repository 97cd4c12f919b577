//! The example's log, decoded while it flies and after it was killed.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that panics has failed, which is its purpose"
)]

use contigo_log::{Decoder, Entry, Piece, Reader, Refused};
use contigo_testkit::emulated;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The example, which Cargo builds beside its tests.
fn program() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    own.parent().unwrap().parent().unwrap().join("examples/flight")
}

/// A flight that has told its first `jobs` jobs.
fn flying(log: &Path, jobs: u32) -> (Child, BufReader<ChildStdout>) {
    let mut child = emulated::command(program()).arg(log).stdout(Stdio::piped()).spawn().unwrap();
    let mut told = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while line.trim() != jobs.to_string() {
        line.clear();
        assert!(told.read_line(&mut line).unwrap() > 0, "the flight ended at {line:?}");
    }
    (child, told)
}

fn decoder(reader: &Reader) -> Decoder {
    let header = reader.header().unwrap();
    Decoder::new(&fs::read(&header.program).unwrap(), &header).unwrap()
}

/// Every event that is new, and the bytes that were overwritten before them.
fn events(reader: &mut Reader, decoder: &Decoder) -> (Vec<Entry>, u64) {
    let mut overwritten = 0;
    let pieces = reader.pieces().unwrap().into_iter();
    let events = pieces.filter_map(|piece| match piece {
        Piece::Frame(frame) => Some(decoder.entry(&frame).unwrap()),
        Piece::Overwritten { len_bytes } => {
            overwritten += len_bytes;
            None
        }
        Piece::Damaged { len_bytes } => panic!("{len_bytes} bytes are damaged"),
    });
    (events.collect(), overwritten)
}

/// The numbers of the jobs whose end was logged.
fn jobs(events: &[Entry]) -> Vec<u32> {
    events
        .iter()
        .filter_map(|entry| entry.text.strip_prefix("job ")?.strip_suffix(" is done")?.parse().ok())
        .collect()
}

#[test]
fn the_last_event_before_a_kill_is_there() {
    let folder = TempDir::new().unwrap();
    let log = folder.path().join("flight.log");
    for run in 0..3 {
        let (mut child, mut told) = flying(&log, 1_000 + run);
        child.kill().unwrap();
        child.wait().unwrap();
        let mut rest = String::new();
        told.read_to_string(&mut rest).unwrap();
        // A line that the kill cut is no number of a job.
        let last = rest
            .rsplit_once('\n')
            .map_or(1_000 + run, |(whole, _)| whole.lines().last().unwrap().parse().unwrap());

        let mut reader = Reader::open(&log).unwrap();
        let decoder = decoder(&reader);
        let (events, overwritten) = events(&mut reader, &decoder);
        let jobs = jobs(&events);
        // A job is logged, then printed: the log is as far as the output, or one job further.
        let newest = *jobs.last().unwrap();
        assert!(
            newest == last || newest == last + 1,
            "the log ends at {newest}, the output at {last}"
        );
        assert!(jobs.windows(2).all(|two| two[1] == two[0] + 1), "no job is missing between two");
        assert!(overwritten > 0 && jobs[0] > 1, "the ring has wrapped");
        assert!(events.windows(2).all(|two| two[0].time_us <= two[1].time_us));
        let done = events.iter().rfind(|entry| entry.text.contains("is done")).unwrap();
        assert_eq!(done.level, Some("WARN"));
        let (file, line) = done.place.clone().unwrap();
        assert!(file.ends_with("tools/log/examples/flight.rs") && line > 30, "{file}:{line}");
        if cfg!(feature = "events") {
            for event in
                ["Take { slot: 0, len_bytes: 256 }", "Submit {", "Complete {", "SyncForCpu {"]
            {
                assert!(
                    events
                        .iter()
                        .any(|entry| entry.text.starts_with(event) && entry.level == Some("TRACE")),
                    "{event}"
                );
            }
        }
    }
    assert!(folder.path().join("flight.log.before").exists(), "the run before is kept");
}

/// Ten looks take milliseconds: a limit for a busy machine, and for a flight that writes nothing.
const LOOKS_LIMIT: Duration = Duration::from_secs(60);

#[test]
fn a_log_is_read_while_it_is_written() {
    let folder = TempDir::new().unwrap();
    let log = folder.path().join("flight.log");
    let (mut child, mut told) = flying(&log, 1);
    let mut reader = Reader::open(&log).unwrap();
    let decoder = decoder(&reader);
    let (mut newest, mut looks) = (0, 0);
    let mut line = String::new();
    // A flight that is ahead by a whole pipe waits until its lines are read: it goes on then.
    let begun = Instant::now();
    while looks < 10 && begun.elapsed() < LOOKS_LIMIT {
        line.clear();
        told.read_line(&mut line).unwrap();
        let (events, overwritten) = events(&mut reader, &decoder);
        for job in jobs(&events) {
            assert!(
                job == newest + 1 || (overwritten > 0 && job > newest),
                "job {job} comes after {newest}"
            );
            newest = job;
        }
        looks += u32::from(!events.is_empty());
    }
    assert!(looks >= 10, "only {looks} looks saw something new");
    assert!(newest >= line.trim().parse().unwrap());
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_panic_is_the_last_event() {
    let folder = TempDir::new().unwrap();
    let log = folder.path().join("flight.log");
    let ended = emulated::command(program()).arg(&log).args(["3", "panic"]).output().unwrap();
    assert!(
        String::from_utf8_lossy(&ended.stderr).contains("the flight is over after 3 jobs"),
        "the hook that was there has its turn"
    );
    let mut reader = Reader::open(&log).unwrap();
    let decoder = decoder(&reader);
    let (events, _) = events(&mut reader, &decoder);
    let last = events.last().unwrap();
    assert_eq!(last.level, Some("ERROR"));
    assert!(
        last.text.contains("examples/flight.rs")
            && last.text.contains("the flight is over after 3 jobs"),
        "{}",
        last.text
    );
    assert_eq!(jobs(&events), [1, 2, 3]);
    assert_eq!(events[0].text, "this flight has 3 jobs at most");
}

/// The program is killed, or its disk is full, before the ring has its first bytes.
#[test]
fn unfinished_file_is_replaced_others_stay() {
    let folder = TempDir::new().unwrap();
    let log = folder.path().join("flight.log");
    let run = || emulated::command(program()).arg(&log).arg("1").output().unwrap();
    for unfinished in [[].as_slice(), &[0; 8192]] {
        fs::write(&log, unfinished).unwrap();
        let ended = run();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
        assert!(Reader::open(&log).unwrap().header().is_ok());
    }
    assert!(
        !folder.path().join("flight.log.before").exists(),
        "an unfinished file is no run before"
    );
    for foreign in [[0; 8000].as_slice(), b"short", &[0x5a; 8192]] {
        fs::write(&log, foreign).unwrap();
        assert!(String::from_utf8_lossy(&run().stderr).contains("no ring"));
        assert_eq!(fs::read(&log).unwrap(), foreign);
    }
    fs::remove_file(&log).unwrap();
    // A pipe does not block the program.
    assert!(Command::new("mkfifo").arg(&log).status().unwrap().success());
    assert!(!run().status.success());
}

#[test]
fn another_build_is_refused() {
    let folder = TempDir::new().unwrap();
    let log = folder.path().join("flight.log");
    assert!(emulated::command(program()).arg(&log).arg("1").output().unwrap().status.success());
    let header = Reader::open(&log).unwrap().header().unwrap();
    let other = fs::read(std::env::current_exe().unwrap()).unwrap();
    assert!(matches!(
        Decoder::new(&other, &header),
        Err(Refused::OtherBuild { elf: Some(_), ring: Some(_) })
    ));
    assert!(matches!(
        Decoder::new(b"no program", &header),
        Err(Refused::OtherBuild { elf: None, .. })
    ));
    let right = fs::read(program()).unwrap();
    Decoder::new(&right, &header).unwrap();
    // The first page alone has the build ID, and nothing else of the program.
    assert!(matches!(Decoder::new(&right[..4096], &header), Err(Refused::NoTexts(_))));
}

/// A second program at the path: the first one's ring is neither renamed nor written.
#[test]
fn two_programs_have_no_ring_in_common() {
    let folder = TempDir::new().unwrap();
    let log = folder.path().join("flight.log");
    let (mut child, _told) = flying(&log, 1);
    let second = emulated::command(program()).arg(&log).arg("1").output().unwrap();
    let said = String::from_utf8_lossy(&second.stderr);
    assert!(!second.status.success() && said.contains("another process logs there"), "{said}");
    assert_eq!(Reader::open(&log).unwrap().header().unwrap().pid, child.id());
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(
        emulated::command(program()).arg(&log).arg("1").output().unwrap().status.success(),
        "the lock ends with its program"
    );
    // And a symbolic link is no path to a ring.
    let link = folder.path().join("link.log");
    std::os::unix::fs::symlink(&log, &link).unwrap();
    assert!(!emulated::command(program()).arg(&link).arg("1").output().unwrap().status.success());
    assert!(
        fs::symlink_metadata(&link).unwrap().is_symlink()
            && !folder.path().join("link.log.before").exists()
    );
}

/// The disk has less room than the ring: RLIMIT_FSIZE is as good, and its signal is ignored.
#[test]
fn a_start_that_fails_leaves_no_file() {
    let folder = TempDir::new().unwrap();
    let log = folder.path().join("flight.log");
    let shell = "trap '' XFSZ; ulimit -f 1; exec \"$0\" \"$1\" 1";
    let ended = Command::new("sh").args(["-c", shell]).arg(program()).arg(&log).output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    if emulated::why().is_none() {
        assert!(said.contains("posix_fallocate"), "{said}");
    }
    assert!(!ended.status.success() && !log.exists(), "{said}");
}
