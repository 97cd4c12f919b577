//! Checks of jobs: several operands, chains, many of them, and those that nobody waits for.

use super::{
    Failure, Harness, Verdict,
    memory::stays,
    rig::{Rig, expect, expect_bytes, keyed, scribble, xor},
    xor::START_FAILED,
};
use crate::ensure;
use contigo::{Align, Backend, DevBuf, Error, Pool, Region, SyncScope};
use fastrand::Rng;
use std::{mem, thread, time::Duration};

const WAIT: Duration = Duration::from_millis(20);

/// Two inputs and an output, in their order.
///
/// # Errors
/// [`Failure`].
pub fn three_operands<H: Harness>(harness: &H) -> Verdict {
    let mut rng = Rng::with_seed(21);
    let rig = Rig::new(harness, 3, 640)?;
    let mut engine = rig.engine::<3>()?;
    let [mut left, mut right, mut output] = rig.buffers()?;
    for _ in 0..16 {
        let (first, second) = (scribble(&mut rng, &mut left)?, scribble(&mut rng, &mut right)?);
        let job = engine.start([left.to_device(..), right.to_device(..), output.from_device(..)], &1)?;
        [left, right, output] = job.wait(WAIT)?.buffers;
        expect("the output of two inputs", &output, &xor(&first, &second, 1))?;
        expect("the first input", &left, &first)?;
        expect("the second input", &right, &second)?;
    }
    Ok(())
}

/// One job's output is the next one's input: no sync between them, and only the end of the chain
/// returns to the CPU.
///
/// # Errors
/// [`Failure`].
pub fn chaining_needs_no_sync<H: Harness>(harness: &H) -> Verdict {
    let mut rng = Rng::with_seed(22);
    let rig = Rig::new(harness, 3, 512)?;
    let (mut first, mut second) = (rig.engine::<2>()?, rig.engine::<2>()?);
    let [mut input, mut middle, mut output] = rig.buffers()?;
    let per_sync = u64::from(!harness.port().coherent);
    for _ in 0..16 {
        let bytes = scribble(&mut rng, &mut input)?;
        scribble(&mut rng, &mut middle)?;
        let before = rig.syncs();
        let [dev_input, dev_middle] = first.start([input.to_device(..), middle.from_device(..)], &0x0F)?.wait_device(WAIT)?.buffers;
        let handed_over = rig.syncs();
        ensure!(handed_over == before + 2 * per_sync, "{} syncs for two operands", handed_over - before);
        let [dev_middle, dev_output] = second.start([dev_middle.to_device(..), output.from_device(..)], &0xF0)?.wait_device(WAIT)?.buffers;
        let chained = rig.syncs();
        ensure!(chained == handed_over + per_sync, "{} syncs for one new operand", chained - handed_over);
        input = dev_input.into_cpu()?;
        ensure!(rig.syncs() == chained, "a sync for a buffer that no device wrote");
        (middle, output) = (dev_middle.into_cpu()?, dev_output.into_cpu()?);
        ensure!(rig.syncs() == chained + 2 * per_sync, "{} syncs for two outputs", rig.syncs() - chained);
        expect("the middle of the chain", &middle, &keyed(&bytes, 0x0F))?;
        expect("the end of the chain", &output, &keyed(&bytes, 0xFF))?;
    }
    Ok(())
}

/// A buffer that stays the device's is read, then written, and in other parts of it: the CPU sees
/// all of what was written, and loses nothing beside it.
///
/// # Errors
/// [`Failure`].
pub fn chained_buffers_change_their_part<H: Harness>(harness: &H) -> Verdict {
    let mut rng = Rng::with_seed(23);
    let rig = Rig::new(harness, 2, 512)?;
    let mut engine = rig.engine::<1>()?;
    let mut copier = rig.engine::<2>()?;
    let [mut buffer, mut other] = rig.buffers()?;
    for _ in 0..32 {
        let mut bytes = scribble(&mut rng, &mut buffer)?;
        let others = scribble(&mut rng, &mut other)?;
        let (start, len) = (rng.usize(..200), 1 + rng.usize(..200));
        // First the device reads it, or writes it; then it writes other parts of what it was given.
        let (mut held, dev_other): (DevBuf<'_>, DevBuf<'_>) = if rng.bool() {
            let job = copier.start([buffer.to_device(start..start + len), other.from_device(..len)], &0)?;
            let [held, other] = job.wait_device(WAIT)?.buffers;
            (held, other)
        } else {
            let job = copier.start([other.to_device(..len), buffer.from_device(start..start + len)], &0)?;
            let [other, held] = job.wait_device(WAIT)?.buffers;
            copy(&mut bytes, start, others.get(..len).unwrap_or_default());
            (held, other)
        };
        for key in [0x21, 0x43] {
            let from = rng.usize(..len);
            let to = rng.usize(from..len) + 1;
            [held] = engine.start([held.in_out(from..to)], &key)?.wait_device(WAIT)?.buffers;
            let part = keyed(bytes.get(start + from..start + to).unwrap_or_default(), key);
            copy(&mut bytes, start + from, &part);
        }
        (buffer, other) = (held.into_cpu()?, dev_other.into_cpu()?);
        expect(&format!("a buffer whose bytes {start}..{} were a device's for three jobs", start + len), &buffer, &bytes)?;
    }
    Ok(())
}

fn copy(bytes: &mut [u8], at: usize, from: &[u8]) {
    bytes.get_mut(at..at + from.len()).unwrap_or_default().copy_from_slice(from);
}

/// A job whose start fails after the doorbell gives its buffers back. The device may have written
/// by then, so the CPU's view must agree with memory: a stale line would change under a view.
///
/// # Errors
/// [`Failure`].
pub fn a_start_that_fails_leaves_no_stale_line<H: Harness>(harness: &H) -> Verdict {
    let mut rng = Rng::with_seed(27);
    let rig = Rig::new(harness, 2, 512)?;
    let (mut works, mut fails) = (rig.engine::<2>()?, rig.engine_that_fails::<2>()?);
    let [mut input, mut output] = rig.buffers()?;
    for round in 0..8 {
        let bytes = scribble(&mut rng, &mut input)?;
        scribble(&mut rng, &mut output)?;
        // Every second time the operands are the device's already.
        let operands = if round % 2 == 0 {
            [input.to_device(..), output.from_device(..)]
        } else {
            let [input, output] = works.start([input.to_device(..), output.from_device(..)], &2)?.wait_device(WAIT)?.buffers;
            [input.to_device(..), output.from_device(..)]
        };
        let Err(failed) = fails.start(operands, &4) else { return Err(Failure::Wrong("a start that fails did not".into())) };
        ensure!(failed.error == START_FAILED && !fails.is_busy(), "{failed}");
        let buffers = failed.buffers.ok_or(Failure::Wrong("the device had stopped, and the buffers are gone".into()))?;
        let mut back = Vec::new();
        for operand in buffers {
            back.push(match operand.into_buf() {
                Ok(buffer) => buffer,
                Err(held) => held.into_cpu()?,
            });
        }
        let pair: [_; 2] = back.try_into().map_err(|_| Failure::Wrong("not two buffers".into()))?;
        [input, output] = pair;
        expect("the input of a start that failed", &input, &bytes)?;
        expect("the output of a start that failed, written all the same", &output, &keyed(&bytes, 4))?;
    }
    Ok(())
}

/// A thousand jobs on changing parts: every result is right, nothing is copied, nothing stays
/// behind.
///
/// # Errors
/// [`Failure`].
pub fn a_thousand_jobs<H: Harness>(harness: &H) -> Verdict {
    const JOBS: u64 = 1_000;
    let mut rng = Rng::with_seed(24);
    let rig = Rig::new(harness, 2, 384)?;
    let mut engine = rig.engine::<2>()?;
    let [mut input, mut output] = rig.buffers()?;
    for number in 0..JOBS {
        let bytes = scribble(&mut rng, &mut input)?;
        let len = rng.usize(1..=bytes.len());
        let (from, to) = (rng.usize(..=bytes.len() - len), rng.usize(..=bytes.len() - len));
        let key = rng.u8(..);
        let mut expected = scribble(&mut rng, &mut output)?;
        let job = engine.start([input.to_device(from..from + len), output.from_device(to..to + len)], &key)?;
        [input, output] = job.wait(WAIT)?.buffers;
        copy(&mut expected, to, &keyed(bytes.get(from..from + len).unwrap_or_default(), key));
        expect(&format!("job {number}, {len} bytes from {from} to {to}"), &output, &expected)?;
    }
    let jobs = engine.jobs();
    ensure!((jobs.started, jobs.completed, jobs.stopped) == (JOBS, JOBS, 0), "{jobs:?}");
    ensure!(rig.bytes_copied() == 0, "{} bytes were copied", rig.bytes_copied());
    Ok(())
}

/// A job that was forgotten leaves its engine busy, its slots claimed, and the block mapped when
/// its region is dropped; the engine recovers, the slots do not.
///
/// # Errors
/// [`Failure`].
pub fn a_forgotten_job_keeps_its_memory<H: Harness>(harness: &H) -> Verdict {
    let backend = harness.open(4096)?;
    let mapping = backend.mapping();
    let region = Region::new(backend)?;
    let whole = mapping.scope == SyncScope::Whole && !harness.port().coherent;
    {
        let rig = Rig::new(harness, 1, 512)?;
        let mut engine = rig.engine::<1>()?;
        let pool = Pool::<4>::new(region.carve(4 * 512, Align::MIN)?, 512)?;
        if whole {
            mem::forget(pool.take()?);
        } else {
            mem::forget(engine.start([pool.take()?.in_out(..)], &1)?);
            ensure!(engine.is_busy(), "the engine forgot its job, too");
            let [spare] = rig.buffers()?;
            match engine.start([spare.in_out(..)], &1) {
                Err(refused) => ensure!(refused.error == Error::Busy, "a second job beside a forgotten one: {refused}"),
                Ok(_) => return Err(Failure::Wrong("a second job was started beside a forgotten one".into())),
            }
        }
        ensure!(pool.taken() == 1, "{} slots are taken", pool.taken());
        engine.recover()?;
        ensure!(!engine.is_busy(), "busy after recover");
        let rest: Vec<_> = (0..4).map_while(|_| pool.take().ok()).collect();
        ensure!(rest.len() == 3 && pool.taken() == 4, "{} slots were left", rest.len());
    }
    drop(region);
    stays(harness, mapping)
}

/// Two threads with an engine each, on neighbouring slots of one pool: their syncs do not mix.
///
/// # Errors
/// [`Failure`].
pub fn two_threads_at_once<H: Harness>(harness: &H) -> Verdict {
    let region = Region::new(harness.open(8192)?)?;
    if region.scope() == SyncScope::Whole && !harness.port().coherent {
        return Ok(()); // One buffer a block: there is nothing to share.
    }
    let rig = Rig::new(harness, 1, 128)?;
    let pool = Pool::<8>::new(region.carve(8 * 384, Align::MIN)?, 384)?;
    let work = |seed| -> Verdict {
        let (mut rng, mut engine) = (Rng::with_seed(seed), rig.engine::<2>()?);
        for _ in 0..100 {
            let (mut input, mut output) = (pool.take()?, pool.take()?);
            let bytes = scribble(&mut rng, &mut input)?;
            scribble(&mut rng, &mut output)?;
            let job = engine.start([input.to_device(..), output.from_device(..)], &0x18)?;
            let [input, output] = job.wait(WAIT)?.buffers;
            expect("an input beside another thread", &input, &bytes)?;
            expect("an output beside another thread", &output, &keyed(&bytes, 0x18))?;
            expect_bytes("the same, again", output.view()?, &keyed(&bytes, 0x18))?;
        }
        Ok(())
    };
    let both = thread::scope(|scope| {
        let other = scope.spawn(|| work(25));
        let mine = work(26);
        other.join().map_or(Err(Failure::Wrong("the other thread panicked".into())), |verdict| verdict.and(mine))
    });
    both?;
    ensure!(pool.taken() == 0, "{} slots are still taken", pool.taken());
    Ok(())
}
