//! The price of a job, by count.

use super::bench::{Bench, draw};
use super::{Subject, Way};
use crate::conformance::{Failure, Verdict};
use crate::ensure;
use contigo::Queue;
use contigo::sim::Faults;
use fastrand::Rng;
use std::time::Duration;

/// How many jobs are in flight at most.
const DEPTH: usize = 64;
/// Both operands of each.
const SLOTS: usize = 2 * DEPTH;
/// Looks at a device before a job counts as lost.
const LOOKS: usize = 1_000;
/// Between two looks: longer than a job of the suite takes.
const STEP_US: u32 = 50;

/// The price of a job that is looked for after its end, in hundredths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Price {
    /// How many jobs were in flight at once.
    pub jobs_at_once: u64,
    /// Registers read.
    pub reads: u64,
    /// Registers written.
    pub writes: u64,
    /// Syncs of the operands' memory.
    pub operand_syncs: u64,
    /// Syncs of the driver's own memory.
    pub own_syncs: u64,
}

/// The price of a job with `in_flight` jobs at once, at most 64: these are given, all end, and as
/// many are given anew, in a burst. Where the driver takes fewer, these are its own.
///
/// # Errors
/// [`Failure::Wrong`]: a job failed or never ended.
pub fn per_packet<S: Subject>(
    subject: &S,
    way: Way,
    in_flight: usize,
    rounds: usize,
) -> Verdict<Price> {
    let bench = Bench::new(subject, subject.model(), (1, Faults::NONE), way, SLOTS)?;
    let in_flight = in_flight.min(DEPTH);
    let mut rng = Rng::with_seed(1);
    let seen = || (bench.device.accesses(), bench.region.stats().syncs, bench.own.stats().syncs);
    bench.open(subject, |driver| {
        // No job waits in the queue: it would be given at a look.
        let jobs = driver.depth().clamp(1, DEPTH);
        let mut queue = Queue::new(driver, jobs).map_err(|refused| Failure::from(refused.error))?;
        let (mut price, mut jobs) = (Price::default(), 0);
        for round in 0..=rounds {
            let before = seen();
            let mut given = 0;
            queue.hold_doorbell();
            while given < in_flight && !queue.is_full() {
                let (mut operands, words, job) = draw(subject, &bench.pool, &mut rng, given)?;
                queue.submit_list(&mut operands, &words, job.tag())?;
                given += 1;
            }
            queue.ring_doorbell()?;
            let mut ended = 0;
            for _ in 0..LOOKS {
                bench.device.run_for(STEP_US)?;
                while queue.wait_each(Duration::ZERO, |_, _, _| {})?.is_some() {
                    ended += 1;
                }
                if ended == given {
                    break;
                }
            }
            ensure!(ended == given, "{}: {ended} of {given} jobs ended", subject.name());
            // The first round starts the channel.
            if round > 0 {
                let now = seen();
                price.reads += now.0.reads - before.0.reads;
                price.writes += now.0.writes - before.0.writes;
                price.operand_syncs += now.1 - before.1;
                price.own_syncs += now.2 - before.2;
                price.jobs_at_once = given as u64;
                jobs += price.jobs_at_once;
            }
        }
        let each = |count: u64| count * 100 / jobs.max(1);
        Ok(Price {
            jobs_at_once: price.jobs_at_once,
            reads: each(price.reads),
            writes: each(price.writes),
            operand_syncs: each(price.operand_syncs),
            own_syncs: each(price.own_syncs),
        })
    })
}
