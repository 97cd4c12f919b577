//! Random jobs under random faults.

use super::bench::{Bench, Job, draw};
use super::mixed::Mixed;
use super::program::program;
use super::sight::all_seen;
use super::waits::waits;
use super::{Kind, Subject, Way};
use crate::conformance::{Failure, Verdict};
use crate::{ensure, fnv};
use contigo::sim::{Faults, SimDevice, Struck};
use contigo::{Completion, DevBuf, Driver, Error, Pool, Queue};
use fastrand::Rng;
use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

/// How many jobs are in a queue at most. A driver that takes fewer lets the others wait.
const DEPTH: usize = 8;
/// Both operands of every job in flight, and some more.
const SLOTS: usize = 2 * DEPTH + 2;
/// So many steps a seed.
const STEPS: usize = 60;
/// The longest wait for the last jobs; each look waits for a tenth of it.
const DRAIN: Duration = Duration::from_millis(20);

/// How the jobs of all seeds ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Well.
    pub completed: u64,
    /// Alone, or with their channel.
    pub failed: u64,
    /// In a stop.
    pub cancelled: u64,
    /// How often the device would not stop, and was reset from outside.
    pub resets: u64,
    /// Runs whose last jobs did not end by themselves.
    pub hung: u64,
    /// Of the cancelled ones, those on a board without faults.
    pub stopped: u64,
    /// What the models made of the boards' faults.
    pub struck: Struck,
}

/// Runs jobs by polls alone, and by few waits; each seed of `seeds`, with random jobs, and faults
/// that the seed decides, and with the ways to memory in turn; and the stop program.
///
/// # Errors
/// [`Failure::Wrong`], with the subject's name, and the seed if there is one; or, of 64 seeds or
/// more, with what none of them saw ([`Sight`](super::Sight)); or a [`Kind::Send`] of which nothing
/// would be compared.
pub fn faults<S: Subject>(subject: &S, seeds: Range<u64>) -> Verdict<Tally> {
    shows_what_it_read(subject)?;
    waits(subject)?;
    let mut tally = Tally::default();
    let count = seeds.end.saturating_sub(seeds.start);
    for seed in seeds {
        one(subject, seed, &mut tally)
            .map_err(|failure| failure.before(format_args!("{}, seed {seed}", subject.name())))?;
    }
    all_seen(subject, count, &tally)?;
    program(subject)?;
    Ok(tally)
}

/// A job that writes no memory shows by a sink or by its words that the core read the right bytes.
fn shows_what_it_read<S: Subject>(subject: &S) -> Verdict {
    let bytes = vec![0; subject.limits().len_align_bytes.max(1)];
    ensure!(
        subject.kind() != Kind::Send
            || subject.stream(&subject.model()).is_some()
            || subject.words_expected(&bytes).is_some(),
        "{}: nothing of a Kind::Send is compared. Return the counts of the model's sink in \
         Subject::stream, or the words of a completion in Subject::words_expected",
        subject.name()
    );
    Ok(())
}

/// The faults of a seed: none, interrupts alone, all that a job recovers from, and a device that
/// will not stop. No two kinds have one number, so that the board tells them apart
/// ([`SimCounts::struck`](contigo::sim::SimCounts::struck)).
const fn faults_of(seed: u64) -> Faults {
    match seed % 4 {
        0 => Faults::NONE,
        1 => Faults { late_irq: 301, lost_irq: 303, ..Faults::NONE },
        2 => Faults { late_irq: 101, lost_irq: 103, error: 99, short: 97, hang: 95, stuck: 0 },
        _ => Faults { stuck: 61, hang: 63, error: 59, ..Faults::NONE },
    }
}

fn one<S: Subject>(subject: &S, seed: u64, tally: &mut Tally) -> Verdict {
    let way = match seed / 4 % 4 {
        1 => Way::Coherent,
        3 => Way::Uncached,
        _ => Way::Plain,
    };
    let bench = Bench::new(subject, subject.drawn(seed), (seed, faults_of(seed)), way, SLOTS)?;
    let verdict = on_bench(subject, seed, &bench, tally);
    tally.struck = sum(tally.struck, bench.board.counts().struck);
    let findings = bench.device.model(|model| subject.findings(model))?;
    if findings.is_empty() {
        return verdict;
    }
    let first = match verdict {
        Err(Failure::Wrong(what)) => format!("{what}; "),
        _ => String::new(),
    };
    Err(Failure::Wrong(format!("{first}the model's findings: {}", findings.join("; "))))
}

fn sum(a: Struck, b: Struck) -> Struck {
    Struck {
        late_irq: a.late_irq + b.late_irq,
        lost_irq: a.lost_irq + b.lost_irq,
        error: a.error + b.error,
        short: a.short + b.short,
        hang: a.hang + b.hang,
        stuck: a.stuck + b.stuck,
    }
}

/// The jobs of a seed, and what is left after them.
fn on_bench<S: Subject>(
    subject: &S,
    seed: u64,
    bench: &Bench<S::Model>,
    tally: &mut Tally,
) -> Verdict {
    let sent = bench.open(subject, |driver| {
        let mut run = Run {
            subject,
            device: &bench.device,
            pool: &bench.pool,
            queue: Queue::new(Mixed::new(driver, Rng::with_seed(seed)), DEPTH)
                .map_err(|refused| Failure::from(refused.error))?,
            faults: faults_of(seed),
            rng: Rng::with_seed(seed),
            jobs: VecDeque::new(),
            packet: 0,
            tags: 0,
            lost: false,
            sent: fnv::START,
            tally,
        };
        run.steps()?;
        Ok((!run.lost).then_some(run.sent))
    })?;
    let out = (bench.pool.taken(), bench.own.len_bytes() - bench.own.free_bytes());
    ensure!(out == (0, 0), "{} buffers and {} bytes of the driver's stayed out", out.0, out.1);
    let counts = bench.board.counts();
    ensure!(counts.unowned_accesses == 0, "accesses to bytes that were not given: {counts:?}");
    ensure!(counts.stray_accesses == 0, "accesses to no memory: {counts:?}");
    ensure!(counts.evictions == 0 && counts.lost_writes == 0, "a sync is missing: {counts:?}");
    let stream = bench.device.model(|model| subject.stream(model))?;
    if let (Kind::Send, Some(sent), Some(stream)) = (subject.kind(), sent, stream) {
        ensure!(stream.sent_hash == sent, "the sink got other bytes than were sent");
    }
    Ok(())
}

/// A run of one seed.
struct Run<'r, S: Subject> {
    subject: &'r S,
    device: &'r SimDevice<S::Model>,
    pool: &'r Pool,
    queue: Queue<Mixed<'r>>,
    faults: Faults,
    rng: Rng,
    jobs: VecDeque<Job>,
    /// The least number of the next packet.
    packet: u32,
    tags: usize,
    /// A job did not end well, so that what a sink got is not known.
    lost: bool,
    /// The hash of all that was sent.
    sent: u64,
    tally: &'r mut Tally,
}

impl<S: Subject> Run<'_, S> {
    fn steps(&mut self) -> Verdict {
        for _ in 0..STEPS {
            match self.rng.u8(..20) {
                0 => self.stop()?,
                1 => self.burst()?,
                2..11 if !self.queue.is_full() && !self.queue.is_stopped() => self.push()?,
                _ => {
                    let timeout = Duration::from_micros(self.rng.u64(..100));
                    self.look(timeout)?;
                }
            }
        }
        for _ in 0..10 * DEPTH {
            if !self.queue.is_empty() && !self.queue.is_stopped() {
                self.look(DRAIN / 10)?;
            }
        }
        if !self.queue.is_empty() {
            ensure!(self.faults != Faults::NONE, "a job without a fault never ended");
            self.tally.hung += 1;
            self.stop()?;
        }
        ensure!(self.queue.is_empty() && self.jobs.is_empty(), "{} jobs are left", self.jobs.len());
        Ok(())
    }

    /// Begins a burst, which the next poll ends, unless it has ended here or a stop comes first.
    fn burst(&mut self) -> Verdict {
        self.queue.hold_doorbell();
        for _ in 0..self.rng.usize(..=DEPTH) {
            if !self.queue.is_full() && !self.queue.is_stopped() {
                self.push()?;
            }
        }
        if self.rng.bool()
            && let Err(failed) = self.queue.ring_doorbell()
            // A device that would not stop is rung for nothing.
            && !matches!(failed.error, Error::QueueStopped { .. })
        {
            return self.failed(&[failed.error, failed.cause]);
        }
        Ok(())
    }

    fn push(&mut self) -> Verdict {
        let (mut operands, words, job) = draw(self.subject, self.pool, &mut self.rng, self.tags)?;
        self.tags += 1;
        let stops = self.queue.counts().stopped;
        match self.queue.submit_list(&mut operands, &words, job.tag()) {
            Ok(_) => self.jobs.push_back(job),
            Err(failed) if self.queue.counts().stopped == stops => {
                return Err(Failure::Wrong(format!("a job is refused: {failed}")));
            }
            // The device did not take it, and was stopped.
            Err(failed) => {
                self.expect(&[failed.error, failed.cause])?;
                self.lost = true;
                self.tally.failed += 1;
                drop(operands);
                if failed.buffers.is_none() {
                    self.jobs.push_back(job);
                }
                self.recover()?;
            }
        }
        Ok(())
    }

    fn look(&mut self, timeout: Duration) -> Verdict {
        let mut buffers = Vec::new();
        match self.queue.wait_each(timeout, |_, _, buf| buffers.push(buf)) {
            Ok(None) => Ok(()),
            Ok(Some((tag, completion))) => self.ended(tag, &completion, buffers),
            Err(failed) => self.failed(&[failed.error, failed.cause]),
        }
    }

    /// The channel failed, with these errors.
    fn failed(&mut self, errors: &[Error]) -> Verdict {
        self.expect(errors)?;
        self.lost = true;
        self.tally.failed += 1;
        self.recover()
    }

    fn ended(&mut self, tag: usize, completion: &Completion, buffers: Vec<DevBuf>) -> Verdict {
        let job = self.job(tag)?;
        if let Some(what) = completion.failed {
            let (device, status) = (self.subject.name(), completion.status);
            self.expect(&[Error::Fault { device, status, what }])?;
            (self.lost, self.tally.failed) = (true, self.tally.failed + 1);
        } else {
            self.tally.completed += 1;
            if self.subject.kind() == Kind::Send {
                self.sent = fnv::more(self.sent, job.sent());
            }
        }
        job.compare(self.subject, Some(completion), buffers, &mut self.packet)
    }

    /// The job with this tag. Where jobs end in order it is the oldest.
    fn job(&mut self, tag: usize) -> Verdict<Job> {
        let place = self.jobs.iter().position(|job| job.tag() == tag);
        let place = place
            .ok_or_else(|| Failure::Wrong(format!("job {tag} ended twice, or never began")))?;
        ensure!(place == 0 || !self.queue.driver().in_order(), "job {tag} overtook {place} others");
        self.jobs.remove(place).ok_or_else(|| Failure::Wrong("a job is gone".into()))
    }

    fn stop(&mut self) -> Verdict {
        self.lost |= !self.queue.is_empty();
        if self.queue.stop().is_err() {
            return self.recover();
        }
        self.take_back()
    }

    /// Are these errors what the faults of this seed make?
    fn expect(&self, errors: &[Error]) -> Verdict {
        let Faults { error, hang, stuck, short, .. } = self.faults;
        for failed in errors {
            // A core that is gone does not stop either.
            let stays = stuck + error > 0 && matches!(failed, Error::WillNotStop { .. });
            let fails = error + hang + stuck + short > 0 && self.subject.may_fail(failed);
            ensure!(stays || fails, "an error that no fault of this seed makes: {failed}");
        }
        Ok(())
    }

    /// The channel failed: it is stopped, by a reset from outside where it will not.
    fn recover(&mut self) -> Verdict {
        match self.queue.stop() {
            Ok(()) => {}
            Err(Error::WillNotStop { .. }) => {
                self.tally.resets += 1;
                self.device.reset()?;
                self.queue.stop()?;
            }
            Err(error) => return Err(error.into()),
        }
        self.take_back()
    }

    /// The jobs that ended before the stop, then the others.
    fn take_back(&mut self) -> Verdict {
        // The others waited in the queue.
        let mut with_device = self.queue.len().min(self.queue.driver().depth().max(1));
        for _ in 0..=DEPTH {
            let mut buffers = Vec::new();
            match self.queue.wait_each(Duration::ZERO, |_, _, buf| buffers.push(buf)) {
                Ok(Some((tag, completion))) => {
                    self.ended(tag, &completion, buffers)?;
                    with_device -= 1;
                }
                Ok(None) | Err(_) => break,
            }
        }
        for _ in 0..=DEPTH {
            let mut buffers = Vec::new();
            let Some(tag) = self.queue.take_back_each(|_, _, buf| buffers.push(buf)) else { break };
            self.tally.cancelled += 1;
            self.tally.stopped += u64::from(self.faults == Faults::NONE && with_device > 0);
            with_device = with_device.saturating_sub(1);
            self.job(tag)?.compare(self.subject, None, buffers, &mut self.packet)?;
        }
        Ok(())
    }
}
