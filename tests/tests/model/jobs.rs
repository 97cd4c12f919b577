//! Jobs of gemm8: submitted or run with whatever is at hand, and waited for in every way there is.
//! `units.rs` has how they end without.

use crate::machine::{Lent, Machine, Part};
use crate::operands::some_gemm;
use crate::oracle::{self, Attempted, refusal};
use crate::units::{CAPACITY, Job, Jobs, State, Unit};
use contigo::{CpuBuf, DevBuf, Error, JobError, Operand};
use contigo_gemm8::Gemm;
use contigo_testkit::conformance::{Failure, Verdict};
use contigo_testkit::ensure;
use std::mem;
use std::time::Duration;

/// Any job has ended by then that does not hang.
const ENOUGH: Duration = Duration::from_millis(20);

impl Machine {
    /// A job from the first check on, with other steps while it runs; then some job's end.
    pub(crate) fn job(&mut self, units: &mut [Unit<'_>]) -> Verdict {
        let Some(index) = self.one_of(units.len()) else { return Ok(()) };
        // Now and then one more behind it.
        for _ in 0..self.rng.usize(1..=CAPACITY) {
            let gemm = some_gemm(&mut self.rng);
            if self.open_unit(&mut units[index])?
                && let Some((operands, parts)) = self.operands(&gemm)
            {
                if self.rng.u8(..4) == 0 {
                    self.run_job(&mut units[index], operands, parts, gemm)?;
                } else {
                    self.submit(&mut units[index], operands, parts, gemm)?;
                }
                units[index].count()?;
            }
        }
        for _ in 0..self.rng.u32(..3) {
            self.step(units)?;
        }
        self.end_job(&mut units[index])?;
        units[index].count()
    }

    /// What a job must be refused with, where the queue says `queue` to any.
    fn refusal(
        &self,
        unit: &Unit<'_>,
        queue: Option<Error>,
        parts: &[Part; 4],
        gemm: Gemm,
    ) -> Option<Error> {
        let (coherent, line_bytes) = (unit.coherent, self.line.bytes());
        let expected =
            refusal(&Attempted { queue, coherent, line_bytes, base: self.base, parts, gemm });
        let ranges = parts.each_ref().map(Part::absolute);
        self.note(|| format!("{gemm:?} on {ranges:?}, coherent: {coherent}; {expected:?}"));
        expected
    }

    fn submit(
        &mut self,
        unit: &mut Unit<'_>,
        operands: [Operand; 4],
        parts: [Part; 4],
        gemm: Gemm,
    ) -> Verdict {
        let in_flight = unit.inside.len();
        let says = match unit.state {
            State::AtWork if in_flight == CAPACITY => Some(Error::QueueFull { depth: CAPACITY }),
            State::AtWork => None,
            _ => Some(Error::QueueStopped { in_flight }),
        };
        let expected = self.refusal(unit, says, &parts, gemm);
        let Some(queue) = &mut unit.queue else { return Ok(()) };
        match queue.submit(operands, &gemm.words()) {
            Ok(number) if expected.is_none() => {
                let is_new = unit.inside.back().is_none_or(|before| before.number < number);
                ensure!(is_new, "job {number} is inside");
                self.started(&parts, unit.coherent);
                unit.inside.push_back(Job { number, parts, gemm });
                unit.given = true;
                Ok(())
            }
            Ok(_) => Err(Failure::Wrong(format!("a job was taken: {expected:?}"))),
            Err(refused) => self.refused(refused, expected, parts),
        }
    }

    /// A job from its beginning to its end, or to the device's stop.
    fn run_job(
        &mut self,
        unit: &mut Unit<'_>,
        operands: [Operand; 4],
        parts: [Part; 4],
        gemm: Gemm,
    ) -> Verdict {
        let says = match unit.state {
            _ if !unit.inside.is_empty() => Some(Error::Busy),
            State::AtWork => None,
            _ => Some(Error::QueueStopped { in_flight: 0 }),
        };
        let expected = self.refusal(unit, says, &parts, gemm);
        let timeout = if self.rng.u8(..4) == 0 {
            Duration::from_micros(self.rng.u32(..3).into())
        } else {
            ENOUGH
        };
        let Some(queue) = &mut unit.queue else { return Ok(()) };
        let failed = match queue.run(operands, &gemm.words(), timeout) {
            Ok(done) if expected.is_none() => {
                self.started(&parts, unit.coherent);
                self.tally("done");
                return self.done(done.buffers, parts, &gemm);
            }
            Ok(_) => return Err(Failure::Wrong(format!("a job was run: {expected:?}"))),
            Err(refused) if expected.is_some() => return self.refused(refused, expected, parts),
            Err(failed) => failed,
        };
        self.started(&parts, unit.coherent);
        let late = timeout < ENOUGH || self.hangs();
        ensure!(self.possible(failed.cause, late), "{failed}, with {:?}", self.faults);
        let Some(operands) = failed.buffers else {
            let number = queue.counts().pushed - 1;
            unit.inside.push_back(Job { number, parts, gemm });
            (unit.given, unit.stuck, unit.state) = (true, true, State::MustStop);
            self.tally("would not stop");
            return self.would_not_stop(failed.error);
        };
        self.tally(match failed.error {
            Error::Timeout { .. } => "timed out",
            Error::Fault { .. } => "faulted",
            _ => "fell short",
        });
        self.written(&parts, &gemm, false);
        let buffers: Vec<_> =
            operands.into_iter().filter_map(|operand| operand.into_buf().err()).collect();
        ensure!(buffers.len() == 4, "a job that ran left buffers with the CPU");
        self.lend_all(buffers, parts, unit.coherent)
    }

    fn started(&mut self, parts: &[Part; 4], coherent: bool) {
        self.tally("started");
        for part in parts {
            match part.held_coherent {
                None if (part.extent.start | part.extent.end) % self.line.bytes() != 0 => {
                    self.tally("half a line")
                }
                None => {}
                Some(before) if before != coherent => self.tally("chained through another port"),
                Some(_) => self.tally("chained"),
            }
        }
    }

    /// May a job hang until its device is stopped, or longer?
    pub(crate) const fn hangs(&self) -> bool {
        self.faults.hang + self.faults.stuck > 0
    }

    /// A device that does not stop is one that gets stuck.
    pub(crate) fn would_not_stop(&self, error: Error) -> Verdict {
        let possible = matches!(error, Error::WillNotStop { .. }) && self.faults.stuck > 0;
        ensure!(possible, "{error}, with {:?}", self.faults);
        Ok(())
    }

    /// Can a device fail so? `late`: a timeout may.
    const fn possible(&self, error: Error, late: bool) -> bool {
        match error {
            Error::Timeout { .. } => late,
            Error::Fault { .. } => self.faults.error > 0,
            Error::ShortTransfer { .. } => self.faults.short > 0,
            _ => false,
        }
    }

    /// Waits for a job, or ends all of them otherwise.
    fn end_job(&mut self, unit: &mut Unit<'_>) -> Verdict {
        let Some(mut queue) = unit.queue.take() else { return Ok(()) };
        let way = self.rng.u8(..24);
        self.note(|| {
            format!("the jobs' end, way {way}, {:?}, {} inside", unit.state, unit.inside.len())
        });
        let ended = match way {
            0 if self.forgets => {
                self.forget_unit(unit, queue);
                return Ok(());
            }
            0..=2 => return self.drop_unit(unit, queue),
            3 => self.stop_unit(unit, &mut queue),
            4 => self.take_back_unit(unit, &mut queue),
            5..=8 => self.wait_device(unit, &mut queue, ENOUGH),
            9 => self.wait_device(unit, &mut queue, Duration::ZERO),
            10..=12 => self.look_often(unit, &mut queue),
            13 => {
                let timeout = Duration::from_micros(self.rng.u32(..3).into());
                self.wait(unit, &mut queue, timeout).map(drop)
            }
            _ => self.wait(unit, &mut queue, ENOUGH).map(drop),
        };
        unit.queue = Some(queue);
        ended
    }

    /// One wait. Says whether anything came out.
    fn wait(&mut self, unit: &mut Unit<'_>, queue: &mut Jobs, timeout: Duration) -> Verdict<bool> {
        match queue.wait(timeout) {
            Ok(Some(done)) => {
                let Job { parts, gemm, .. } = self.told_of(unit, Some(done.job))?;
                self.tally("done");
                self.done(done.buffers, parts, &gemm)?;
                Ok(true)
            }
            Ok(None) => self.none_ended(unit, queue, timeout).map(|()| false),
            Err(failed) => self.failed(unit, failed).map(|()| true),
        }
    }

    fn wait_device(&mut self, unit: &mut Unit<'_>, queue: &mut Jobs, timeout: Duration) -> Verdict {
        match queue.wait_device(timeout) {
            Ok(Some(done)) => {
                let Job { parts, gemm, .. } = self.told_of(unit, Some(done.job))?;
                self.tally("done, kept on the device");
                self.written(&parts, &gemm, true);
                self.lend_all(done.buffers, parts, unit.coherent)
            }
            Ok(None) => self.none_ended(unit, queue, timeout),
            Err(failed) => self.failed(unit, failed),
        }
    }

    /// Looks until a job is done, up to a limit; a hung one is stopped.
    fn look_often(&mut self, unit: &mut Unit<'_>, queue: &mut Jobs) -> Verdict {
        for _ in 0..20 {
            if self.wait(unit, queue, Duration::ZERO)?
                || unit.inside.is_empty()
                || unit.state != State::AtWork
            {
                return Ok(());
            }
            unit.device.run_for(5)?;
        }
        ensure!(self.hangs(), "a job that does not hang did not end in 20 looks");
        self.stop_unit(unit, queue)
    }

    /// The oldest job, which ended; `number`: as the queue says.
    fn told_of(&mut self, unit: &mut Unit<'_>, number: Option<u64>) -> Verdict<Job> {
        let drained = unit.state == State::Stopped { drained: true };
        ensure!(!drained, "a job was told of after the end of the others");
        let Some(job) = unit.inside.pop_front() else {
            return Err(Failure::Wrong(format!("job {number:?} was told of, and none is inside")));
        };
        let right = unit.given && number.is_none_or(|number| number == job.number);
        ensure!(right, "job {number:?} was told of, and not {}", job.number);
        if unit.inside.is_empty() && unit.state != State::MustStop {
            unit.state = State::AtWork;
        }
        unit.given = unit.state == State::AtWork && !unit.inside.is_empty();
        Ok(job)
    }

    fn none_ended(&mut self, unit: &mut Unit<'_>, queue: &mut Jobs, timeout: Duration) -> Verdict {
        match &mut unit.state {
            State::Stopped { drained } => *drained = true,
            State::AtWork if !unit.inside.is_empty() && timeout == ENOUGH => {
                ensure!(self.hangs(), "a job that does not hang did not end in time");
                self.tally("hung");
                return self.stop_unit(unit, queue);
            }
            _ => {}
        }
        Ok(())
    }

    /// One job failed alone, or the channel did.
    fn failed(&mut self, unit: &mut Unit<'_>, failed: JobError<[DevBuf; 4]>) -> Verdict {
        self.note(|| format!("failed: {failed}"));
        ensure!(self.possible(failed.cause, false), "{failed}, with {:?}", self.faults);
        if let Some(buffers) = failed.buffers {
            let Job { parts, gemm, .. } = self.told_of(unit, None)?;
            self.tally("faulted");
            self.written(&parts, &gemm, false);
            return self.lend_all(buffers, parts, unit.coherent);
        }
        self.tally("fell short");
        if matches!(failed.error, Error::WillNotStop { .. }) {
            self.would_not_stop(failed.error)?;
            (unit.state, unit.stuck) = (State::MustStop, true);
        } else {
            unit.state = State::Stopped { drained: true };
        }
        Ok(())
    }

    fn done(&mut self, buffers: [CpuBuf; 4], parts: [Part; 4], gemm: &Gemm) -> Verdict {
        self.written(&parts, gemm, true);
        for (buf, Part { claim, extent, shown, .. }) in buffers.into_iter().zip(parts) {
            self.returned(buf, claim, extent, &shown)?;
        }
        Ok(())
    }

    /// The bytes that the device wrote, where they can be known.
    pub(crate) fn written(&mut self, parts: &[Part; 4], gemm: &Gemm, complete: bool) {
        let [a, b, bias, c] = parts.each_ref().map(Part::absolute);
        let need = oracle::operand_bytes(gemm);
        let input = |index: usize, range: &std::ops::Range<usize>| {
            self.world.read(range.start..range.start + need[index])
        };
        let result = match (input(0, &a), input(1, &b), input(2, &bias)) {
            (Some(a), Some(b), Some(bias)) if complete => Some(oracle::gemm8(gemm, a, b, bias)),
            _ => None,
        };
        self.world.forget(c.clone());
        if let Some(bytes) = result {
            self.world.write(c.start, &bytes);
        }
    }

    pub(crate) fn lend_all(
        &mut self,
        buffers: impl IntoIterator<Item = DevBuf>,
        parts: [Part; 4],
        coherent: bool,
    ) -> Verdict {
        buffers.into_iter().zip(parts).try_for_each(|(buf, part)| self.lend(buf, part, coherent))
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
                self.returned(buf, claim, extent, &shown)?;
            }
        }
        Ok(())
    }
}
