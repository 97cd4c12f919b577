//! The jobs, one after the other.

use super::draw::{Limits, draw};
use super::ground::{Ground, PLACES, SLOTS};
use super::line::Mode;
use super::places::{Blamed, Held, Places, Way};
use super::tally::{Budget, Job, Stopped, Tally};
use contigo::types::timeout_us;
use contigo::{CpuBuf, DevBuf, Direction, Driver, Error, Queue, Result};
use core::hint;
use core::ops::Range;
use fastrand::Rng;
use std::time::{Duration, Instant};

/// Looks at one job, at most, when polled. A look takes from 100 ns (a register read across an
/// SoC's interconnect) to 1 µs (in an emulator). The slowest engine here takes 200 ms for a copy
/// (QEMU's edu): this is ten times that at least.
const LOOKS_MAX: u32 = 20_000_000;
/// All slots and guards are compared after so many jobs: half a megabyte, as much as some dozens of
/// jobs compare.
const JOBS_PER_SWEEP: u64 = 256;
/// The clock is looked at after so many jobs.
const JOBS_PER_LOOK_AT_THE_CLOCK: u64 = 16;
/// So many slots stay the device's at most: the others can be looked at after each job.
const DEVICE_OWNED_MAX: usize = 16;

/// Random copies on one [`Ground`], whose slots are its own until it is dropped.
#[derive(Debug)]
pub struct Exerciser {
    places: Places,
    limits: Limits,
    seed: u64,
    rng: Rng,
    tally: Tally,
}

impl Exerciser {
    /// Takes all of `ground`, and fills it with random bytes that `seed` decides, as it decides
    /// everything else.
    ///
    /// # Errors
    /// An error of the buffers' views.
    pub fn new(ground: Ground, limits: Limits, seed: u64) -> Result<Self> {
        let mut rng = Rng::with_seed(seed);
        let places = Places::new(ground, &mut rng)?;
        Ok(Self { places, limits, seed, rng, tally: Tally::default() })
    }

    /// Begins anew, as [`new`](Self::new) left it: the same seed, the first job, and nothing
    /// counted.
    ///
    /// # Errors
    /// [`Error::NoSlots`] where a job that failed took slots with it, or an error of the buffers'
    /// views.
    pub fn restart(&mut self) -> Result<()> {
        self.rng = Rng::with_seed(self.seed);
        self.tally = Tally::default();
        self.places.refill(&mut self.rng)
    }

    /// The counts of all runs since the beginning.
    #[must_use]
    pub const fn tally(&self) -> Tally {
        self.tally
    }

    /// How many bytes a slot has.
    #[must_use]
    pub const fn slot_bytes(&self) -> usize {
        self.places.slot_bytes
    }

    /// Runs jobs on `queue`, one after the other, until `budget` is spent, then takes all slots
    /// back and compares everything. Jobs are numbered on from the last run, so that runs in
    /// different modes are one sequence.
    ///
    /// Bytes that are wrong do not end a run: they are counted, and taken for right from then on.
    ///
    /// # Errors
    /// The first job that was refused or failed; this exerciser cannot run again, because that
    /// job's slots are lost. [`Error::Busy`] where the queue has jobs of others.
    pub fn run<D: Driver>(
        &mut self,
        queue: &mut Queue<D>,
        mode: Mode<'_>,
        budget: Budget,
    ) -> Result<(), Stopped> {
        let way = Way { port: *queue.port(), addr_bits: queue.driver().addr_bits() };
        let mut job = Job::none(self.tally.jobs);
        let seed = self.seed;
        let stopped = |job: Job, error: Error| {
            let polled = matches!((mode, error), (Mode::Polled, Error::Timeout { .. }));
            Stopped { seed, job, error, polls: if polled { LOOKS_MAX } else { 0 } }
        };
        if !queue.is_empty() {
            return Err(stopped(job, Error::Busy));
        }
        // The CPU's bytes are still dirty in its caches, and would hide those that a device writes
        // over them.
        self.sweep(way, job).map_err(|error| stopped(job, error))?;
        for done in 0..budget.jobs {
            let over = |until: Instant| {
                done.is_multiple_of(JOBS_PER_LOOK_AT_THE_CLOCK) && Instant::now() >= until
            };
            if budget.until.is_some_and(over) {
                break;
            }
            job = Job::none(self.tally.jobs + 1);
            job = self.plan(job, way).map_err(|error| stopped(job, error))?;
            self.step(queue, mode, way, &job).map_err(|error| stopped(job, error))?;
            if job.number.is_multiple_of(JOBS_PER_SWEEP) {
                self.sweep(way, job).map_err(|error| stopped(job, error))?;
            }
        }
        self.all_back(way, job)
            .and_then(|()| self.sweep(way, job))
            .map_err(|error| stopped(job, error))
    }

    /// Decides a job. Slots that it wants, and that stayed the device's, are taken back where they
    /// do not suit.
    fn plan(&mut self, mut job: Job, way: Way) -> Result<Job> {
        let (chain_from, chain_to) = (self.rng.u8(..8) < 3, self.rng.u8(..8) < 1);
        job.kept = self.rng.bool() && self.places.device_owned() + 2 <= DEVICE_OWNED_MAX;
        let from = self.choose(chain_from, 0);
        let to = self.choose(chain_to, from);
        if !chain_from {
            self.take_back(from, way, job)?;
        }
        if !chain_to {
            self.take_back(to, way, job)?;
        }
        let mut drawn = self.draw(from, to);
        if drawn.is_none() {
            // The part that the device still has of them is too little for this engine.
            self.take_back(from, way, job)?;
            self.take_back(to, way, job)?;
            drawn = self.draw(from, to);
        }
        let (need_bytes, have_bytes) = (self.limits.len_align_bytes as u64, self.slot_bytes());
        let drawn = drawn.ok_or(Error::BufferSize { index: 0, need_bytes, have_bytes })?;
        (job.from, job.to, job.len_bytes) = ((from, drawn.from), (to, drawn.to), drawn.len);
        (job.from_device_owned, job.to_device_owned) =
            (self.places.is_dev(from), self.places.is_dev(to));
        Ok(job)
    }

    /// A slot other than `not`; one that stayed the device's, where that is asked for and there is
    /// one.
    fn choose(&mut self, chained: bool, not: usize) -> usize {
        let first = self.rng.usize(..SLOTS);
        let mut around =
            (0..SLOTS).map(|step| 1 + (first + step) % SLOTS).filter(|&slot| slot != not);
        let any = around.clone().next().unwrap_or(1);
        if chained { around.find(|&slot| self.places.is_dev(slot)).unwrap_or(any) } else { any }
    }

    fn draw(&mut self, from: usize, to: usize) -> Option<super::draw::Drawn> {
        let (source, destination) = (self.places.room(from), self.places.room(to));
        draw(&mut self.rng, &self.limits, &source, &destination)
    }

    /// Fresh bytes by the CPU, the copy, the same copy in the shadow, and the comparison.
    fn step<D: Driver>(
        &mut self,
        queue: &mut Queue<D>,
        mode: Mode<'_>,
        way: Way,
        job: &Job,
    ) -> Result<()> {
        self.cpu_s_turn(job)?;
        let (from, from_room) =
            self.places.operand(job.from.0, &job.source(), Direction::ToDevice)?;
        let (to, to_room) =
            self.places.operand(job.to.0, &job.destination(), Direction::FromDevice)?;
        if let Mode::Events(events, _) = mode {
            events.arm()?;
        }
        queue.submit([from, to], &[])?;
        let [from, to] = finish(queue, mode, job.kept)?;
        self.places.put(job.from.0, from.with_room(from_room));
        self.places.put(job.to.0, to.with_room(to_room));

        self.places.copy_in_the_shadow(job);
        self.tally.count(job, self.slot_bytes());
        // The source may be a neighbour of the destination.
        let neighbours =
            [job.to.0 - 1, job.to.0 + 1].into_iter().filter(|&slot| slot != job.from.0);
        let mut blamed = Blamed { tally: &mut self.tally, seed: self.seed, job: *job };
        [job.from.0, job.to.0]
            .into_iter()
            .chain(neighbours)
            .try_for_each(|slot| self.places.settle(slot, way, &mut blamed))
    }

    /// The CPU's work before a job: often fresh bytes in the source, sometimes in the destination,
    /// whose lines are dirty when it is handed over then. Now and then the source goes back to its
    /// pool and is taken again.
    fn cpu_s_turn(&mut self, job: &Job) -> Result<()> {
        if !job.from_device_owned {
            if self.rng.u8(..16) == 0 {
                self.places.recycle(job.from.0)?;
                self.tally.tried.recycled += 1;
            }
            if self.rng.u8(..4) != 0 {
                self.places.write_fresh(&mut self.rng, job.from.0, &job.source())?;
                self.tally.tried.fresh_source += 1;
            }
        }
        if !job.to_device_owned && self.rng.u8(..4) == 0 {
            self.places.write_fresh(&mut self.rng, job.to.0, &job.destination())?;
            self.tally.tried.dirty_destination += 1;
        }
        Ok(())
    }

    fn take_back(&mut self, slot: usize, way: Way, job: Job) -> Result<()> {
        self.places.take_back(
            slot,
            way,
            &mut Blamed { tally: &mut self.tally, seed: self.seed, job },
        )
    }

    fn all_back(&mut self, way: Way, job: Job) -> Result<()> {
        (0..PLACES).try_for_each(|slot| self.take_back(slot, way, job))
    }

    fn sweep(&mut self, way: Way, job: Job) -> Result<()> {
        let mut blamed = Blamed { tally: &mut self.tally, seed: self.seed, job };
        (0..PLACES).try_for_each(|slot| self.places.settle(slot, way, &mut blamed))
    }
}

/// One operand after its job.
enum Ended {
    Cpu(CpuBuf),
    Dev(DevBuf),
}

impl Ended {
    fn with_room(self, room: Range<usize>) -> Held {
        match self {
            Self::Cpu(buf) => Held::Cpu(buf),
            Self::Dev(buf) => Held::Dev(buf, room),
        }
    }
}

/// Waits for the end of the queue's job as `mode` says; its buffers stay the device's where `kept`.
/// After a job that does not end, or that fails, the device is stopped and the queue is empty.
fn finish<D: Driver>(queue: &mut Queue<D>, mode: Mode<'_>, kept: bool) -> Result<[Ended; 2]> {
    let failed = match wait(queue, mode, kept) {
        Ok(Some(ended)) => return Ok(ended),
        Ok(None) => {
            let limit = if let Mode::Waiting(limit) | Mode::Events(_, limit) = mode {
                limit
            } else {
                Duration::ZERO
            };
            Error::Timeout { timeout_us: timeout_us(limit)? }
        }
        Err(error) => error,
    };
    queue.clear()?;
    Err(failed)
}

fn wait<D: Driver>(queue: &mut Queue<D>, mode: Mode<'_>, kept: bool) -> Result<Option<[Ended; 2]>> {
    let limit = match mode {
        Mode::Waiting(limit) => limit,
        Mode::Events(events, limit) => {
            events.wait(limit)?;
            limit
        }
        Mode::Polled => {
            for _ in 0..LOOKS_MAX {
                let ended = look(queue, Duration::ZERO, kept)?;
                if ended.is_some() {
                    return Ok(ended);
                }
                hint::spin_loop();
            }
            return Ok(None);
        }
    };
    look(queue, limit, kept)
}

fn look<D: Driver>(
    queue: &mut Queue<D>,
    limit: Duration,
    kept: bool,
) -> Result<Option<[Ended; 2]>> {
    Ok(if kept {
        queue.wait_device(limit)?.map(|done| done.buffers.map(Ended::Dev))
    } else {
        queue.wait(limit)?.map(|done| done.buffers.map(Ended::Cpu))
    })
}
