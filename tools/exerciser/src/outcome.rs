//! The outcome of the jobs of one mode, and its faults. Each program has a report of its own.

use super::{Budget, Exerciser, FirstWrong, Line, Mode, Stopped, Tally, on_this_thread};
use contigo::{Driver, Queue};
use core::fmt;
use std::time::Instant;

/// The outcome of some jobs in one mode.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// `polled` or `interrupt`.
    pub mode: &'static str,
    /// `jobs` and `bytes` are those of these jobs; wrong bytes and cases are all so far.
    pub tally: Tally,
    /// The job that ended them before their time.
    pub ended: Result<(), Stopped>,
    /// How long they took.
    pub seconds: f64,
    /// How many waits an interrupt ended. `None`: none was asked for, or this engine has none.
    pub interrupts: Option<u64>,
    /// How often the heap was asked for memory, from before the first job until after the last
    /// comparison. It needs [`CountingHeap`](super::CountingHeap).
    pub allocations: u64,
}

/// Something that is wrong with an outcome.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// Bytes are wrong.
    Wrong {
        /// The first one.
        first: FirstWrong,
        /// How many of them are where a job wrote.
        mismatches: u64,
        /// How many are where no job wrote.
        canary_hits: u64,
    },
    /// A job was refused or failed.
    Stopped(Stopped),
    /// So many jobs waited for an interrupt, and none came.
    Silent(u64),
    /// So often the heap was asked for memory.
    Allocated(u64),
}

impl Exerciser {
    /// As [`run`](Self::run), by the interrupt of `line` or polled, with all that is known of it
    /// afterwards.
    pub fn measure<D: Driver>(
        &mut self,
        queue: &mut Queue<D>,
        line: Line<'_>,
        interrupt: bool,
        budget: Budget,
    ) -> Outcome {
        self.measure_in(queue, line, interrupt, budget, |run| run())
    }

    /// As [`measure`](Self::measure), with the jobs run by `around`, once: to count what they alone
    /// cost. The clock is read outside of it, by a system call where the kernel's page has none.
    pub fn measure_in<D: Driver>(
        &mut self,
        queue: &mut Queue<D>,
        line: Line<'_>,
        interrupt: bool,
        budget: Budget,
        around: impl FnOnce(&mut dyn FnMut() -> Result<(), Stopped>) -> Result<(), Stopped>,
    ) -> Outcome {
        let (mode, how) =
            if interrupt { ("interrupt", line.mode()) } else { ("polled", Mode::Polled) };
        let (before, came, allocated, begun) =
            (self.tally(), line.came(), on_this_thread(), Instant::now());
        let ended = around(&mut || self.run(queue, how, budget));
        let allocations = on_this_thread() - allocated;
        let after = self.tally();
        Outcome {
            mode,
            tally: Tally {
                jobs: after.jobs - before.jobs,
                bytes: after.bytes - before.bytes,
                ..after
            },
            ended,
            seconds: begun.elapsed().as_secs_f64(),
            interrupts: came
                .zip(line.came())
                .map(|(before, after)| after - before)
                .filter(|_| interrupt),
            allocations,
        }
    }
}

impl Outcome {
    /// Of these jobs and of those that came after them.
    #[must_use]
    pub fn and(self, later: Self) -> Self {
        Self {
            mode: self.mode,
            tally: Tally {
                jobs: self.tally.jobs + later.tally.jobs,
                bytes: self.tally.bytes + later.tally.bytes,
                ..later.tally
            },
            ended: later.ended,
            seconds: self.seconds + later.seconds,
            interrupts: self.interrupts.zip(later.interrupts).map(|(one, other)| one + other),
            allocations: self.allocations + later.allocations,
        }
    }

    /// Everything that is wrong.
    pub fn faults(&self) -> impl Iterator<Item = Fault> {
        let Tally { jobs, mismatches, canary_hits, first_wrong, .. } = self.tally;
        let wrong = first_wrong.map(|first| Fault::Wrong { first, mismatches, canary_hits });
        let silent = (self.interrupts == Some(0) && jobs > 0).then_some(Fault::Silent(jobs));
        let allocated = (self.allocations > 0).then_some(Fault::Allocated(self.allocations));
        [wrong, self.ended.err().map(Fault::Stopped), silent, allocated].into_iter().flatten()
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wrong { first, mismatches, canary_hits } => {
                write!(
                    f,
                    "{mismatches} mismatches and {canary_hits} canary hits, the first: {first}"
                )
            }
            Self::Stopped(stopped) => write!(f, "{stopped}"),
            Self::Silent(jobs) => write!(
                f,
                "{jobs} jobs waited for an interrupt, and none came: check the node's interrupts"
            ),
            Self::Allocated(times) => write!(f, "{times} heap allocations while jobs ran"),
        }
    }
}
