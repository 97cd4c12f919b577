//! A burst's caches: one call for all its buffers, and none that loses a byte.

use super::{FAULT, Rig, SLOT, at, ends_at_once, look, taken_back};
use contigo::sim::SimBoard;
use contigo::{Direction, Error, Region};
use contigo_testkit::conformance::Harness;
use contigo_testkit::conformance::boards::OnSim;
use contigo_testkit::conformance::mutant::{Mutant, Mutation, REFUSAL};
use std::time::Duration;

/// The bytes that the CPU has written into a buffer whose doorbell is owed.
const BYTES: [u8; SLOT] = [0x5A; SLOT];

#[test]
fn one_call_before_the_doorbell_and_one_after_the_ends() {
    let rig = Rig::new();
    let (mut queue, script) = rig.queue(4, true);
    for (waits, expected) in [(false, [4, 4]), (true, [0, 1])] {
        script.borrow_mut().waits = waits;
        let bufs: Vec<_> = (0..4).map(|_| rig.pool.take().unwrap()).collect();
        let before = rig.region.stats().syncs;
        queue.hold_doorbell();
        for buf in bufs {
            queue.submit([buf.from_device(..)], &[]).unwrap();
        }
        let submitted = rig.region.stats().syncs - before;
        queue.ring_doorbell().unwrap();
        assert_eq!([submitted, rig.region.stats().syncs - before], expected);
        let before = rig.region.stats().syncs;
        ends_at_once(&script, &[0, 1, 2, 3]);
        let jobs: Vec<_> = (0..4).map(|_| look(&mut queue).unwrap().job % 4).collect();
        assert_eq!((jobs, rig.region.stats().syncs - before), (vec![0, 1, 2, 3], 1));
    }
}

#[test]
fn stop_keeps_what_the_cpu_wrote_before_an_unrung_doorbell() {
    let harness = OnSim::new(1, SimBoard::port, contigo::sim::SimSpec::default());
    let rig = Rig::on(harness.board(), Region::new(harness.open(4096).unwrap()).unwrap());
    let (mut queue, script) = rig.queue(4, true);
    script.borrow_mut().waits = true;
    let mut buf = rig.pool.take().unwrap();
    buf.view_mut().unwrap().copy_from_slice(&BYTES);
    queue.hold_doorbell();
    queue.submit([buf.from_device(..)], &[]).unwrap();
    queue.stop().unwrap();
    assert_eq!(script.borrow().doorbells, 0);
    let [buf] = queue.take_back().unwrap().unwrap().buffers;
    // Straight to another device, which has to see it.
    // SAFETY: no device receives the address.
    let buf = unsafe { buf.hand_over(queue.port(), 64, .., Direction::ToDevice) }.unwrap();
    let mut seen = [0; SLOT];
    harness.probe(buf.slice().addr, &mut seen).unwrap();
    assert_eq!(seen, BYTES);
    assert_eq!(buf.into_cpu().unwrap().view::<u8>().unwrap(), BYTES);
}

#[test]
fn refused_call_before_the_doorbell_rings_nothing_and_loses_nothing() {
    // The first two calls are the region's own. A kernel that was busy is asked once more.
    for (mutation, rung) in [(Mutation::RefusedOnce(2), true), (Mutation::RefusedFrom(2), false)] {
        let board = SimBoard::new(1);
        let memory = Mutant::new(board.memory(4096).unwrap(), mutation);
        let rig = Rig::on(&board, Region::new(memory).unwrap());
        let (mut queue, script) = rig.queue(4, true);
        script.borrow_mut().waits = true;
        queue.hold_doorbell();
        for _ in 0..2 {
            let mut buf = rig.pool.take().unwrap();
            buf.view_mut().unwrap().copy_from_slice(&BYTES);
            queue.submit([buf.from_device(..)], &[]).unwrap();
        }
        let error = queue.ring_doorbell().map_err(|failed| failed.error);
        assert_eq!(error, if rung { Ok(()) } else { Err(REFUSAL) });
        assert_eq!((queue.len(), script.borrow().doorbells), (2, u32::from(rung)));
        while let Some(job) = queue.take_back().unwrap() {
            let [buf] = job.buffers;
            assert_eq!(buf.into_cpu().unwrap().view::<u8>().unwrap(), BYTES);
        }
        assert_eq!(rig.pool.taken(), if rung { 2 } else { 0 });
    }
}

#[test]
fn refused_call_after_the_ends_is_tried_for_each_job() {
    let board = SimBoard::new(1);
    // The region's own two, the two hand-overs, and the ends'.
    let memory = Mutant::new(board.memory(4096).unwrap(), Mutation::RefusedOnce(4));
    let rig = Rig::on(&board, Region::new(memory).unwrap());
    let (mut queue, script) = rig.queue(4, true);
    rig.submit(&mut queue, 2);
    ends_at_once(&script, &[0, 1]);
    assert!(look(&mut queue).is_some() && look(&mut queue).is_some());
}

#[test]
fn ends_at_hand_come_after_a_stop_and_are_not_taken_back() {
    for clears in [false, true] {
        let rig = Rig::new();
        let (mut queue, script) = rig.queue(4, true);
        let bufs = rig.submit(&mut queue, 4);
        ends_at_once(&script, &[0, 1, 2]);
        assert_eq!(at(&look(&mut queue).unwrap()), bufs[0]);
        assert_eq!((queue.len(), queue.counts().completed), (3, 3));
        if clears {
            queue.clear().unwrap();
        } else {
            queue.stop().unwrap();
            assert_eq!(taken_back(&mut queue), [bufs[3]]);
            let left: Vec<_> = (0..2).map(|_| at(&look(&mut queue).unwrap())).collect();
            assert_eq!(left, bufs[1..3]);
        }
        assert_eq!((queue.len(), rig.pool.taken(), queue.is_stopped()), (0, 0, false));
    }
}

#[test]
fn drop_gives_back_ends_at_hand() {
    for stuck in [false, true] {
        let rig = Rig::new();
        let (mut queue, script) = rig.queue(4, true);
        rig.submit(&mut queue, 4);
        ends_at_once(&script, &[0, 1, 2]);
        drop(look(&mut queue));
        script.borrow_mut().stop = stuck.then_some(super::STUCK);
        drop(queue);
        assert_eq!(rig.pool.taken(), usize::from(stuck), "the device may have the last one");
    }
}

#[test]
fn error_comes_after_the_ends_before_it() {
    for lies in [false, true] {
        let rig = Rig::new();
        let (mut queue, script) = rig.queue(4, true);
        let bufs = rig.submit(&mut queue, 3);
        ends_at_once(&script, &[0, 1]);
        // A slot that has no job, or a fault.
        let last = if lies { Ok(Some(contigo::Completion::of(3))) } else { Err(FAULT) };
        script.borrow_mut().again.push_back(last);
        assert_eq!(at(&look(&mut queue).unwrap()), bufs[0]);
        assert!(queue.is_stopped());
        assert_eq!(at(&look(&mut queue).unwrap()), bufs[1]);
        let failed = queue.wait::<1>(Duration::ZERO).unwrap_err();
        let error = Error::NoSuchJob { device: "scripted", slot: 3 };
        assert_eq!(failed.error, if lies { error } else { FAULT });
        assert_eq!(taken_back(&mut queue), bufs[2..]);
    }
}

/// A place that is free again takes a job while ends are at hand.
#[test]
fn ends_at_hand_make_room_for_jobs_that_wait() {
    let rig = Rig::new();
    let (mut queue, script) = rig.queue(2, true);
    let bufs = rig.submit(&mut queue, 4);
    ends_at_once(&script, &[0, 1]);
    assert_eq!(at(&look(&mut queue).unwrap()), bufs[0]);
    assert_eq!(script.borrow().slots, [0, 1, 0, 1]);
    assert_eq!(at(&look(&mut queue).unwrap()), bufs[1]);
    ends_at_once(&script, &[0, 1]);
    assert_eq!(
        (at(&look(&mut queue).unwrap()), at(&look(&mut queue).unwrap())),
        (bufs[2], bufs[3])
    );
}

#[test]
fn stream_gives_back_together_what_comes_together() {
    let rig = Rig::new();
    let (driver, script) = rig.driver(8, true);
    script.borrow_mut().waits = true;
    let mut stream = contigo::Stream::new(driver, rig.pool.clone(), 8, &[]).unwrap();
    let before = rig.region.stats().syncs;
    assert_eq!(stream.start(), Ok(8));
    assert_eq!((script.borrow().doorbells, rig.region.stats().syncs - before), (1, 1));
    // The doorbells after each frame that came back.
    let mut doorbells = |slots: &[usize]| {
        ends_at_once(&script, slots);
        let rung = |_: &usize| {
            let frame = stream.next(Duration::ZERO).unwrap().unwrap();
            stream.give_back(frame.buf).unwrap();
            script.borrow().doorbells
        };
        slots.iter().map(rung).collect::<Vec<_>>()
    };
    // The device has four buffers from before, and gets the others with the last frame.
    assert_eq!(doorbells(&[0, 1, 2, 3]), [1, 1, 1, 2]);
    assert_eq!(rig.region.stats().syncs - before, 2);
    // It has one, and no more may wait than it has.
    assert_eq!(doorbells(&[4, 5, 6, 7, 0, 1, 2]), [3, 3, 4, 4, 4, 4, 5]);
}

#[test]
fn start_drops_frames_that_were_at_hand() {
    let rig = Rig::new();
    let (driver, script) = rig.driver(4, true);
    let mut stream = contigo::Stream::new(driver, rig.pool.clone(), 4, &[]).unwrap();
    stream.start().unwrap();
    ends_at_once(&script, &[0, 1, 2]);
    drop(stream.next(Duration::ZERO).unwrap().unwrap());
    stream.stop().unwrap();
    assert_eq!(stream.start(), Ok(4));
    assert!(stream.next(Duration::ZERO).unwrap().is_none());
}
