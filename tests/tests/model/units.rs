//! Two gemm8 and their queues: opened, stopped, taken back, reset, dropped, forgotten.

use crate::machine::{Machine, Part};
use contigo::Queue;
use contigo::job::Cancelled;
use contigo::sim::SimWindow;
use contigo_gemm8::{Gemm, Gemm8, Gemm8Model, SimGemm8};
use contigo_testkit::conformance::{Failure, Verdict};
use contigo_testkit::ensure;
use std::collections::VecDeque;
use std::mem;

/// The device takes one job at a time: the second waits.
pub(crate) const CAPACITY: usize = 2;

/// A queue's state, as the model has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    AtWork,
    /// `drained`: all that had ended was fetched.
    Stopped {
        drained: bool,
    },
    MustStop,
}

pub(crate) type Jobs = Queue<Gemm8<SimWindow<Gemm8Model>>>;

/// A job in a queue.
pub(crate) struct Job {
    pub(crate) number: u64,
    pub(crate) parts: [Part; 4],
    pub(crate) gemm: Gemm,
}

/// A queue, its device, and what the model knows of them.
pub(crate) struct Unit<'d> {
    /// `None`: it was dropped or forgotten.
    pub(crate) queue: Option<Jobs>,
    pub(crate) device: &'d SimGemm8,
    pub(crate) coherent: bool,
    pub(crate) state: State,
    /// In the order in which they were submitted.
    pub(crate) inside: VecDeque<Job>,
    /// The device may have the first of them.
    pub(crate) given: bool,
    /// It would not stop, and was not reset since.
    pub(crate) stuck: bool,
    /// Its queue was forgotten, and keeps the device.
    lost: bool,
}

impl<'d> Unit<'d> {
    pub(crate) fn new(device: &'d SimGemm8, coherent: bool) -> Self {
        let (queue, state, inside) = (None, State::AtWork, VecDeque::new());
        let (given, stuck, lost) = (false, false, false);
        Self { queue, device, coherent, state, inside, given, stuck, lost }
    }

    /// Every job ended in exactly one way, or is inside.
    pub(crate) fn count(&self) -> Verdict {
        let Some(queue) = &self.queue else { return Ok(()) };
        let (counts, inside) = (queue.counts(), self.inside.len());
        let ended = counts.completed + counts.failed + counts.cancelled;
        let right = counts.pushed == ended + inside as u64 && queue.len() == inside;
        ensure!(right, "{counts:?} with {inside} inside");
        let stopped = self.state != State::AtWork;
        ensure!(queue.is_stopped() == stopped, "{queue:?} in state {:?}", self.state);
        Ok(())
    }

    /// The only thing that stops a stuck device.
    fn reset(&mut self) -> Verdict {
        self.stuck = false;
        Ok(self.device.reset()?)
    }
}

impl Machine {
    /// Is there a queue? Where there is none, and nothing keeps the device, it is opened.
    pub(crate) fn open_unit(&mut self, unit: &mut Unit<'_>) -> Verdict<bool> {
        if unit.queue.is_some() || unit.lost {
            return Ok(unit.queue.is_some());
        }
        match Queue::new(Gemm8::open_simulated(unit.device.window()?)?, CAPACITY) {
            Ok(queue) => {
                ensure!(!unit.stuck, "a stuck device stopped by itself");
                (unit.queue, unit.state, unit.given) = (Some(queue), State::AtWork, false);
                Ok(true)
            }
            Err(refused) => {
                self.would_not_stop(refused.error)?;
                unit.stuck = true;
                Ok(false)
            }
        }
    }

    pub(crate) fn stop_unit(&mut self, unit: &mut Unit<'_>, queue: &mut Jobs) -> Verdict {
        let reset = unit.stuck && self.rng.bool();
        if reset {
            unit.reset()?;
        }
        let stopped = queue.stop();
        self.note(|| format!("stop, reset: {reset}: {stopped:?}"));
        self.tally(match (stopped, reset) {
            (Ok(()), true) => "recovered after a reset",
            (Ok(()), false) => "recovered",
            (Err(_), _) => "would not stop",
        });
        match stopped {
            Ok(()) => {
                ensure!(!unit.stuck, "a stuck device stopped by itself");
                let drained = unit.state == State::Stopped { drained: true };
                unit.state =
                    if unit.inside.is_empty() { State::AtWork } else { State::Stopped { drained } };
            }
            Err(error) => {
                self.would_not_stop(error)?;
                (unit.stuck, unit.state) = (true, State::MustStop);
            }
        }
        Ok(())
    }

    /// All jobs that a stopped device has not ended, or was never given.
    pub(crate) fn take_back_unit(&mut self, unit: &mut Unit<'_>, queue: &mut Jobs) -> Verdict {
        if !matches!(unit.state, State::Stopped { .. }) {
            ensure!(queue.take_back::<4>()?.is_none(), "taken back in state {:?}", unit.state);
            return Ok(());
        }
        while let Some(Cancelled { buffers, job }) = queue.take_back::<4>()? {
            let Some(Job { number, parts, gemm }) = unit.inside.pop_front() else {
                return Err(Failure::Wrong("more was taken back than was inside".into()));
            };
            ensure!(number == job, "job {job} was taken back, not {number}");
            self.tally("job taken back");
            self.written(&parts, &gemm, false);
            self.lend_all(buffers, parts, unit.coherent)?;
        }
        ensure!(unit.inside.is_empty(), "{} jobs were not taken back", unit.inside.len());
        (unit.state, unit.given) = (State::AtWork, false);
        Ok(())
    }

    /// Drops the queue: its device stops, or keeps the job that it was given.
    pub(crate) fn drop_unit(&mut self, unit: &mut Unit<'_>, queue: Jobs) -> Verdict {
        let at_rest = matches!(unit.state, State::Stopped { .. });
        drop(queue);
        // A device that is stuck stays so.
        let stopped = self.open_unit(unit)?;
        let mut jobs = mem::take(&mut unit.inside);
        if !jobs.is_empty() {
            self.tally("dropped");
        }
        if !stopped
            && !at_rest
            && unit.given
            && let Some(Job { parts, .. }) = jobs.pop_front()
        {
            self.tally("leaked");
            parts.iter().for_each(|part| self.world.leak(part.claim));
        }
        for Job { parts, gemm, .. } in jobs {
            self.written(&parts, &gemm, false);
            parts.iter().for_each(|part| self.world.claims[part.claim].handles -= 1);
        }
        unit.given = false;
        Ok(())
    }

    pub(crate) fn forget_unit(&mut self, unit: &mut Unit<'_>, queue: Jobs) {
        self.tally("job forgotten");
        mem::forget(queue);
        unit.lost = true;
        unit.inside
            .drain(..)
            .for_each(|job| job.parts.iter().for_each(|part| self.world.leak(part.claim)));
    }

    /// Makes a queue usable again whose device is stopped, or would not stop.
    pub(crate) fn recover(&mut self, units: &mut [Unit<'_>]) -> Verdict {
        let Some(index) = self.one_of(units.len()) else { return Ok(()) };
        let unit = &mut units[index];
        unit.device.run_for(self.rng.u32(..100))?;
        let Some(mut queue) = unit.queue.take() else {
            if unit.stuck && self.rng.bool() {
                unit.reset()?;
            }
            return self.open_unit(unit).map(drop);
        };
        self.stop_unit(unit, &mut queue)?;
        if self.rng.u8(..4) > 0 {
            self.take_back_unit(unit, &mut queue)?;
        }
        unit.queue = Some(queue);
        unit.count()
    }

    /// The end of a sequence.
    pub(crate) fn end_units(&mut self, units: &mut [Unit<'_>]) -> Verdict {
        for unit in units {
            if let Some(queue) = unit.queue.take() {
                self.drop_unit(unit, queue)?;
            }
            unit.queue = None;
        }
        Ok(())
    }
}
