//! Queues: jobs that are refused for want of a place, and devices that tell what cannot be.

use contigo::{Align, Completion, DevSlice, Driver, Error, OperandSpec, Pool, Port, Queue, Region, Result, sim::SimBoard};
use std::time::Duration;

const SLOT: usize = 64;

#[test]
fn queues_that_refuse() {
    that_refuse();
}

/// A device that touches nothing, and answers what the test says.
struct Scripted {
    port: Port,
    poll: Result<Option<Completion>>,
}

// SAFETY: it touches no memory.
unsafe impl Driver for Scripted {
    fn name(&self) -> &'static str {
        "scripted"
    }
    fn port(&self) -> &Port {
        &self.port
    }
    fn addr_bits(&self) -> u32 {
        64
    }
    fn operands(&self) -> &[OperandSpec] {
        const { &[OperandSpec::from_device().at_most(SLOT)] }
    }
    fn depth(&self) -> usize {
        2
    }
    fn check(&self, _: &[DevSlice], _: &[u32]) -> Result<()> {
        Ok(())
    }
    unsafe fn submit(&mut self, _: usize, _: &[DevSlice], _: &[u32]) -> Result<()> {
        Ok(())
    }
    fn poll(&mut self, _: Duration) -> Result<Option<Completion>> {
        self.poll
    }
    fn stop(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Every refusal leaves its buffers with the caller or in the queue, and dropping both empties the
/// pool's count.
pub(super) fn that_refuse() -> Vec<Error> {
    let board = SimBoard::new(1);
    let region = Region::new(board.memory(8192).unwrap()).unwrap();
    let pool = Pool::<4>::new(region.carve(8 * SLOT, Align::LINE).unwrap(), 2 * SLOT).unwrap();
    let output = |len| [pool.take().unwrap().from_device(..len)];
    let queue = |poll| Queue::<_, 8, 1>::new(Scripted { port: board.port(), poll }).unwrap();

    let mut idle = queue(Ok(None));
    let long = idle.push_words(output(SLOT + 1), &[]).unwrap_err();
    assert_eq!((long.operand, long.buffers.is_some(), idle.len()), (Some(0), true, 0));
    assert_eq!(long.error, Error::OperandTooLong { index: 0, have_bytes: SLOT + 1, max_bytes: SLOT });
    let mut provoked = vec![long.error];
    drop(long);
    for slot in 0..2 {
        assert_eq!(idle.push_words(output(SLOT), &[]).unwrap(), slot);
    }
    let full = idle.push_words(output(SLOT), &[]).unwrap_err();
    assert_eq!((full.error, full.buffers.is_some()), (Error::QueueFull { depth: 2 }, true));
    provoked.push(full.error);
    drop(full);
    idle.stop().unwrap();
    let stopped = idle.push_words(output(SLOT), &[]).unwrap_err();
    assert_eq!((stopped.error, stopped.buffers.is_some()), (Error::QueueStopped { in_flight: 2 }, true));
    provoked.push(stopped.error);
    drop((stopped, idle));
    assert_eq!(pool.taken(), 0);

    let (slot, device) = (1, "scripted");
    for (poll, expected) in [
        // No such job.
        (Ok(Some(Completion::of(slot))), Error::NoSuchJob { device, slot }),
        // More than it was given.
        (Ok(Some(Completion::of(0).with_bytes(SLOT + 1))), Error::BadCompletion { device, slot: 0, bytes: SLOT + 1, most_bytes: SLOT }),
        (Err(Error::EndedByReset { device }), Error::EndedByReset { device }),
    ] {
        let mut queue = queue(poll);
        queue.push_words(output(SLOT), &[]).unwrap();
        let failed = queue.next_words(Duration::ZERO).unwrap_err();
        assert_eq!((failed.error, failed.buffers.is_some(), queue.is_stopped()), (expected, false, true));
        assert_eq!(queue.take_back().map(|job| job.slot), Some(0));
        assert_eq!(pool.taken(), 0);
        provoked.push(failed.error);
    }
    provoked
}
