//! Jobs: started with whatever is at hand, ended in every way there is.

use crate::{
    lanes::Lane,
    machine::{Held, Lent, Machine, Part},
    operands::some_gemm,
    oracle::{Attempted, refusal},
    reference,
};
use contigo::{Attempt, CpuBuf, DevAddr, DevBuf, DevSlice, Done, Engine, Error, JobError, OneThread, Running, sim::SimWindow};
use contigo_gemm8::{Gemm, Gemm8, Gemm8Model, SimGemm8};
use contigo_testkit::{
    conformance::{Failure, Verdict},
    ensure,
};
use std::{mem, time::Duration};

type Driver = Gemm8<SimWindow<Gemm8Model>>;
type Job<'e, 'p> = Running<'e, 'p, Driver, 4, OneThread>;
type Lents<'p> = [DevBuf<'p, OneThread>; 4];

/// An engine, its device, and what the model knows of them.
pub(crate) struct Unit<'d> {
    engine: Engine<Driver, 4>,
    device: &'d SimGemm8,
    coherent: bool,
    /// A job of it was forgotten, or would not stop.
    busy: bool,
    /// It would not stop, and was not reset since.
    stuck: bool,
    forgotten: u64,
}

/// How a job ended.
enum Ended<'p> {
    Done([CpuBuf<'p, OneThread>; 4]),
    DoneOnDevice(Lents<'p>),
    Failed(Error, Lents<'p>),
    /// Stopped and dropped: nothing to hold any more.
    Dropped,
    /// The device would not stop, and keeps the buffers.
    Leaked,
    Forgotten,
}

impl<'d> Unit<'d> {
    pub(crate) fn new(device: &'d SimGemm8, coherent: bool) -> Verdict<Self> {
        Ok(Self {
            engine: Engine::new(Gemm8::open_simulated(device.window()?)?)?,
            device,
            coherent,
            busy: false,
            stuck: false,
            forgotten: 0,
        })
    }

    /// Every job ended in exactly one way.
    pub(crate) fn count(&self) -> Verdict {
        let jobs = self.engine.jobs();
        ensure!(jobs.started == jobs.completed + jobs.stopped + self.forgotten, "{jobs:?}, and {} forgotten", self.forgotten);
        Ok(())
    }
}

impl<'p> Machine<'p> {
    /// A job from the first check to the last byte, with other steps while it runs.
    pub(crate) fn job(&mut self, units: &mut [Unit<'_>], lane: &mut Lane<'_, 'p>) -> Verdict {
        let Some(index) = self.one_of(units.len()) else { return Ok(()) };
        units.swap(0, index);
        let Some((unit, others)) = units.split_first_mut() else { return Ok(()) };
        let gemm = some_gemm(&mut self.rng);
        let Some((operands, parts)) = self.operands(&gemm) else { return self.step(others, lane) };
        let (busy, coherent) = (unit.busy, unit.coherent);
        let expected = refusal(&Attempted { busy, coherent, line_bytes: self.line.bytes(), base: self.base, parts: &parts, gemm });
        self.note(|| format!("{gemm:?} on {:?}, coherent: {coherent}; expect {expected:?}", parts.each_ref().map(Part::absolute)));
        let job = match unit.engine.start(operands, &gemm) {
            Ok(job) if expected.is_none() => job,
            Ok(_) => return Err(Failure::Wrong(format!("a job was started that must be refused: {expected:?}"))),
            Err(refused) => return self.refused(refused, expected, parts),
        };
        self.tally("started");
        for part in &parts {
            match part.held_coherent {
                None if part.extent.start % self.line.bytes() != 0 || part.extent.end % self.line.bytes() != 0 => self.tally("half a line"),
                None => {}
                Some(before) if before != coherent => self.tally("chained through another port"),
                Some(_) => self.tally("chained"),
            }
        }
        for _ in 0..self.rng.u32(..3) {
            self.step(others, lane)?;
        }
        let ended = self.end_job(job, unit.device)?;
        self.settle(ended, parts, &gemm, unit)?;
        unit.count()
    }

    /// Ends a job in one of the ways there are.
    fn end_job<'e>(&mut self, job: Job<'e, 'p>, device: &SimGemm8) -> Verdict<Ended<'p>> {
        const ENOUGH: Duration = Duration::from_millis(20);
        let way = self.rng.u8(..20);
        self.note(|| format!("end the job, way {way}"));
        Ok(match way {
            0 if self.forgets => {
                mem::forget(job);
                Ended::Forgotten
            }
            0..=2 => {
                drop(job);
                Ended::Dropped
            }
            3..=6 => on_device(job.wait_device(ENOUGH)),
            7 => on_device(job.wait_device(Duration::ZERO)),
            8..=10 => return self.try_often(job, device),
            11 => on_cpu(job.wait(Duration::from_micros(self.rng.u32(..3).into()))),
            _ => match job.wait(ENOUGH) {
                Err(failed) if failed.error == (Error::Timeout { timeout_us: 20_000 }) && self.faults.hang == 0 => {
                    return Err(Failure::Wrong("a job that does not hang did not end in time".into()));
                }
                ended => on_cpu(ended),
            },
        })
    }

    /// Looks until it is done, up to a limit; a hung one is dropped.
    fn try_often<'e>(&mut self, mut job: Job<'e, 'p>, device: &SimGemm8) -> Verdict<Ended<'p>> {
        for _ in 0..20 {
            match job.try_wait() {
                Ok(Attempt::Done(done)) => return Ok(Ended::Done(done.buffers)),
                Ok(Attempt::Pending(still)) => job = still,
                Err(failed) => return Ok(on_cpu(Err(failed))),
            }
            device.run_for(5)?;
        }
        ensure!(self.faults.hang + self.faults.stuck > 0, "a job that does not hang did not end in 20 looks");
        drop(job);
        Ok(Ended::Dropped)
    }

    /// The effect of the end on the buffers and on the model.
    fn settle(&mut self, ended: Ended<'p>, parts: [Part; 4], gemm: &Gemm, unit: &mut Unit<'_>) -> Verdict {
        self.tally(match &ended {
            Ended::Done(_) => "done",
            Ended::DoneOnDevice(_) => "done, kept on the device",
            Ended::Failed(Error::Timeout { .. }, _) => "timed out",
            Ended::Failed(Error::Fault { .. }, _) => "faulted",
            Ended::Failed(..) => "fell short",
            Ended::Dropped => "dropped",
            Ended::Leaked => "leaked",
            Ended::Forgotten => "job forgotten",
        });
        // A job that was dropped does not say whether its device stopped.
        let ended = if matches!(ended, Ended::Dropped) && unit.engine.is_busy() { Ended::Leaked } else { ended };
        match ended {
            Ended::Forgotten => unit.forgotten += 1,
            Ended::Leaked => {
                ensure!(self.faults.stuck > 0, "a device would not stop that does not get stuck");
                unit.stuck = true;
            }
            _ => {}
        }
        let keeps = matches!(ended, Ended::Forgotten | Ended::Leaked);
        ensure!(unit.engine.is_busy() == keeps, "the buffers are gone: {keeps}, and the engine is busy: {}", !keeps);
        unit.busy = keeps;
        match ended {
            Ended::Done(buffers) => {
                self.written(&parts, gemm, true);
                for (buf, Part { claim, extent, shown, .. }) in buffers.into_iter().zip(parts) {
                    let now = buf.offset_bytes()..buf.offset_bytes() + buf.len_bytes();
                    ensure!(now == shown, "a buffer comes back showing {now:?}, not {shown:?}");
                    self.held.push(Held { buf, claim, extent });
                }
            }
            Ended::DoneOnDevice(buffers) => {
                self.written(&parts, gemm, true);
                self.lend(buffers, parts, unit.coherent)?;
            }
            Ended::Failed(error, buffers) => {
                let possible = match error {
                    Error::Timeout { .. } => true,
                    Error::Fault { .. } => self.faults.error > 0,
                    Error::ShortTransfer { .. } => self.faults.short > 0,
                    _ => false,
                };
                ensure!(possible, "a job failed with {error}, with {:?}", self.faults);
                self.note(|| format!("failed: {error}"));
                self.written(&parts, gemm, false);
                self.lend(buffers, parts, unit.coherent)?;
            }
            Ended::Dropped => {
                self.written(&parts, gemm, false);
                parts.iter().for_each(|part| self.world.claims[part.claim].handles -= 1);
            }
            Ended::Leaked | Ended::Forgotten => parts.iter().for_each(|part| self.world.leak(part.claim)),
        }
        Ok(())
    }

    /// The bytes that the device wrote, where they can be known.
    fn written(&mut self, parts: &[Part; 4], gemm: &Gemm, complete: bool) {
        let [a, b, bias, c] = parts.each_ref().map(Part::absolute);
        let need = reference::operand_bytes(gemm);
        let input = |index: usize, range: &std::ops::Range<usize>| self.world.read(range.start..range.start + need[index]);
        let result = match (input(0, &a), input(1, &b), input(2, &bias)) {
            (Some(a), Some(b), Some(bias)) if complete => Some(reference::gemm8(gemm, a, b, bias)),
            _ => None,
        };
        self.world.forget(c.clone());
        if let Some(bytes) = result {
            self.world.write(c.start, &bytes);
        }
    }

    fn lend(&mut self, buffers: Lents<'p>, parts: [Part; 4], coherent: bool) -> Verdict {
        for (buf, part) in buffers.into_iter().zip(parts) {
            let given = if part.held_coherent.is_some() { part.of.clone() } else { part.absolute() };
            let used = part.absolute();
            let slice = DevSlice { addr: DevAddr(self.base + used.start as u64), offset_bytes: 0, len_bytes: used.len() };
            ensure!((buf.slice(), buf.handed_over_bytes()) == (slice, given.len()), "{buf:?} instead of {slice:?} of {given:?}");
            let Part { claim, extent, shown, .. } = part;
            self.lent.push(Lent { buf, claim, extent, shown, given, coherent });
        }
        Ok(())
    }

    /// A buffer that is a device's comes back to the CPU, or to its pool, or is forgotten.
    pub(crate) fn lent_one(&mut self) -> Verdict {
        let Some(index) = self.one_of(self.lent.len()) else { return Ok(()) };
        let Lent { buf, claim, extent, shown, given, .. } = self.lent.swap_remove(index);
        let way = self.rng.u8(..16);
        self.note(|| format!("back from a device: {extent:?}, given {given:?}, way {way}"));
        match way {
            0 if self.forgets => {
                mem::forget(buf);
                self.world.leak(claim);
            }
            0..=4 => {
                drop(buf);
                self.world.claims[claim].handles -= 1;
            }
            _ => {
                let buf = buf.into_cpu()?;
                let now = buf.offset_bytes()..buf.offset_bytes() + buf.len_bytes();
                ensure!(now == shown, "a buffer comes back showing {now:?}, not {shown:?}");
                self.held.push(Held { buf, claim, extent });
            }
        }
        Ok(())
    }

    /// Makes an engine usable again whose job was forgotten, or whose device would not stop.
    pub(crate) fn recover(&mut self, units: &mut [Unit<'_>]) -> Verdict {
        let Some(index) = self.one_of(units.len()) else { return Ok(()) };
        let unit = &mut units[index];
        unit.device.run_for(self.rng.u32(..100))?;
        let reset = unit.stuck && self.rng.bool();
        if reset {
            unit.device.reset()?;
            unit.stuck = false;
        }
        let (stuck, recovered) = (unit.stuck, unit.engine.recover());
        self.note(|| format!("recover, reset: {reset}: {recovered:?}"));
        self.tally(match (recovered, reset) {
            (Ok(()), true) => "recovered after a reset",
            (Ok(()), false) => "recovered",
            (Err(_), _) => "would not stop",
        });
        match recovered {
            Ok(()) => {
                ensure!(!stuck && !unit.engine.is_busy(), "a stuck device stopped by itself");
                unit.busy = false;
            }
            Err(error) => {
                ensure!(matches!(error, Error::WillNotStop { .. }) && self.faults.stuck > 0, "recover: {error}");
                ensure!(unit.engine.is_busy(), "a device that will not stop, and its engine is ready for more");
                unit.stuck = true;
                unit.busy = true;
            }
        }
        Ok(())
    }
}

fn on_device<'p>(ended: Result<Done<Lents<'p>, ()>, JobError<Lents<'p>>>) -> Ended<'p> {
    match ended {
        Ok(done) => Ended::DoneOnDevice(done.buffers),
        Err(failed) => failure(failed),
    }
}

fn on_cpu<'p>(ended: Result<Done<[CpuBuf<'p, OneThread>; 4], ()>, JobError<Lents<'p>>>) -> Ended<'p> {
    match ended {
        Ok(done) => Ended::Done(done.buffers),
        Err(failed) => failure(failed),
    }
}

fn failure<'p>(failed: JobError<Lents<'p>>) -> Ended<'p> {
    match failed.buffers {
        Some(buffers) => Ended::Failed(failed.error, buffers),
        None => Ended::Leaked,
    }
}
