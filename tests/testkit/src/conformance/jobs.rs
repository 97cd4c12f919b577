//! Checks of jobs: several operands, chains, many of them, and those that no call waits for.

use super::{
    Failure, Harness, Verdict,
    memory::stays,
    rig::{Rig, WAIT, expect, expect_bytes, keyed, on_the_device, scribble, xor},
    xor::START_FAILED,
};
use crate::ensure;
use contigo::{Backend, DevBuf, Error, Region, mem::SyncScope};
use fastrand::Rng;
use std::{mem, thread};

/// Two inputs and an output, in their order.
///
/// # Errors
/// [`Failure`].
pub fn three_operands<H: Harness>(harness: &H) -> Verdict {
    let mut rng = Rng::with_seed(21);
    let rig = Rig::new(harness, 3, 640)?;
    let mut queue = rig.queue::<3>()?;
    let [mut left, mut right, mut output] = rig.buffers()?;
    for _ in 0..16 {
        let (first, second) = (scribble(&mut rng, &mut left)?, scribble(&mut rng, &mut right)?);
        [left, right, output] = queue
            .run([left.to_device(..), right.to_device(..), output.from_device(..)], &[1], WAIT)?
            .buffers;
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
    let (mut first, mut second) = (rig.queue::<2>()?, rig.queue::<2>()?);
    let [mut input, mut middle, mut output] = rig.buffers()?;
    let per_sync = u64::from(!harness.port().coherent);
    for _ in 0..16 {
        let bytes = scribble(&mut rng, &mut input)?;
        scribble(&mut rng, &mut middle)?;
        let before = rig.syncs();
        let [dev_input, dev_middle] =
            on_the_device(&mut first, [input.to_device(..), middle.from_device(..)], 0x0F)?;
        let handed_over = rig.syncs();
        ensure!(
            handed_over == before + 2 * per_sync,
            "{} syncs for two operands",
            handed_over - before
        );
        let [dev_middle, dev_output] =
            on_the_device(&mut second, [dev_middle.to_device(..), output.from_device(..)], 0xF0)?;
        let chained = rig.syncs();
        ensure!(
            chained == handed_over + per_sync,
            "{} syncs for one new operand",
            chained - handed_over
        );
        input = dev_input.into_cpu()?;
        ensure!(rig.syncs() == chained, "a sync for a buffer that no device wrote");
        (middle, output) = (dev_middle.into_cpu()?, dev_output.into_cpu()?);
        ensure!(
            rig.syncs() == chained + 2 * per_sync,
            "{} syncs for two outputs",
            rig.syncs() - chained
        );
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
    let mut queue = rig.queue::<1>()?;
    let mut copier = rig.queue::<2>()?;
    let [mut buffer, mut other] = rig.buffers()?;
    for _ in 0..32 {
        let mut bytes = scribble(&mut rng, &mut buffer)?;
        let others = scribble(&mut rng, &mut other)?;
        let (start, len) = (rng.usize(..200), 1 + rng.usize(..200));
        // First the device reads it, or writes it; then it writes other parts of what it was given.
        let (mut held, dev_other): (DevBuf, DevBuf) = if rng.bool() {
            let [held, other] = on_the_device(
                &mut copier,
                [buffer.to_device(start..start + len), other.from_device(..len)],
                0,
            )?;
            (held, other)
        } else {
            let [other, held] = on_the_device(
                &mut copier,
                [other.to_device(..len), buffer.from_device(start..start + len)],
                0,
            )?;
            copy(&mut bytes, start, others.get(..len).unwrap_or_default());
            (held, other)
        };
        for key in [0x21, 0x43] {
            let from = rng.usize(..len);
            let to = rng.usize(from..len) + 1;
            [held] = on_the_device(&mut queue, [held.in_out(from..to)], key)?;
            let part = keyed(bytes.get(start + from..start + to).unwrap_or_default(), key);
            copy(&mut bytes, start + from, &part);
        }
        (buffer, other) = (held.into_cpu()?, dev_other.into_cpu()?);
        expect(
            &format!(
                "a buffer whose bytes {start}..{} were a device's for three jobs",
                start + len
            ),
            &buffer,
            &bytes,
        )?;
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
    let (mut works, mut fails) = (rig.queue::<2>()?, rig.queue_that_fails::<2>()?);
    let [mut input, mut output] = rig.buffers()?;
    for round in 0..8 {
        let bytes = scribble(&mut rng, &mut input)?;
        scribble(&mut rng, &mut output)?;
        // Every second time the operands are the device's already.
        let operands = if round % 2 == 0 {
            [input.to_device(..), output.from_device(..)]
        } else {
            let [input, output] =
                on_the_device(&mut works, [input.to_device(..), output.from_device(..)], 2)?;
            [input.to_device(..), output.from_device(..)]
        };
        let Err(failed) = fails.submit(operands, &[4]) else {
            return Err(Failure::Wrong("a start that fails did not".into()));
        };
        ensure!(
            failed.error == START_FAILED && fails.is_empty() && !fails.is_stopped(),
            "{failed}"
        );
        let buffers = failed
            .buffers
            .ok_or(Failure::Wrong("the device had stopped, and the buffers are gone".into()))?;
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
        expect(
            "the output of a start that failed, written all the same",
            &output,
            &keyed(&bytes, 4),
        )?;
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
    let mut queue = rig.queue::<2>()?;
    let [mut input, mut output] = rig.buffers()?;
    for number in 0..JOBS {
        let bytes = scribble(&mut rng, &mut input)?;
        let len = rng.usize(1..=bytes.len());
        let (from, to) = (rng.usize(..=bytes.len() - len), rng.usize(..=bytes.len() - len));
        let key = rng.u8(..);
        let mut expected = scribble(&mut rng, &mut output)?;
        [input, output] = queue
            .run(
                [input.to_device(from..from + len), output.from_device(to..to + len)],
                &[key.into()],
                WAIT,
            )?
            .buffers;
        copy(&mut expected, to, &keyed(bytes.get(from..from + len).unwrap_or_default(), key));
        expect(&format!("job {number}, {len} bytes from {from} to {to}"), &output, &expected)?;
    }
    let counts = queue.counts();
    ensure!((counts.pushed, counts.completed, counts.stopped) == (JOBS, JOBS, 0), "{counts:?}");
    ensure!(rig.bytes_copied() == 0, "{} bytes were copied", rig.bytes_copied());
    Ok(())
}

/// A queue that was forgotten keeps its job's slot claimed, and the block mapped when its region is
/// dropped; the device can be given to another queue.
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
        let pool = region.pool(4, 512)?;
        let [mut spare] = rig.buffers()?;
        if whole {
            mem::forget(pool.take()?);
        } else {
            let mut queue = rig.queue::<1>()?;
            queue.submit([pool.take()?.in_out(..)], &[1])?;
            let refused = queue
                .run([spare.in_out(..)], &[1], WAIT)
                .err()
                .ok_or(Failure::Wrong("a second job was run".into()))?;
            ensure!(
                refused.error == Error::Busy && queue.len() == 1,
                "a second job beside the first: {refused}"
            );
            let [operand] =
                refused.buffers.ok_or(Failure::Wrong("a refused job kept its buffers".into()))?;
            spare = operand.into_cpu()?;
            mem::forget(queue);
        }
        ensure!(pool.taken() == 1, "{} slots are taken", pool.taken());
        let _spare = rig.queue::<1>()?.run([spare.in_out(..)], &[1], WAIT)?;
        let rest: Vec<_> = (0..4).map_while(|_| pool.take().ok()).collect();
        ensure!(rest.len() == 3 && pool.taken() == 4, "{} slots were left", rest.len());
    }
    drop(region);
    stays(harness, mapping)
}

/// Two threads with a queue each, on neighbouring slots of one pool: their syncs do not mix.
///
/// # Errors
/// [`Failure`].
pub fn two_threads_at_once<H: Harness>(harness: &H) -> Verdict {
    let region = Region::new(harness.open(8192)?)?;
    if region.scope() == SyncScope::Whole && !harness.port().coherent {
        return Ok(()); // One buffer a block: there is nothing to share.
    }
    let rig = Rig::new(harness, 1, 128)?;
    let pool = region.pool(8, 384)?;
    let work = |seed| -> Verdict {
        let (mut rng, mut queue) = (Rng::with_seed(seed), rig.queue::<2>()?);
        for _ in 0..100 {
            let (mut input, mut output) = (pool.take()?, pool.take()?);
            let bytes = scribble(&mut rng, &mut input)?;
            scribble(&mut rng, &mut output)?;
            let [input, output] =
                queue.run([input.to_device(..), output.from_device(..)], &[0x18], WAIT)?.buffers;
            expect("an input beside another thread", &input, &bytes)?;
            expect("an output beside another thread", &output, &keyed(&bytes, 0x18))?;
            expect_bytes("the same, again", output.view()?, &keyed(&bytes, 0x18))?;
        }
        Ok(())
    };
    let both = thread::scope(|scope| {
        let other = scope.spawn(|| work(25));
        let mine = work(26);
        other.join().map_or(Err(Failure::Wrong("the other thread panicked".into())), |verdict| {
            verdict.and(mine)
        })
    });
    both?;
    ensure!(pool.taken() == 0, "{} slots are still taken", pool.taken());
    Ok(())
}
