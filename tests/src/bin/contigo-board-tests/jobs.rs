//! The rows of jobs: random copies in one memory by one engine, every byte compared, what they cost
//! counted.

use crate::{
    child::{Cost, Steady},
    row::{Name, Row, Status},
    setup::{Bench, Line, Place},
};
use contigo::{Backend, Engine, Error, Region, Timeout, TypedDriver};
use contigo_testkit::edu::regs::TRANSFER_BYTES;
use contigo_testkit::exercise::{Budget, Exerciser, Ground, Limits, Mode, Stopped, Tally};
use std::time::Instant;

/// For one job, interrupt or not: the slowest engine here takes 200 ms in an emulator on a busy
/// machine.
pub(crate) const JOB_TIMEOUT: Timeout = Timeout::ms(5_000);
/// Jobs before anything is counted: pages are faulted in, and every path was taken once.
const WARM_UP: u64 = 100;
/// The same for an engine that takes 200 ms for each.
const SLOW_WARM_UP: u64 = 2;
/// The copies of such an engine: 12 copies are 2.4 s, and there are several rows of them.
pub(crate) const SLOW_JOBS: u64 = 12;

/// Of jobs that wait for an interrupt, or whose caches the kernel maintains, so many have their
/// system calls counted.
const COUNTED_JOBS: u64 = 200;

/// The settings of one row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Jobs {
    pub(crate) seed: u64,
    pub(crate) jobs: u64,
    pub(crate) warm_up: u64,
    pub(crate) interrupt: bool,
    pub(crate) limits: Limits,
    pub(crate) steady: Steady,
}

/// The outcome of one row.
pub(crate) struct Outcome {
    /// In so many jobs system calls were counted.
    counted: u64,
    before: Tally,
    after: Tally,
    ended: Result<(), Stopped>,
    cost: Cost,
    seconds: f64,
    interrupts: Option<u64>,
    /// The kernel synchronises the caches of this memory for this port: by system calls.
    synced_by_kernel: bool,
}

/// One row: `jobs` copies by the engine of `place`, in its memory.
pub(crate) fn row(name: &Name, place: &Place, interrupt: bool, seed: u64, jobs: u64, steady: Steady) -> Row {
    let slow = place.engine.is_slow();
    let bench = Jobs {
        seed,
        jobs: if slow { jobs.min(SLOW_JOBS) } else { jobs },
        warm_up: if slow { SLOW_WARM_UP } else { WARM_UP },
        interrupt,
        limits: Limits { len_max_bytes: if slow { TRANSFER_BYTES as usize } else { usize::MAX }, ..Limits::NONE },
        steady,
    };
    match place.run(interrupt, bench) {
        Ok(Ok(outcome)) => outcome.row(name, interrupt),
        Ok(Err(error)) | Err(error) => refused(name, error),
    }
}

/// A row that did not begin. A file that this user may not open is skipped; everything else is a
/// failure.
pub(crate) fn refused(name: &Name, error: Error) -> Row {
    let not_ours = !nix::unistd::geteuid().is_root()
        && matches!(
            error,
            Error::PagemapHidden { .. }
                | Error::Denied { errno: libc::EACCES | libc::EPERM, .. }
                | Error::Os { errno: libc::EACCES | libc::EPERM, .. }
                | Error::AttributeUnreadable { .. }
        );
    Row::new(name, if not_ours { Status::Skipped } else { Status::Failed }, error.to_string())
}

impl Bench for Jobs {
    type Out = Result<Outcome, Error>;

    fn on<B: Backend, D: TypedDriver<2, Args = ()>>(self, region: &Region<B>, mut engine: Engine<D, 2>, line: &Line<'_>) -> Self::Out {
        let mut ground = Ground::new(region)?;
        let mut exerciser = Exerciser::new(&mut ground, self.limits, self.seed)?;
        let mode = match (self.interrupt, line) {
            (false, _) => Mode::Polled,
            (true, Line::Events(events)) => Mode::Events(*events, JOB_TIMEOUT),
            (true, _) => Mode::Waiting(JOB_TIMEOUT),
        };
        let mut ended = exerciser.run(&mut engine, mode, Budget::jobs(self.warm_up));
        let (before, came, begun) = (exerciser.tally(), line.came(), Instant::now());
        let mut cost = Cost::NOTHING;
        let synced_by_kernel = matches!(region.name(), "u-dma-buf" | "dma-heap") && !engine.port().coherent;
        // Stopping at each of four calls a job, or ten, makes a row of 10,000 take half a minute.
        let counted = if self.interrupt || synced_by_kernel { self.jobs.min(COUNTED_JOBS) } else { self.jobs };
        if ended.is_ok() {
            (ended, cost) = self.steady.run(|| exerciser.run(&mut engine, mode, Budget::jobs(counted)));
        }
        if ended.is_ok() && counted < self.jobs {
            let more;
            (ended, more) = self.steady.run_unwatched(|| exerciser.run(&mut engine, mode, Budget::jobs(self.jobs - counted)));
            cost.allocations += more;
        }
        Ok(Outcome {
            counted,
            before,
            after: exerciser.tally(),
            ended,
            cost,
            seconds: begun.elapsed().as_secs_f64(),
            interrupts: came.zip(line.came()).map(|(before, after)| after - before).filter(|_| self.interrupt),
            synced_by_kernel,
        })
    }
}

impl Outcome {
    fn row(&self, name: &Name, interrupt: bool) -> Row {
        let Self { before, after, cost, .. } = self;
        let mut reasons = Vec::new();
        if let Some(first) = after.first_wrong {
            reasons.push(first.to_string());
        }
        if let Err(stopped) = self.ended {
            reasons.push(stopped.to_string());
        }
        if cost.allocations > 0 {
            reasons.push(format!("{} heap allocations", cost.allocations));
        }
        if interrupt && self.interrupts == Some(0) {
            reasons.push("no interrupt came".into());
        }
        let calls = cost.syscalls.unwrap_or(0);
        let jobs = after.jobs - before.jobs;
        if !interrupt && calls > 0 && !self.synced_by_kernel {
            reasons.push(format!("{calls} system calls while polled, the first number {}", cost.first_call));
        }
        let status = if reasons.is_empty() { Status::Passed } else { Status::Failed };
        if cost.syscalls.is_none() {
            reasons.push("system calls not counted: ptrace(2) is not possible here".into());
        } else if calls > 0 {
            let why = if self.synced_by_kernel { "; the kernel synchronises this memory" } else { "" };
            reasons.push(format!("{calls} system calls in the first {} jobs{why}", self.counted));
        }
        Row {
            jobs,
            bytes: after.bytes - before.bytes,
            mismatches: after.mismatches,
            canary_hits: after.canary_hits,
            interrupts: self.interrupts,
            allocations: cost.allocations,
            syscalls: cost.syscalls.filter(|_| self.counted == jobs),
            seconds: self.seconds,
            ..Row::new(name, status, reasons.join("; "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use contigo_testkit::exercise::{Blame, FirstWrong, Job};

    const COPY: Job =
        Job { number: 7, from: (1, 2), to: (3, 4), len_bytes: 5, from_device_owned: false, to_device_owned: false, kept: false };

    fn good() -> Outcome {
        Outcome {
            counted: 100,
            before: Tally::default(),
            after: Tally { jobs: 100, bytes: 1000, ..Tally::default() },
            ended: Ok(()),
            cost: Cost { allocations: 0, syscalls: Some(0), first_call: 0 },
            seconds: 1.0,
            interrupts: None,
            synced_by_kernel: false,
        }
    }

    fn row(outcome: &Outcome, interrupt: bool) -> Row {
        outcome.row(&Name::jobs("m", "e", "polled"), interrupt)
    }

    #[test]
    fn a_row_passes_only_when_everything_is_right() {
        let passed = row(&good(), false);
        assert_eq!(
            (passed.status, passed.jobs, passed.bytes, passed.syscalls, passed.reason.as_str()),
            (Status::Passed, 100, 1000, Some(0), "")
        );
        let first = FirstWrong { seed: 9, job: COPY, slot: 3, offset: 4, expected: 1, found: 2, blame: Blame::Mismatch };
        let wrong = Tally { mismatches: 1, first_wrong: Some(first), ..good().after };
        for (outcome, interrupt, said) in [
            (Outcome { after: wrong, ..good() }, false, "seed 9, job 7, "),
            (Outcome { ended: Err(Stopped { seed: 9, job: COPY, error: Error::Busy }), ..good() }, false, "seed 9, job 7, "),
            (Outcome { cost: Cost { allocations: 3, ..good().cost }, ..good() }, false, "3 heap allocations"),
            (
                Outcome { cost: Cost { syscalls: Some(2), first_call: 113, ..good().cost }, ..good() },
                false,
                "2 system calls while polled, the first number 113",
            ),
            (Outcome { interrupts: Some(0), ..good() }, true, "no interrupt came"),
        ] {
            let failed = row(&outcome, interrupt);
            assert!(failed.status == Status::Failed && failed.reason.contains(said), "{said}: {failed:?}");
        }
    }

    #[test]
    fn what_is_allowed_is_said() {
        let called = Cost { syscalls: Some(800), ..good().cost };
        for (outcome, interrupt, syscalls, said) in [
            (
                Outcome { cost: called, synced_by_kernel: true, ..good() },
                false,
                Some(800),
                "800 system calls in the first 100 jobs; the kernel synchronises this memory",
            ),
            (Outcome { cost: called, interrupts: Some(100), counted: 20, ..good() }, true, None, "800 system calls in the first 20 jobs"),
            (Outcome { cost: Cost { syscalls: None, ..good().cost }, ..good() }, false, None, "not counted"),
        ] {
            let passed = row(&outcome, interrupt);
            assert!(passed.status == Status::Passed && passed.syscalls == syscalls && passed.reason.contains(said), "{passed:?}");
        }
    }

    #[test]
    fn a_row_that_could_not_begin_is_a_failure_of_root_s() {
        let name = Name::jobs("m", "e", "polled");
        let expected = if nix::unistd::geteuid().is_root() { Status::Failed } else { Status::Skipped };
        assert_eq!(refused(&name, Error::PagemapHidden { page: 1 }).status, expected);
        assert_eq!(refused(&name, Error::Busy).status, Status::Failed);
    }
}
