//! The rows of jobs: random copies in one memory by one engine, every byte compared, what they cost
//! counted.

use crate::child::{Cost, Steady};
use crate::row::{Name, Row, Status};
use crate::setup::{Bench, Place};
use contigo::{Driver, Error, Queue, Region};
use contigo_exerciser::{Budget, Exerciser, Ground, Limits, Line, Outcome, Tally};
use contigo_testkit::edu::regs::TRANSFER_BYTES;

/// Jobs before anything is counted: pages are faulted in, and every path was taken once.
const WARM_UP: u64 = 100;
/// The same for an engine that takes 200 ms for each.
const SLOW_WARM_UP: u64 = 2;
/// The copies of such an engine: 12 copies are 2.4 s, and there are several rows of them.
pub(crate) const SLOW_JOBS: u64 = 12;
pub(crate) const SLOW_LIMITS: Limits =
    Limits { len_max_bytes: TRANSFER_BYTES as usize, ..Limits::NONE };

/// Of jobs that wait for an interrupt, or whose caches the kernel maintains, so many have their
/// system calls counted.
const COUNTED_JOBS: u64 = 200;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Jobs {
    pub(crate) seed: u64,
    pub(crate) jobs: u64,
    pub(crate) warm_up: u64,
    pub(crate) interrupt: bool,
    pub(crate) limits: Limits,
    pub(crate) steady: Steady,
}

pub(crate) struct Measured {
    outcome: Outcome,
    cost: Cost,
    /// In so many jobs system calls were counted.
    counted: u64,
    /// The kernel synchronises the caches of this memory for this port: by system calls.
    synced_by_kernel: bool,
}

/// One row: `jobs` copies by the engine of `place`, in its memory.
pub(crate) fn row(
    name: &Name,
    place: &Place,
    interrupt: bool,
    seed: u64,
    jobs: u64,
    steady: Steady,
) -> Row {
    let slow = place.engine.is_slow();
    let bench = Jobs {
        seed,
        jobs: if slow { jobs.min(SLOW_JOBS) } else { jobs },
        warm_up: if slow { SLOW_WARM_UP } else { WARM_UP },
        interrupt,
        limits: if slow { SLOW_LIMITS } else { Limits::NONE },
        steady,
    };
    match place.run(interrupt, bench) {
        Ok(Ok(measured)) => measured.row(name),
        Ok(Err(error)) | Err(error) => Row::unopened(name, error),
    }
}

impl Bench for Jobs {
    type Out = Result<Measured, Error>;

    fn on<D: Driver>(self, region: &Region, mut queue: Queue<D>, line: Line<'_>) -> Self::Out {
        let mut exerciser = Exerciser::new(Ground::new(region)?, self.limits, self.seed)?;
        let synced_by_kernel =
            matches!(region.name(), "u-dma-buf" | "dma-heap" | "contigo") && !queue.port().coherent;
        // Stopping at each of four calls a job, or ten, makes a row of 10,000 take half a minute.
        let counted = if self.interrupt || synced_by_kernel {
            self.jobs.min(COUNTED_JOBS)
        } else {
            self.jobs
        };
        let mut cost = Cost::NOTHING;
        let [warm_up, first, rest] = [self.warm_up, counted, self.jobs - counted].map(Budget::jobs);
        let mut outcome = exerciser.measure(&mut queue, line, self.interrupt, warm_up);
        if outcome.ended.is_ok() {
            outcome = exerciser.measure_in(&mut queue, line, self.interrupt, first, |run| {
                let (ended, of_them) = self.steady.run(run);
                cost = of_them;
                ended
            });
        }
        if outcome.ended.is_ok() && counted < self.jobs {
            outcome = outcome.and(exerciser.measure(&mut queue, line, self.interrupt, rest));
        }
        Ok(Measured { outcome, cost, counted, synced_by_kernel })
    }
}

impl Measured {
    fn row(&self, name: &Name) -> Row {
        let Self { outcome, cost, counted, synced_by_kernel } = self;
        let Tally { jobs, bytes, mismatches, canary_hits, .. } = outcome.tally;
        let mut reasons: Vec<_> = outcome.faults().map(|fault| fault.to_string()).collect();
        let calls = cost.syscalls.unwrap_or(0);
        if outcome.mode == "polled" && calls > 0 && !synced_by_kernel {
            reasons.push(format!(
                "{calls} system calls while polled, the first number {}",
                cost.first_call
            ));
        }
        let status = if reasons.is_empty() { Status::Passed } else { Status::Failed };
        if cost.syscalls.is_none() {
            reasons.push("system calls not counted: ptrace(2) is not possible here".into());
        } else if calls > 0 {
            let why = if *synced_by_kernel { "; the kernel synchronises this memory" } else { "" };
            reasons.push(format!("{calls} system calls in the first {counted} jobs{why}"));
        }
        Row {
            jobs,
            bytes,
            mismatches,
            canary_hits,
            interrupts: outcome.interrupts,
            allocations: outcome.allocations,
            syscalls: cost.syscalls.filter(|_| *counted == jobs),
            seconds: outcome.seconds,
            ..Row::new(name, status, reasons.join("; "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use contigo_exerciser::{Blame, FirstWrong, Job, Stopped};

    const COPY: Job = Job {
        number: 7,
        from: (1, 2),
        to: (3, 4),
        len_bytes: 5,
        from_device_owned: false,
        to_device_owned: false,
        kept: false,
    };
    const QUIET: Cost = Cost { syscalls: Some(0), first_call: 0 };
    const CALLED: Cost = Cost { syscalls: Some(800), first_call: 113 };

    fn polled() -> Outcome {
        let tally = Tally { jobs: 100, bytes: 1000, ..Tally::default() };
        let (ended, interrupts) = (Ok(()), None);
        Outcome { mode: "polled", tally, ended, seconds: 1.0, interrupts, allocations: 0 }
    }

    fn waited() -> Outcome {
        Outcome { mode: "interrupt", interrupts: Some(100), ..polled() }
    }

    fn row(outcome: Outcome, cost: Cost, counted: u64, synced_by_kernel: bool) -> Row {
        let name = Name::jobs("m", "e", outcome.mode);
        Measured { outcome, cost, counted, synced_by_kernel }.row(&name)
    }

    #[test]
    fn a_row_passes_only_when_everything_is_right() {
        let passed = row(polled(), QUIET, 100, false);
        assert_eq!((passed.status, passed.reason.as_str()), (Status::Passed, ""));
        assert_eq!((passed.jobs, passed.bytes, passed.syscalls), (100, 1000, Some(0)));
        let first = FirstWrong {
            seed: 9,
            job: COPY,
            slot: 3,
            offset: 4,
            expected: 1,
            found: 2,
            blame: Blame::Mismatch,
        };
        let wrong = Tally { mismatches: 1, first_wrong: Some(first), ..polled().tally };
        let ended = Err(Stopped { seed: 9, job: COPY, error: Error::Busy, polls: 0 });
        let silent = Outcome { interrupts: Some(0), ..waited() };
        for (outcome, cost, said) in [
            (Outcome { tally: wrong, ..polled() }, QUIET, "the first: seed 9, job 7, "),
            (Outcome { ended, ..polled() }, QUIET, "seed 9, job 7, "),
            (Outcome { allocations: 3, ..polled() }, QUIET, "3 heap allocations"),
            (polled(), CALLED, "800 system calls while polled, the first number 113"),
            (silent, QUIET, "100 jobs waited for an interrupt, and none came"),
        ] {
            let failed = row(outcome, cost, 100, false);
            assert_eq!(failed.status, Status::Failed, "{said}");
            assert!(failed.reason.contains(said), "{said}: {failed:?}");
        }
    }

    #[test]
    fn what_is_allowed_is_said() {
        let uncounted = Cost { syscalls: None, ..QUIET };
        let synced = "800 system calls in the first 100 jobs; the kernel synchronises this memory";
        let few = "800 system calls in the first 20 jobs";
        for (outcome, cost, counted, by_kernel, syscalls, said) in [
            (polled(), CALLED, 100, true, Some(800), synced),
            (waited(), CALLED, 20, false, None, few),
            (polled(), uncounted, 100, false, None, "not counted"),
        ] {
            let passed = row(outcome, cost, counted, by_kernel);
            assert_eq!((passed.status, passed.syscalls), (Status::Passed, syscalls), "{said}");
            assert!(passed.reason.contains(said), "{said}: {passed:?}");
        }
    }
}
