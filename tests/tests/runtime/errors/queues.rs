//! Queues: jobs that are refused for want of a place, and devices that tell what cannot be.

use contigo::{Align, Completion, Error, OperandSpec, Queue, Region, sim::SimBoard};
use contigo_testkit::scripted::Scripted;
use std::time::Duration;

const SLOT: usize = 64;

#[test]
fn queues_that_refuse() {
    that_refuse();
}

/// Every refusal leaves its buffers with the caller or in the queue, and dropping both empties the
/// pool's count.
pub(super) fn that_refuse() -> Vec<Error> {
    let board = SimBoard::new(1);
    let region = Region::new(board.memory(8192).unwrap()).unwrap();
    let pool = region.pool(4, 2 * SLOT).unwrap();
    let output = |len| [pool.take().unwrap().from_device(..len)];
    let operand = OperandSpec { max_bytes: SLOT, ..OperandSpec::from_device() };
    let queue = |poll| {
        Queue::new(Scripted { depth: 2, poll, ..Scripted::new(board.port(), operand) }, 2).unwrap()
    };

    let mut idle = queue(Ok(None));
    // The bus is wider than a line, and the block ends in the middle of its word.
    let odd = SimBoard::new(1);
    let end = Region::new(odd.memory(1024 + 64).unwrap()).unwrap();
    let words = OperandSpec { word_bytes: 128, ..OperandSpec::to_device() };
    let mut wide =
        Queue::new(Scripted { depth: 2, ..Scripted::new(odd.port(), words) }, 2).unwrap();
    let mut packet = end.alloc(1024 + 64, Align::PAGE).unwrap();
    // A word in the middle, and one whose beginning alone is missing.
    for range in [1000..1024, 3..1024] {
        wide.submit([packet.to_device(range)], &[]).unwrap();
        wide.stop().unwrap();
        let [back] = wide.take_back().unwrap().unwrap().buffers;
        packet = back.into_cpu().unwrap().whole();
    }
    let beside = wide.submit([packet.to_device(1024..1087)], &[]).unwrap_err();
    let (base, word_bytes) = (end.base().raw(), 128);
    let (from, last, block_last) = (base + 1024, base + 1024 + 127, base + 1024 + 63);
    assert_eq!(
        beside.error,
        Error::ReadsBeside { index: 0, word_bytes, from, last, block_from: base, block_last }
    );
    let beside = beside.error;

    let long = idle.submit(output(SLOT + 1), &[]).unwrap_err();
    assert_eq!((long.operand, long.buffers.is_some(), idle.len()), (Some(0), true, 0));
    assert_eq!(
        long.error,
        Error::OperandTooLong { index: 0, have_bytes: SLOT + 1, max_bytes: SLOT }
    );
    let mut provoked = vec![long.error, beside];
    drop(long);
    for job in 0..2 {
        assert_eq!(idle.submit(output(SLOT), &[]).unwrap(), job);
    }
    let full = idle.submit(output(SLOT), &[]).unwrap_err();
    assert_eq!((full.error, full.buffers.is_some()), (Error::QueueFull { depth: 2 }, true));
    provoked.push(full.error);
    drop(full);
    idle.stop().unwrap();
    let stopped = idle.submit(output(SLOT), &[]).unwrap_err();
    assert_eq!(
        (stopped.error, stopped.buffers.is_some()),
        (Error::QueueStopped { in_flight: 2 }, true)
    );
    provoked.push(stopped.error);
    drop((stopped, idle));
    assert_eq!(pool.taken(), 0);

    let (slot, device) = (1, "scripted");
    for (poll, expected) in [
        // No such job.
        (Ok(Some(Completion::of(slot))), Error::NoSuchJob { device, slot }),
        // More than it was given.
        (
            Ok(Some(Completion { bytes: Some(SLOT + 1), ..Completion::of(0) })),
            Error::BadCompletion { device, slot: 0, bytes: SLOT + 1, most_bytes: SLOT },
        ),
        (Err(Error::EndedByReset { device }), Error::EndedByReset { device }),
    ] {
        let mut queue = queue(poll);
        queue.submit(output(SLOT), &[]).unwrap();
        let failed = queue.wait::<1>(Duration::ZERO).unwrap_err();
        assert_eq!(
            (failed.error, failed.buffers.is_some(), queue.is_stopped()),
            (expected, false, true)
        );
        assert_eq!(queue.take_back::<1>().unwrap().map(|cancelled| cancelled.job), Some(0));
        assert_eq!(pool.taken(), 0);
        provoked.push(failed.error);
    }
    provoked
}
