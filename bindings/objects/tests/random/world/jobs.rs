//! The jobs of the driver, and what the model says of each.

use super::script::{DEPTH, FAULT, REFUSED, STUCK, Script};
use super::{BYTES, Held, Is, World};
use contigo::{Completion, Direction, Error};
use contigo_objects::{End, JOBS, Operands};
use std::sync::Arc;
use std::time::Duration;

/// A job that the model knows of.
#[derive(Clone, Debug)]
pub(super) struct Known {
    at: usize,
    number: u64,
    bufs: [usize; 2],
}

/// How a job ended, without its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Well,
    Alone,
    Fault(Error),
    Cancelled,
}

impl World {
    pub(super) fn start(&mut self, bufs: [usize; 2]) {
        self.number += 1;
        let Ok((at, Held(held), specs)) = self.ledger.open(self.number) else {
            assert_eq!(self.flying.len() + self.ended.len(), JOBS);
            return;
        };
        assert_eq!(specs.len(), bufs.len());
        held.extend(bufs.map(|which| Arc::clone(&self.bufs[which].shared)));
        let before = bufs.map(|which| self.bufs[which].is);
        let mut operands = Operands::new();
        for (index, which) in bufs.into_iter().enumerate() {
            let buf = &mut self.bufs[which];
            let expected = buf.not_free(&[Is::Cpu, Is::Device]);
            let operand = buf.shared.state.lock().unwrap().operand(
                &buf.shared.views,
                0..BYTES,
                Direction::Bidirectional,
            );
            assert_eq!(operand.as_ref().err().copied(), expected);
            let Ok(operand) = operand else {
                self.ledger.refuse(at, &mut operands);
                return self.back(&bufs[..index], &before);
            };
            buf.is = Is::Job;
            assert!(operands.push(operand).is_ok());
        }
        let script = self.script();
        let submitted = self
            .ledger
            .submit(at, &mut operands, &[], false)
            .map_err(|refused| (refused.error, refused.buffers.is_some()));
        let known = Known { at, number: self.number, bufs };
        if self.must_stop {
            assert_eq!(
                submitted,
                Err((Error::QueueStopped { in_flight: self.flying.len() }, true))
            );
            self.back(&bufs, &before);
            // The look for ends may find a fault, and the device may stop this time.
            self.drains(&script, |_| Ended::Cancelled);
        } else if self.flying.len() == DEPTH {
            assert_eq!(submitted, Err((Error::QueueFull { depth: DEPTH }, true)));
            self.back(&bufs, &before);
        } else if script.refuses && script.sticks > 0 {
            assert_eq!(submitted, Err((STUCK, false)));
            self.must_stop = true;
            self.flying.push_back(known);
        } else if script.refuses {
            assert_eq!(submitted, Err((REFUSED, true)));
            // The device may have touched them.
            self.back(&bufs, &[Is::Device; 2]);
            self.reported(&script);
            self.lost(|_| Ended::Cancelled);
        } else {
            assert_eq!(submitted, Ok(()));
            self.flying.push_back(known);
        }
    }

    /// What the device does next.
    fn script(&self) -> Script {
        self.script.lock().unwrap().clone()
    }

    /// Buffers of a job that was refused. One that is a device's is so by a new hand-over.
    fn back(&mut self, bufs: &[usize], owners: &[Is; 2]) {
        for (which, is) in bufs.iter().zip(owners) {
            self.bufs[*which].is = *is;
            self.bufs[*which].hand_overs += u64::from(*is == Is::Device);
        }
    }

    /// The oldest job in flight has ended; its buffers are the CPU's or still a device's.
    fn ends(&mut self, ended: Ended, to_cpu: bool) {
        let job = self.flying.pop_front().unwrap();
        self.back(&job.bufs, &[if to_cpu { Is::Cpu } else { Is::Device }; 2]);
        self.ended.push((job, ended));
    }

    /// The ends that come out when the device was stopped, or would not stop. (Those of a job that
    /// is gone are passed over.)
    fn reported(&mut self, script: &Script) {
        if !self.flying.is_empty() {
            script.done.iter().for_each(|(_, failed)| {
                self.ends(if *failed { Ended::Alone } else { Ended::Well }, false)
            });
        }
    }

    /// The others, when the device was stopped.
    fn lost(&mut self, why: impl Fn(&Known) -> Ended) {
        while let Some(job) = self.flying.front() {
            let why = why(job);
            self.ends(why, false);
        }
        self.must_stop = false;
    }

    /// The device would not stop, and the ends are looked for. A fault that is found stops it
    /// again.
    fn drains(&mut self, script: &Script, why: impl Fn(&Known) -> Ended) {
        let was_flying = !self.flying.is_empty();
        self.reported(script);
        let is_found = was_flying && (script.fault_is_first || !self.flying.is_empty());
        if script.is_faulty && script.sticks == 0 && is_found {
            self.lost(why);
        }
    }

    /// What one look does, and its answer.
    fn looks(
        &mut self,
        to_cpu: impl Fn(&Known) -> bool,
        script: &mut Script,
    ) -> Result<bool, Error> {
        let Some(oldest) = self.flying.front() else { return Ok(false) };
        let to_cpu = to_cpu(oldest);
        if script.is_faulty && (script.fault_is_first || script.done.is_empty()) {
            script.is_faulty = false;
            if script.sticks > 0 {
                self.must_stop = true;
                self.reported(script);
                return Err(STUCK);
            }
            self.reported(script);
            self.lost(|_| Ended::Fault(FAULT));
            return Err(FAULT);
        }
        let Some((_, failed)) = script.done.pop_front() else { return Ok(false) };
        self.ends(if failed { Ended::Alone } else { Ended::Well }, to_cpu);
        Ok(true)
    }

    pub(super) fn look(&mut self, to_cpu: bool) {
        let mut script = self.script();
        let looked = self.ledger.look(Duration::ZERO, |_| to_cpu).map_err(|failed| failed.error);
        assert_eq!(looked, self.looks(|_| to_cpu, &mut script));
    }

    fn has_ended(&self, at: usize) -> bool {
        self.ended.iter().any(|(job, _)| job.at == at)
    }

    /// Waits for one of the jobs that were not taken.
    pub(super) fn wait(&mut self, which: usize) {
        let known: Vec<_> = self
            .flying
            .iter()
            .chain(self.ended.iter().map(|(job, _)| job))
            .map(|job| (job.at, job.number))
            .collect();
        let Some((at, number)) = known.get(which).copied() else { return };
        assert_eq!(self.ledger.number(at), number);
        let mut script = self.script();
        let waited = self.ledger.wait(at, Duration::ZERO, true).map_err(|failed| failed.error);
        // It looks until this one has ended, and each time at the next end.
        let mut looked = Ok(true);
        while !self.has_ended(at) && looked == Ok(true) {
            looked = self.looks(|job| job.at == at, &mut script);
        }
        // A device that would not stop is the answer, and a fault is the jobs' end.
        assert_eq!(waited, if looked == Err(STUCK) { looked } else { Ok(self.has_ended(at)) });
    }

    /// The first that ended, or the next one.
    pub(super) fn first_ended(&mut self) {
        let mut script = self.script();
        let first = self.ledger.first_ended(Duration::ZERO).map_err(|failed| failed.error);
        let looked =
            if self.ended.is_empty() { self.looks(|_| true, &mut script) } else { Ok(true) };
        let expected = if looked == Err(STUCK) {
            Err(STUCK)
        } else {
            Ok(self.ended.first().map(|(job, _)| job.at))
        };
        assert_eq!(first, expected);
    }

    pub(super) fn stop(&mut self) {
        let script = self.script();
        let waited = self.flying.back().map(|job| (job.at, FAULT));
        let stopped = self.ledger.stop(waited);
        if script.sticks > 0 {
            assert_eq!(stopped, Err(STUCK));
            self.must_stop = true;
        } else {
            assert_eq!(stopped, Ok(()));
            self.reported(&script);
            self.lost(|job| {
                if waited == Some((job.at, FAULT)) { Ended::Fault(FAULT) } else { Ended::Cancelled }
            });
        }
    }

    /// Takes the first end.
    pub(super) fn take(&mut self) {
        let taken = self.ledger.take_first(|held, end| {
            held.0.clear();
            match end {
                End::Reported(Completion { failed: None, .. }) => Ended::Well,
                End::Reported(_) => Ended::Alone,
                End::Fault(error) => Ended::Fault(error),
                End::Cancelled => Ended::Cancelled,
            }
        });
        let first = (!self.ended.is_empty()).then(|| self.ended.remove(0));
        assert_eq!(taken, first.map(|(_, end)| end));
    }

    /// Something happens on the device's side.
    pub(super) fn device(&mut self, which: usize) {
        let mut script = self.script.lock().unwrap();
        match which {
            0 | 1 => {
                if let Some(slot) = script.running.pop_front() {
                    script.done.push_back((slot, which == 1));
                }
            }
            // A device without a job has no fault.
            2 | 3 if !self.flying.is_empty() => {
                (script.is_faulty, script.fault_is_first) = (true, which == 3)
            }
            2 | 3 => {}
            4 => script.refuses = !script.refuses,
            5 => script.sticks = 1,
            6 => script.sticks = 2,
            _ => script.sticks = 0,
        }
    }
}

/// A job that had ended before a fault keeps its report, though the fault is found first.
#[test]
fn ends_behind_a_late_fault_are_reported() {
    let mut world = World::new();
    for bufs in [[0, 1], [2, 3], [4, 5]] {
        world.start(bufs);
    }
    (0..2).for_each(|_| world.device(0));
    world.script.lock().unwrap().fault_is_beside = true;
    assert!(world.ledger.look(Duration::ZERO, |_| false).unwrap());
    let mut ends = Vec::new();
    while let Some(end) = world.ledger.take_first(|held, end| {
        held.0.clear();
        end
    }) {
        ends.push(end);
    }
    use End::{Fault, Reported};
    assert!(matches!(ends[..], [Reported(_), Reported(_), Fault(FAULT)]), "{ends:?}");
}
