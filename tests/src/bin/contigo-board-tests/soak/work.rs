//! The jobs of one round, and a process that is killed at them: the module stops its engine, and
//! the next round works.

use crate::apart::{AT_WORK, killed_while};
use crate::jobs::SLOW_LIMITS;
use crate::row::{Name, Row, Status};
use crate::setup::{Bench, Place};
use crate::verdict::{Tried, fail};
use contigo::{Driver, Error, Queue, Region};
use contigo_exerciser::{Budget, Exerciser, Ground, JOB_TIMEOUT, Limits, Line};
use fastrand::Rng;
use std::io::{PipeWriter, Write};
use std::time::{Duration, Instant};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Polled,
    Interrupt,
    /// Several in flight, as many as the queue takes.
    Queued,
}

impl Mode {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Polled | Self::Queued => "polled",
            Self::Interrupt => "interrupt",
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    pub(crate) seed: u64,
    pub(crate) mode: Mode,
    pub(crate) slice: Duration,
    pub(crate) slow: bool,
}

type Worked = Result<(u64, u64, Vec<String>), Error>;

pub(crate) fn row(name: &Name, place: &Place, work: Work) -> Row {
    let begun = Instant::now();
    let (jobs, bytes, wrong) = match place.run(work.mode == Mode::Interrupt, work) {
        Ok(Ok(worked)) => worked,
        Ok(Err(error)) | Err(error) => return Row::unopened(name, error),
    };
    let status = if wrong.is_empty() { Status::Passed } else { Status::Failed };
    let seconds = begun.elapsed().as_secs_f64();
    Row { jobs, bytes, seconds, ..Row::new(name, status, wrong.join("; ")) }
}

impl Bench for Work {
    type Out = Worked;

    fn on<D: Driver>(self, region: &Region, mut queue: Queue<D>, line: Line<'_>) -> Worked {
        if self.mode == Mode::Queued {
            return queued(region, &mut queue, self);
        }
        let mut exerciser = Exerciser::new(Ground::new(region)?, self.limits(), self.seed)?;
        let until = Instant::now() + self.slice;
        let (interrupt, budget) = (self.mode == Mode::Interrupt, Budget::until(until, self.most()));
        let outcome = exerciser.measure(&mut queue, line, interrupt, budget);
        let faults = outcome.faults().map(|fault| fault.to_string()).collect();
        Ok((outcome.tally.jobs, outcome.tally.bytes, faults))
    }
}

impl Work {
    const fn limits(&self) -> Limits {
        if self.slow { SLOW_LIMITS } else { Limits::NONE }
    }

    /// The clock is looked at after sixteen jobs, which takes a slow engine three seconds.
    const fn most(&self) -> u64 {
        if self.slow { 16 } else { u64::MAX }
    }
}

const SLOT_BYTES: usize = 4096;

/// Random copies, each one compared whole when its end comes.
fn queued<D: Driver>(region: &Region, queue: &mut Queue<D>, work: Work) -> Worked {
    let pool = region.pool(2 * queue.capacity(), SLOT_BYTES)?;
    let mut rng = Rng::with_seed(work.seed);
    let (until, mut jobs, mut bytes) = (Instant::now() + work.slice, 0, 0);
    // The ends that come next, in order: mark, first byte of source and destination, length.
    let mut expected = std::collections::VecDeque::with_capacity(queue.capacity());
    loop {
        let is_over = Instant::now() >= until;
        while !is_over && !queue.is_full() {
            let (mut from, mut to) = (pool.take()?, pool.take()?);
            let len = rng.usize(1..=SLOT_BYTES);
            let (at, into, mark) =
                (rng.usize(..=SLOT_BYTES - len), rng.usize(..=SLOT_BYTES - len), rng.u8(..));
            from.view_mut::<u8>()?.fill(mark);
            to.view_mut::<u8>()?.fill(!mark);
            queue.submit([from.to_device(at..at + len), to.from_device(into..into + len)], &[])?;
            expected.push_back((mark, into, len));
        }
        let Some((mark, into, len)) = expected.pop_front() else {
            return Ok((jobs, bytes, Vec::new()));
        };
        let Some(done) = queue.wait(JOB_TIMEOUT)? else {
            let wrong = format!("seed {}: job {} of a queue did not end", work.seed, jobs + 1);
            return Ok((jobs, bytes, vec![wrong]));
        };
        let [_, to] = done.buffers;
        let wrong = to.view::<u8>()?.iter().enumerate().filter(|&(at, &byte)| {
            byte != if (into..into + len).contains(&at) { mark } else { !mark }
        });
        let wrong = wrong.count();
        if wrong > 0 {
            let job = jobs + 1;
            let wrong =
                format!("seed {}: {wrong} wrong bytes after job {job} of a queue", work.seed);
            return Ok((jobs, bytes, vec![wrong]));
        }
        jobs += 1;
        bytes += len as u64;
    }
}

/// Longer than any kill is waited for.
const KILLED_WITHIN: Duration = Duration::from_secs(30);

struct AtWork<'p> {
    pipe: &'p mut PipeWriter,
    work: Work,
}

impl Bench for AtWork<'_> {
    type Out = Result<(), Error>;

    fn on<D: Driver>(self, region: &Region, mut queue: Queue<D>, line: Line<'_>) -> Self::Out {
        let Work { seed, mode, .. } = self.work;
        let mut exerciser = Exerciser::new(Ground::new(region)?, self.work.limits(), seed)?;
        let _ = self.pipe.write_all(&AT_WORK);
        let budget = Budget::until(Instant::now() + KILLED_WITHIN, u64::MAX);
        let outcome = exerciser.measure(&mut queue, line, mode == Mode::Interrupt, budget);
        outcome.ended.map_err(|stopped| stopped.error)
    }
}

/// Kills a process that does `work`, so long `after` it began.
pub(crate) fn kill(place: &Place, work: Work, after: Duration) -> Tried {
    let seed = work.seed;
    let at_work = |pipe: &mut PipeWriter| {
        place.run(work.mode == Mode::Interrupt, AtWork { pipe, work })??;
        Ok("no error".into())
    };
    match killed_while(at_work, after).map_err(|wrong| wrong.when(&format!("seed {seed}")))? {
        Some(_) => Ok(String::new().into()),
        None => fail(format!("seed {seed}: it ended before it was killed")),
    }
}
