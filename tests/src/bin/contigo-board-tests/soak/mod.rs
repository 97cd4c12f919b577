//! `soak`: random work on every engine for minutes or hours, with kills, unbinds, memory pressure,
//! hostile users and moving clocks between it. One round is a process of its own; this one only
//! plans, counts and looks at what must not grow.
//!
//! ```text
//!   rounds.rs: which comes next ──► work.rs: jobs, a kill | a check ──► counted here
//!   disturb.rs: unbinds, memory pressure, moving clocks                 watch.rs: what grew?
//! ```
#![allow(unsafe_code, reason = "signal handlers that store a number")]

mod disturb;
mod rounds;
mod watch;
mod work;

use crate::options::Options;
use crate::report;
use crate::row::Status;
use disturb::Clocks;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use rounds::{Kind, Rounds};
use serde::Serialize;
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};
use std::{fmt, fs};
use watch::Watch;

const LINE_EVERY: Duration = Duration::from_secs(60);
/// For one round: a slice of seconds, on a machine that is short of memory.
const ROUND_LIMIT_S: u32 = 120;
/// Rounds before anything may be said to have grown.
const WARM_UP: u64 = 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Soak {
    pub(crate) time: Duration,
}

/// Its deeds so far: a line a minute, and the end of a report.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Summary {
    seed: u64,
    planned_s: u64,
    seconds: u64,
    ended_by: &'static str,
    jobs: u64,
    bytes: u64,
    rounds: u64,
    faults_expected: u64,
    faults_unexpected: u64,
    kills: u64,
    unbinds: u64,
    pressures: u64,
    clock_moves: u64,
    rss_first_kib: u64,
    rss_last_kib: u64,
    rss_max_kib: u64,
    rss_bound_kib: u64,
    engines: Vec<Worked>,
    left_out: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
struct Worked {
    name: String,
    polled: u64,
    interrupt: u64,
    queued: u64,
}

pub(crate) fn soak(options: &Options, soak: Soak) -> ExitCode {
    if let Err(error) = listen() {
        eprintln!("contigo-board-tests: soak: signals: {error}");
        return ExitCode::FAILURE;
    }
    if let Some(Err(error)) = options.report.as_deref().map(report::ensure_writable) {
        eprintln!("contigo-board-tests: {error}");
        return ExitCode::FAILURE;
    }
    let mut rounds = match Rounds::new(options) {
        Ok(rounds) => rounds,
        Err(why) => {
            eprintln!("contigo-board-tests: soak: {why}");
            return ExitCode::FAILURE;
        }
    };
    let mut clocks = Clocks::here();
    let mut left_out = rounds.left_out();
    left_out.extend(clocks.missing());
    for why in &left_out {
        say(format_args!("left out: {why}"));
    }
    let mut summary = Summary {
        seed: options.seed,
        planned_s: soak.time.as_secs(),
        left_out,
        engines: rounds.engines(),
        ..Summary::default()
    };
    let why = run(&mut summary, &mut rounds, &mut clocks, soak.time, options);
    drop(clocks);
    let mut faults: Vec<String> = why.into_iter().collect();
    faults.extend(rounds.as_found());
    summary.faults_unexpected = faults.len() as u64;
    if !faults.is_empty() {
        summary.ended_by = "fault";
    }
    let Summary { rounds, seed, ended_by, seconds, .. } = summary;
    for fault in &faults {
        eprintln!("contigo-board-tests: soak: round {rounds} of seed {seed}: {fault}");
    }
    say(format_args!("{}", summary.line(options.json)));
    say(format_args!("ended by {ended_by} after {seconds} s, in {rounds} rounds"));
    let interrupted = summary.ended_by.starts_with("SIG");
    if let Some(Err(error)) =
        options.report.as_deref().map(|path| report::write_soak(path, options, summary))
    {
        eprintln!("contigo-board-tests: {error}");
        return ExitCode::FAILURE;
    }
    match (faults.is_empty(), interrupted) {
        (false, _) => ExitCode::FAILURE,
        (true, true) => ExitCode::from(130),
        (true, false) => ExitCode::SUCCESS,
    }
}

/// Prints a line, and ignores an error: a terminal that is lost ends no soak in its middle.
fn say(line: fmt::Arguments<'_>) {
    let _ = writeln!(io::stdout(), "{line}");
}

/// Rounds until the time is over, a signal came or something is wrong, which is the answer.
fn run(
    summary: &mut Summary,
    rounds: &mut Rounds,
    clocks: &mut Clocks,
    time: Duration,
    options: &Options,
) -> Option<String> {
    let begun = Instant::now();
    let (end, mut next_line) = (begun + time, begun + LINE_EVERY);
    let mut watch = Watch::new(options.lab);
    let mut fault = None;
    while fault.is_none() {
        summary.ended_by = match came() {
            Some(signal) => signal,
            None if Instant::now() >= end => "time",
            None => "",
        };
        if !summary.ended_by.is_empty() {
            break;
        }
        let now = Instant::now();
        summary.clock_moves += clocks.moved(rounds.random());
        fault = one(summary, rounds, end.saturating_duration_since(now));
        summary.rounds += 1;
        if summary.rounds == WARM_UP {
            watch.begin();
        }
        let is_minute = Instant::now() >= next_line;
        if is_minute || summary.rounds <= WARM_UP {
            fault = fault.or_else(|| watch.grown(is_minute));
            summary.take(&watch);
        }
        if is_minute {
            summary.seconds = begun.elapsed().as_secs();
            say(format_args!("{}", summary.line(options.json)));
            next_line += LINE_EVERY;
        }
    }
    fault = fault.or_else(|| watch.grown(true));
    summary.take(&watch);
    summary.seconds = begun.elapsed().as_secs();
    fault
}

fn one(summary: &mut Summary, rounds: &mut Rounds, left: Duration) -> Option<String> {
    let Some(round) = rounds.next(left) else { return Some("there is nothing to do".into()) };
    // Dropped after the round.
    let pressure = round.pressure.then(disturb::pressure).flatten();
    summary.pressures += u64::from(pressure.is_some());
    let row = round.run(ROUND_LIMIT_S);
    drop(pressure);
    if row.status == Status::Failed {
        return Some(format!("{}: {}", row.name.title(), row.reason));
    }
    if matches!(round.kind, Kind::Hostile) {
        say(format_args!("{}: {}", row.name.title(), row.reason));
    }
    summary.jobs += row.jobs;
    summary.bytes += row.bytes;
    match round.kind {
        Kind::Jobs(mode) => {
            if let Some(worked) =
                summary.engines.iter_mut().find(|worked| worked.name == row.name.engine)
            {
                *match mode {
                    work::Mode::Polled => &mut worked.polled,
                    work::Mode::Interrupt => &mut worked.interrupt,
                    work::Mode::Queued => &mut worked.queued,
                } += row.jobs;
            }
        }
        // A check that is not possible here is skipped, and counts for nothing.
        Kind::Fault | Kind::Hostile => {
            summary.faults_expected += u64::from(row.status == Status::Passed)
        }
        Kind::Kill => summary.kills += u64::from(row.status == Status::Passed),
        Kind::Rebind => summary.unbinds += u64::from(row.status == Status::Passed),
    }
    None
}

impl Summary {
    fn take(&mut self, watch: &Watch) {
        let memory = watch.own_memory();
        (self.rss_first_kib, self.rss_last_kib, self.rss_max_kib, self.rss_bound_kib) =
            (memory.first_kib, memory.last_kib, memory.max_kib, memory.bound_kib());
    }
}

static CAME: AtomicI32 = AtomicI32::new(0);

extern "C" fn came_now(signal: i32) {
    CAME.store(signal, Ordering::SeqCst);
}

/// SIGINT, SIGTERM and SIGHUP (a terminal that is lost) are noted from here on: the round under way
/// ends, and then the soak.
fn listen() -> nix::Result<()> {
    // A wait for a child goes on: a round is short.
    let action =
        SigAction::new(SigHandler::Handler(came_now), SaFlags::SA_RESTART, SigSet::empty());
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        // SAFETY: the handler stores a number, which any thread may do at any time.
        unsafe { sigaction(signal, &action)? };
    }
    Ok(())
}

fn came() -> Option<&'static str> {
    match Signal::try_from(CAME.load(Ordering::SeqCst)) {
        Ok(Signal::SIGINT) => Some("SIGINT"),
        Ok(Signal::SIGTERM) => Some("SIGTERM"),
        Ok(Signal::SIGHUP) => Some("SIGHUP"),
        _ => None,
    }
}

impl Summary {
    /// The line a minute: for a person, or for a program.
    fn line(&self, json: bool) -> String {
        if json {
            return format!("@soak {}", serde_json::to_string(self).unwrap_or_default());
        }
        let hottest = hottest_millidegrees();
        let hottest = hottest.map_or(String::new(), |degrees| format!(", {} °C", degrees / 1000));
        format!(
            "{:>5} s  {} jobs, {} bytes, faults {} expected {} not, {} kills, {} unbinds, \
             {} pressures, {} clock moves, RSS {} KiB{hottest}",
            self.seconds,
            self.jobs,
            self.bytes,
            self.faults_expected,
            self.faults_unexpected,
            self.kills,
            self.unbinds,
            self.pressures,
            self.clock_moves,
            self.rss_last_kib
        )
    }
}

fn hottest_millidegrees() -> Option<i64> {
    let zones = fs::read_dir("/sys/class/thermal").ok()?.flatten();
    zones
        .filter_map(|zone| fs::read_to_string(zone.path().join("temp")).ok()?.trim().parse().ok())
        .max()
}
