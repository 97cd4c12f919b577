//! Checks of jobs: several operands, chains, many of them, and those that no call waits for.
#![allow(clippy::indexing_slicing, reason = "a check that panics has failed")]

use super::memory::stays;
use super::rig::{Rig, WAIT, expect, expect_bytes, kept, keyed, on_the_device, scribble, xor};
use super::xor::START_FAILED;
use super::{Failure, Harness, Verdict};
use crate::ensure;
use contigo::mem::SyncScope;
use contigo::{Backend, DevBuf, Error, Operand, Region};
use fastrand::Rng;
use std::{mem, thread};

/// Two inputs and an output, in their order.
pub fn three_operands<H: Harness>(harness: &H) -> Verdict {
    let mut rng = Rng::with_seed(21);
    let rig = Rig::new(harness, 3, 640)?;
    let mut queue = rig.queue::<3>()?;
    let [mut left, mut right, mut output] = rig.buffers()?;
    for _ in 0..16 {
        let (first, second) = (scribble(&mut rng, &mut left)?, scribble(&mut rng, &mut right)?);
        let operands = [left.to_device(..), right.to_device(..), output.from_device(..)];
        [left, right, output] = queue.run(operands, &[1], WAIT)?.buffers;
        expect("the output of two inputs", &output, &xor(&first, &second, 1))?;
        expect("the first input", &left, &first)?;
        expect("the second input", &right, &second)?;
    }
    Ok(())
}

/// One job's output is the next one's input: no sync between them, and only the end of the chain
/// returns to the CPU.
pub fn chaining_needs_no_sync<H: Harness>(harness: &H) -> Verdict {
    let mut rng = Rng::with_seed(22);
    let rig = Rig::new(harness, 3, 512)?;
    let (mut first, mut second) = (rig.queue::<2>()?, rig.queue::<2>()?);
    let [mut input, mut middle, mut output] = rig.buffers()?;
    let per_sync = u64::from(!harness.port().coherent);
    for _ in 0..16 {
        let bytes = scribble(&mut rng, &mut input)?;
        scribble(&mut rng, &mut middle)?;
        scribble(&mut rng, &mut output)?;
        let mut before = rig.syncs();
        let mut made = |what, expected| -> Verdict {
            let syncs = rig.syncs() - before;
            before += syncs;
            ensure!(syncs == expected * per_sync, "{syncs} syncs for {what}");
            Ok(())
        };
        let [dev_input, dev_middle] =
            on_the_device(&mut first, [input.to_device(..), middle.from_device(..)], 0x0F)?;
        made("two operands", 2)?;
        let [dev_middle, dev_output] =
            on_the_device(&mut second, [dev_middle.to_device(..), output.from_device(..)], 0xF0)?;
        made("one new operand", 1)?;
        input = dev_input.into_cpu()?;
        made("a buffer that no device wrote", 0)?;
        (middle, output) = (dev_middle.into_cpu()?, dev_output.into_cpu()?);
        made("two outputs", 2)?;
        expect("the middle of the chain", &middle, &keyed(&bytes, 0x0F))?;
        expect("the end of the chain", &output, &keyed(&bytes, 0xFF))?;
    }
    Ok(())
}

/// A buffer that stays the device's is read, then written, and in other parts of it: the CPU sees
/// all of what was written, and loses nothing beside it.
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
        let range = start..start + len;
        let (mut held, dev_other): (DevBuf, DevBuf) = if rng.bool() {
            let operands = [buffer.to_device(range), other.from_device(..len)];
            on_the_device(&mut copier, operands, 0)?.into()
        } else {
            let operands = [other.to_device(..len), buffer.from_device(range)];
            let [other, held] = on_the_device(&mut copier, operands, 0)?;
            copy(&mut bytes, start, &others[..len]);
            (held, other)
        };
        for key in [0x21, 0x43] {
            let from = rng.usize(..len);
            let to = rng.usize(from..len) + 1;
            [held] = on_the_device(&mut queue, [held.in_out(from..to)], key)?;
            let part = keyed(&bytes[start + from..start + to], key);
            copy(&mut bytes, start + from, &part);
        }
        (buffer, other) = (held.into_cpu()?, dev_other.into_cpu()?);
        let what = format!("a buffer whose {len} bytes from {start} were a device's for 3 jobs");
        expect(&what, &buffer, &bytes)?;
    }
    Ok(())
}

fn copy(bytes: &mut [u8], at: usize, from: &[u8]) {
    bytes[at..at + from.len()].copy_from_slice(from);
}

/// A job whose start fails after the doorbell gives its buffers back. The device may have written
/// by then, so the CPU's view must agree with memory: a stale line would change under a view.
pub fn a_start_that_fails_leaves_no_stale_line<H: Harness>(harness: &H) -> Verdict {
    let mut rng = Rng::with_seed(27);
    let rig = Rig::new(harness, 2, 512)?;
    let (mut works, mut fails) = (rig.queue::<2>()?, rig.queue_that_fails::<2>()?);
    let [mut input, mut output] = rig.buffers()?;
    for round in 0..8 {
        let bytes = scribble(&mut rng, &mut input)?;
        scribble(&mut rng, &mut output)?;
        // Every second time the operands are the device's already.
        let mut operands = [input.to_device(..), output.from_device(..)];
        if round % 2 == 1 {
            let [input, output] = on_the_device(&mut works, operands, 2)?;
            operands = [input.to_device(..), output.from_device(..)];
        }
        let Err(failed) = fails.submit(operands, &[4]) else {
            return Err(Failure::Wrong("a start that fails did not".into()));
        };
        let is_idle = fails.is_empty() && !fails.is_stopped();
        ensure!(failed.error == START_FAILED && is_idle, "{failed}");
        let [first, second] = kept(failed.buffers)?.map(Operand::into_cpu);
        (input, output) = (first?, second?);
        expect("the input of a start that failed", &input, &bytes)?;
        expect("its output, written all the same", &output, &keyed(&bytes, 4))?;
    }
    Ok(())
}

/// A thousand jobs on changing parts: every result is right, nothing is copied, nothing stays
/// behind.
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
        let operands = [input.to_device(from..from + len), output.from_device(to..to + len)];
        [input, output] = queue.run(operands, &[key.into()], WAIT)?.buffers;
        copy(&mut expected, to, &keyed(&bytes[from..from + len], key));
        expect(&format!("job {number}, {len} bytes from {from} to {to}"), &output, &expected)?;
    }
    let counts = queue.counts();
    ensure!((counts.pushed, counts.completed, counts.stopped) == (JOBS, JOBS, 0), "{counts:?}");
    ensure!(rig.bytes_copied() == 0, "{} bytes were copied", rig.bytes_copied());
    Ok(())
}

/// A queue that was forgotten keeps its job's slot claimed, and the block mapped when its region is
/// dropped; the device can be given to another queue.
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
            let [operand] = kept(refused.buffers)?;
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
    thread::scope(|scope| {
        let other = scope.spawn(|| work(25));
        work(26)?;
        other.join().map_err(|_| Failure::Wrong("the other thread panicked".into()))?
    })?;
    ensure!(pool.taken() == 0, "{} slots are still taken", pool.taken());
    Ok(())
}
