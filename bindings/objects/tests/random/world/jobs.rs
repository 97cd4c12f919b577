//! The jobs of the driver, and what the model says of each.

use super::{
    BYTES, Held, Is, World,
    script::{DEPTH, FAULT, REFUSED, STUCK, Script},
};
use contigo::{Completion, Direction, Error};
use contigo_objects::{End, JOBS, Operands};
use std::{sync::Arc, time::Duration};

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
            let operand = buf.shared.state.lock().unwrap().operand(&buf.shared.views, 0..BYTES, Direction::Bidirectional);
            assert_eq!(operand.as_ref().err().copied(), expected);
            let Ok(operand) = operand else {
                self.ledger.refuse(at, &mut operands);
                return self.back(&bufs[..index], &before);
            };
            buf.is = Is::Job;
            assert!(operands.push(operand).is_ok());
        }
        let (done, Script { refuses, is_stuck, is_faulty, .. }) = self.script();
        let submitted = self.ledger.submit(at, &mut operands, &[]).map_err(|refused| (refused.error, refused.buffers.is_some()));
        let known = Known { at, number: self.number, bufs };
        if self.must_stop {
            assert_eq!(submitted, Err((Error::QueueStopped { in_flight: self.flying.len() }, true)));
            self.back(&bufs, &before);
            self.reported(done);
            // The look for them found a fault, and the device does stop now.
            if is_faulty && !is_stuck && !self.flying.is_empty() {
                self.lost(|_| Ended::Cancelled);
            }
        } else if self.flying.len() == DEPTH {
            assert_eq!(submitted, Err((Error::QueueFull { depth: DEPTH }, true)));
            self.back(&bufs, &before);
        } else if refuses && is_stuck {
            assert_eq!(submitted, Err((STUCK, false)));
            self.must_stop = true;
            self.flying.push_back(known);
            self.reported(done);
        } else if refuses {
            assert_eq!(submitted, Err((REFUSED, true)));
            // The device may have touched them.
            self.back(&bufs, &[Is::Device; 2]);
            self.reported(done);
            self.lost(|_| Ended::Cancelled);
        } else {
            assert_eq!(submitted, Ok(()));
            self.flying.push_back(known);
        }
    }

    /// The ends that the device has not reported: did each fail? And what it does next.
    fn script(&self) -> (Vec<bool>, Script) {
        let script = self.script.lock().unwrap();
        let Script { refuses, is_stuck, is_faulty, .. } = *script;
        (script.done.iter().map(|(_, failed)| *failed).collect(), Script { refuses, is_stuck, is_faulty, ..Script::default() })
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

    /// The ends that came out when the device was stopped, or would not stop.
    fn reported(&mut self, done: Vec<bool>) {
        done.into_iter().for_each(|failed| self.ends(if failed { Ended::Alone } else { Ended::Well }, false));
    }

    /// The others, once the device was stopped.
    fn lost(&mut self, why: impl Fn(&Known) -> Ended) {
        self.must_stop = false;
        while let Some(job) = self.flying.front() {
            let why = why(job);
            self.ends(why, false);
        }
    }

    /// What one look does, and its answer.
    fn looks(&mut self, to_cpu: impl Fn(&Known) -> bool, done: &[bool], script: &Script) -> Result<bool, Error> {
        let Some(oldest) = self.flying.front() else { return Ok(false) };
        let to_cpu = to_cpu(oldest);
        match (done.first(), script.is_faulty, script.is_stuck) {
            (Some(failed), ..) => {
                self.ends(if *failed { Ended::Alone } else { Ended::Well }, to_cpu);
                Ok(true)
            }
            (None, false, _) => Ok(false),
            (None, true, true) => {
                self.must_stop = true;
                Err(STUCK)
            }
            (None, true, false) => {
                self.lost(|_| Ended::Fault(FAULT));
                Err(FAULT)
            }
        }
    }

    pub(super) fn look(&mut self, to_cpu: bool) {
        let (done, script) = self.script();
        let looked = self.ledger.look(Duration::ZERO, |_| to_cpu).map_err(|failed| failed.error);
        assert_eq!(looked, self.looks(|_| to_cpu, &done, &script));
    }

    /// Waits for one of the jobs that were not taken.
    pub(super) fn wait(&mut self, which: usize) {
        let known: Vec<_> = self.flying.iter().chain(self.ended.iter().map(|(job, _)| job)).map(|job| (job.at, job.number)).collect();
        let Some((at, number)) = known.get(which).copied() else { return };
        assert_eq!(self.ledger.number(at), number);
        let (mut done, script) = self.script();
        let waited = self.ledger.wait(at, Duration::ZERO, true).map_err(|failed| failed.error);
        // It looks until this one has ended, and each time at the next end.
        let mut expected = Ok(true);
        while !self.ended.iter().any(|(job, _)| job.at == at) && expected == Ok(true) {
            expected = self.looks(|job| job.at == at, &done, &script);
            done.drain(..done.len().min(1));
        }
        let expected = if self.ended.iter().any(|(job, _)| job.at == at) { Ok(true) } else { expected };
        assert_eq!(waited, expected);
    }

    pub(super) fn stop(&mut self) {
        let (done, script) = self.script();
        let waited = self.flying.back().map(|job| (job.at, FAULT));
        let stopped = self.ledger.stop(waited);
        self.reported(done);
        if script.is_stuck {
            assert_eq!(stopped, Err(STUCK));
            self.must_stop = true;
        } else {
            assert_eq!(stopped, Ok(()));
            self.lost(|job| if waited == Some((job.at, FAULT)) { Ended::Fault(FAULT) } else { Ended::Cancelled });
        }
    }

    /// Takes the first end.
    pub(super) fn take(&mut self) {
        let taken = self.ledger.take_first().map(|(held, end)| {
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
            2 => script.is_faulty = true,
            _ => (script.refuses, script.is_stuck) = (!script.refuses, script.refuses != script.is_stuck),
        }
    }
}
