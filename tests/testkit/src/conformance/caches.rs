//! Checks of the caches: what each side sees of the other, and of its neighbours.
#![allow(clippy::indexing_slicing, reason = "a check that panics has failed")]

use super::rig::{Rig, WAIT, ended, expect, expect_bytes, kept, keyed, on_the_device, scribble};
use super::{Failure, Harness, Verdict};
use crate::ensure;
use contigo::mem::SyncScope;
use contigo::{Error, Region};
use fastrand::Rng;
use std::ops::Range;

/// Rounds for each check that is left to chance. On the simulated board a dirty line is evicted in
/// every second case, a clean one in every eighth.
const ROUNDS: usize = 64;

/// The device reads the bytes that the CPU wrote.
pub fn the_device_sees_what_the_cpu_wrote<H: Harness>(harness: &H) -> Verdict {
    let mut rng = Rng::with_seed(11);
    let rig = Rig::new(harness, 2, 1024)?;
    let mut queue = rig.queue::<2>()?;
    let [mut input, mut output] = rig.buffers()?;
    for _ in 0..ROUNDS {
        let bytes = scribble(&mut rng, &mut input)?;
        let [dev_input, dev_output] =
            on_the_device(&mut queue, [input.to_device(..), output.from_device(..)], 0)?;
        // Looked at from the bus: no return to the CPU is involved.
        let mut seen = vec![0; bytes.len()];
        harness.probe(dev_input.slice().addr, &mut seen)?;
        expect_bytes("the input, as the device sees it", &seen, &bytes)?;
        harness.probe(dev_output.slice().addr, &mut seen)?;
        expect_bytes("what the device copied", &seen, &bytes)?;
        (input, output) = (dev_input.into_cpu()?, dev_output.into_cpu()?);
        expect("the input after the job", &input, &bytes)?;
    }
    Ok(())
}

/// The CPU sees the bytes that the device wrote, also over lines that were dirty when they were
/// handed over.
pub fn the_cpu_sees_what_the_device_wrote<H: Harness>(harness: &H) -> Verdict {
    let mut rng = Rng::with_seed(12);
    let rig = Rig::new(harness, 2, 1024)?;
    let mut queue = rig.queue::<2>()?;
    let [mut input, mut output] = rig.buffers()?;
    for round in 0..ROUNDS {
        let bytes = scribble(&mut rng, &mut input)?;
        if round % 2 == 0 {
            scribble(&mut rng, &mut output)?;
        }
        [input, output] =
            queue.run([input.to_device(..), output.from_device(..)], &[0x77], WAIT)?.buffers;
        expect("the output", &output, &keyed(&bytes, 0x77))?;
        expect("the output, looked at again", &output, &keyed(&bytes, 0x77))?;
    }
    Ok(())
}

/// A buffer that the device reads and writes goes both ways, whole or in part.
pub fn in_out_goes_both_ways<H: Harness>(harness: &H) -> Verdict {
    let mut rng = Rng::with_seed(13);
    let rig = Rig::new(harness, 1, 1024)?;
    let mut queue = rig.queue::<1>()?;
    let [mut buffer] = rig.buffers()?;
    for round in 0..ROUNDS {
        let mut bytes = scribble(&mut rng, &mut buffer)?;
        let range = if round % 4 == 0 { 0..bytes.len() } else { some_range(&mut rng, bytes.len()) };
        [buffer] = queue.run([buffer.in_out(range.clone())], &[0xC3], WAIT)?.buffers;
        bytes[range.clone()].iter_mut().for_each(|byte| *byte ^= 0xC3);
        expect(&format!("in and out, bytes {range:?}"), &buffer, &bytes)?;
    }
    Ok(())
}

/// A job that reads some bytes leaves every other byte alone: of the buffer, of a neighbour that
/// the CPU owns, and of one that the device owns.
pub fn ranged_reads_touch_no_neighbour<H: Harness>(harness: &H) -> Verdict {
    neighbours(harness, false)
}

/// A job that writes some bytes leaves every other byte alone.
pub fn ranged_writes_touch_no_neighbour<H: Harness>(harness: &H) -> Verdict {
    neighbours(harness, true)
}

/// Four neighbours: the CPU's, the one whose bytes are used, the device's, and the other operand.
fn neighbours<H: Harness>(harness: &H, device_writes: bool) -> Verdict {
    let mut rng = Rng::with_seed(14);
    let rig = Rig::new(harness, 4, 512)?;
    let (mut queue, mut owner) = (rig.queue::<2>()?, rig.queue::<1>()?);
    let [mut left, mut used, mut right, mut other] = rig.buffers()?;
    for _ in 0..ROUNDS {
        let canary = scribble(&mut rng, &mut left)?;
        let mut bytes = scribble(&mut rng, &mut used)?;
        let mut others = scribble(&mut rng, &mut other)?;
        // The device has written the right neighbour, and the CPU's caches do not know it.
        let theirs = keyed(&scribble(&mut rng, &mut right)?, 0x99);
        let [held] = on_the_device(&mut owner, [right.in_out(..)], 0x99)?;

        let range = some_range(&mut rng, bytes.len());
        let len = range.len();
        let side = if device_writes { "output" } else { "input" };
        let what = |what| format!("a job on bytes {range:?} of the {side}: {what}");
        if device_writes {
            let operands = [other.to_device(..len), used.from_device(range.clone())];
            [other, used] = queue.run(operands, &[0x3C], WAIT)?.buffers;
            bytes[range.clone()].copy_from_slice(&keyed(&others[..len], 0x3C));
        } else {
            let operands = [used.to_device(range.clone()), other.from_device(..len)];
            [used, other] = queue.run(operands, &[0x3C], WAIT)?.buffers;
            others[..len].copy_from_slice(&keyed(&bytes[range.clone()], 0x3C));
        }
        expect(&what("the other operand"), &other, &others)?;
        expect(&what("the buffer"), &used, &bytes)?;
        expect(&what("the neighbour before"), &left, &canary)?;
        let mut seen = vec![0; theirs.len()];
        harness.probe(held.slice().addr, &mut seen)?;
        expect_bytes(&what("the device's neighbour behind, on the bus"), &seen, &theirs)?;
        right = held.into_cpu()?;
        expect(&what("the device's neighbour behind"), &right, &theirs)?;
    }
    Ok(())
}

/// The output ends inside a line. The CPU owns the rest of the line, which is dirty, and stays.
pub fn partly_written_lines_keep_the_rest<H: Harness>(harness: &H) -> Verdict {
    let mut rng = Rng::with_seed(15);
    let rig = Rig::new(harness, 2, 256)?;
    let mut queue = rig.queue::<2>()?;
    let [mut input, mut output] = rig.buffers()?;
    for round in 0..ROUNDS {
        let len = 1 + round * 3;
        let bytes = scribble(&mut rng, &mut input)?;
        let mut expected = scribble(&mut rng, &mut output)?;
        [input, output] =
            queue.run([input.to_device(..len), output.from_device(..len)], &[5], WAIT)?.buffers;
        expected[..len].copy_from_slice(&keyed(&bytes[..len], 5));
        expect(&format!("an output of {len} bytes"), &output, &expected)?;
    }
    Ok(())
}

/// A buffer is split: one half is the device's while the CPU writes the other. Where the cut is
/// inside a line, the half that the device would write is refused on a non-coherent port, and
/// nothing is lost.
pub fn every_cut_through_a_line_keeps_the_rest<H: Harness>(harness: &H) -> Verdict {
    let mut rng = Rng::with_seed(16);
    let rig = Rig::new(harness, 1, 512)?;
    let mut queue = rig.queue::<1>()?;
    let region = Region::new(harness.open(4096)?)?;
    let (coherent, line) = (harness.port().coherent, region.line().bytes());
    let pool = region.pool(1, 512)?;
    for cut in (line / 2..512).step_by(line / 2) {
        let mut buffer = pool.take()?;
        let bytes = scribble(&mut rng, &mut buffer)?;
        let (before, after) = bytes.split_at(cut);
        let (mut mine, theirs) = buffer.split_at(cut)?;
        match queue.submit([theirs.in_out(..)], &[0x42]) {
            Ok(_) => {
                ensure!(coherent || cut % line == 0, "a cut at byte {cut} was accepted");
                let written = scribble(&mut rng, &mut mine)?;
                let [theirs] = ended(&mut queue)?;
                expect(&format!("the CPU's half, cut at {cut}"), &mine, &written)?;
                expect(&format!("the device's half, cut at {cut}"), &theirs, &keyed(after, 0x42))?;
                drop(mine);
                ensure!(pool.taken() == 1, "the slot came back with one half of it");
            }
            Err(refused) => {
                let expected = match region.scope() {
                    SyncScope::Whole => matches!(refused.error, Error::WholeBlock { .. }),
                    _ => cut % line != 0 && matches!(refused.error, Error::SharedLine { .. }),
                };
                ensure!(expected && !coherent, "cut at {cut}: {refused}");
                let [operand] = kept(refused.buffers)?;
                let theirs =
                    operand.into_buf().map_err(|_| Failure::Wrong("it was the CPU's".into()))?;
                expect(&format!("the CPU's half, cut at {cut} and refused"), &mine, before)?;
                expect(&format!("the other half, cut at {cut} and refused"), &theirs, after)?;
                drop(mine);
            }
        }
        ensure!(pool.taken() == 0, "the slot did not come back, cut at {cut}");
    }
    Ok(())
}

/// Two buffers share a line: the device may read the one while the CPU writes the other.
pub fn half_a_line_can_be_read<H: Harness>(harness: &H) -> Verdict {
    let mut rng = Rng::with_seed(17);
    let rig = Rig::new(harness, 1, 512)?;
    let mut queue = rig.queue::<2>()?;
    let region = Region::new(harness.open(4096)?)?;
    if region.scope() == SyncScope::Whole && !harness.port().coherent {
        return Ok(()); // One buffer a block.
    }
    let pool = region.pool(1, 512)?;
    let [mut output] = rig.buffers()?;
    for cut in (1..512).step_by(25) {
        let mut buffer = pool.take()?;
        let bytes = scribble(&mut rng, &mut buffer)?;
        let (before, after) = bytes.split_at(cut);
        let (left, right) = buffer.split_at(cut)?;
        let (theirs, mut mine, read) =
            if rng.bool() { (left, right, before) } else { (right, left, after) };
        queue.submit([theirs.to_device(..), output.from_device(..read.len())], &[0x24])?;
        let written = scribble(&mut rng, &mut mine)?;
        let [theirs, back] = ended(&mut queue)?;
        output = back;
        let seen = output.view_at(..read.len())?;
        expect_bytes(&format!("bytes beside a cut at {cut}"), seen, &keyed(read, 0x24))?;
        expect(&format!("the half that was read, cut at {cut}"), &theirs, read)?;
        expect(&format!("the half that the CPU wrote, cut at {cut}"), &mine, &written)?;
    }
    Ok(())
}

/// Some bytes, at least one: short, long, at lines and beside them.
fn some_range(rng: &mut Rng, len: usize) -> Range<usize> {
    let start = if rng.bool() { rng.usize(..len) } else { rng.usize(..len) & !31 };
    let end = match rng.u8(..4) {
        0 => len,
        1 => start + 1,
        2 => (start + 1 + rng.usize(..32)).min(len),
        _ => rng.usize(start + 1..=len),
    };
    start..end
}
