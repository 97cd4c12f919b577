//! How a driver waits, on a board without faults.
//!
//! - **By polls of timeout 0 alone** each job ends. The time of a board passes by accesses, so a
//!   driver that returns `None` without one never sees the end.
//! - **By its interrupt** each job ends after few waits ([`Subject::waits_most`]). A level
//!   interrupt that a driver does not acknowledge at first sight ends each later wait at once.

use super::bench::{Bench, Job, draw};
use super::{Subject, Way};
use crate::conformance::{Failure, Verdict};
use crate::ensure;
use contigo::Queue;
use contigo::sim::Faults;
use fastrand::Rng;
use std::collections::VecDeque;
use std::time::Duration;

/// The most jobs in flight.
const DEPTH: usize = 8;
/// So many times all jobs in flight are given, and end.
const ROUNDS: usize = 4;
/// For all jobs in flight together: more than ten times what any takes.
const POLLS: usize = 100_000;
/// Of one wait.
const LIMIT: Duration = Duration::from_millis(20);

/// Runs jobs by polls alone, and by waits; one at a time, and several.
pub(super) fn waits<S: Subject>(subject: &S) -> Verdict {
    for way in [Way::Plain, Way::Coherent, Way::Uncached] {
        for in_flight in [1, DEPTH] {
            for (timeout, looks) in [(Duration::ZERO, POLLS), (LIMIT, DEPTH)] {
                let name = subject.name();
                jobs(subject, way, in_flight, timeout, looks).map_err(|failure| {
                    failure.before(format_args!("{name}, {way:?}, {in_flight} in flight"))
                })?;
            }
        }
    }
    Ok(())
}

fn jobs<S: Subject>(
    subject: &S,
    way: Way,
    in_flight: usize,
    timeout: Duration,
    looks: usize,
) -> Verdict {
    let bench = Bench::new(subject, subject.model(), (1, Faults::NONE), way, 2 * DEPTH)?;
    let (device, mut rng) = (&bench.device, Rng::with_seed(1));
    bench.open(subject, |driver| {
        let mut queue =
            Queue::new(driver, in_flight).map_err(|refused| Failure::from(refused.error))?;
        let mut packet = 0;
        for _ in 0..ROUNDS {
            let mut given: VecDeque<Job> = VecDeque::new();
            let before = device.accesses().waits;
            while given.len() < in_flight {
                let (mut operands, words, job) = draw(subject, &bench.pool, &mut rng, given.len())?;
                queue.submit_list(&mut operands, &words, job.tag())?;
                given.push_back(job);
            }
            for _ in 0..looks {
                let mut buffers = Vec::new();
                let ended = queue.wait_each(timeout, |_, _, buf| buffers.push(buf))?;
                let Some((tag, completion)) = ended else { continue };
                let job = given
                    .iter()
                    .position(|job| job.tag() == tag)
                    .and_then(|place| given.remove(place))
                    .ok_or_else(|| Failure::Wrong(format!("job {tag} ended twice")))?;
                ensure!(completion.failed.is_none(), "job {tag} failed without a fault");
                job.compare(subject, Some(&completion), buffers, &mut packet)?;
                if given.is_empty() {
                    break;
                }
            }
            ensure!(
                given.is_empty(),
                "{looks} polls of timeout {timeout:?} found no end of {} jobs: does each poll \
                 access a register?",
                given.len()
            );
            let waits = device.accesses().waits - before;
            let most = if timeout.is_zero() { 0 } else { subject.waits_most() * in_flight as u64 };
            ensure!(
                waits <= most,
                "{waits} waits for {in_flight} jobs, more than {most}: is the interrupt \
                 acknowledged when an end is first seen?"
            );
        }
        Ok(())
    })
}
