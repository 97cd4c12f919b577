//! A queue that has more jobs than its device takes.

use super::{FAULT, Rig, STUCK, at, ends, look, taken_back};
use contigo::{Completion, Error};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

#[test]
fn jobs_wait_for_the_device_in_their_order() {
    for in_order in [true, false] {
        let rig = Rig::new();
        let (mut queue, script) = rig.queue(1, in_order);
        let expected = rig.submit(&mut queue, 4);
        assert_eq!((queue.len(), queue.is_full()), (4, true));
        assert_eq!(script.borrow().slots.len(), 1, "the device has one");
        for (given, at_expected) in (2..=4).chain([4]).zip(expected) {
            ends(&script, &[0]);
            let done = look(&mut queue).unwrap();
            // The next one was given at once.
            assert_eq!((at(&done), script.borrow().slots.len()), (at_expected, given));
        }
        assert!(look(&mut queue).is_none() && queue.is_empty());
        assert_eq!(queue.counts().underruns, 1, "after the last one");
    }
}

#[test]
fn waiting_job_keeps_its_words() {
    let rig = Rig::new();
    let (mut queue, script) = rig.queue(1, true);
    for word in 0..4 {
        queue.submit([rig.operand()], &[word, 100 + word][..=usize::from(word % 2 == 0)]).unwrap();
    }
    for _ in 0..4 {
        ends(&script, &[0]);
        drop(look(&mut queue).unwrap());
    }
    assert_eq!(script.borrow().words, [vec![0, 100], vec![1], vec![2, 102], vec![3]]);
}

#[test]
fn stop_returns_jobs_in_their_order() {
    let rig = Rig::new();
    let (mut queue, script) = rig.queue(2, true);
    let submitted = rig.submit(&mut queue, 4);
    queue.stop().unwrap();
    assert_eq!(taken_back(&mut queue), submitted);
    assert_eq!((rig.pool.taken(), queue.is_stopped(), script.borrow().slots.len()), (0, false, 2));
    // And after an end of before the stop.
    let submitted = rig.submit(&mut queue, 4);
    queue.stop().unwrap();
    ends(&script, &[0]);
    assert_eq!(at(&look(&mut queue).unwrap()), submitted[0]);
    assert_eq!(script.borrow().slots.len(), 4, "a stopped device is given nothing");
    assert_eq!(taken_back(&mut queue), submitted[1..]);
}

#[test]
fn refused_waiting_job_is_told_by_the_next_poll() {
    let rig = Rig::new();
    let (mut queue, script) = rig.queue(1, true);
    let submitted = rig.submit(&mut queue, 3);
    script.borrow_mut().submit = Some(FAULT);
    ends(&script, &[0]);
    assert_eq!(at(&look(&mut queue).unwrap()), submitted[0], "the end before is not lost");
    assert_eq!((queue.is_stopped(), script.borrow().slots.len()), (true, 2));
    let failed = queue.wait::<1>(Duration::ZERO).unwrap_err();
    assert_eq!((failed.error, failed.buffers.is_none()), (FAULT, true));
    assert!(look(&mut queue).is_none(), "it is said once");
    script.borrow_mut().submit = None;
    assert_eq!(taken_back(&mut queue), submitted[1..]);
    rig.submit(&mut queue, 1);
}

#[test]
fn dropped_queue_leaks_only_what_the_device_has() {
    let rig = Rig::new();
    let (mut queue, script) = rig.queue(1, true);
    rig.submit(&mut queue, 4);
    script.borrow_mut().stop = Some(STUCK);
    drop(queue);
    assert_eq!(rig.pool.taken(), 1);
    let (mut queue, _) = rig.queue(1, true);
    rig.submit(&mut queue, 4);
    drop(queue);
    assert_eq!(rig.pool.taken(), 1);
}

#[test]
fn run_on_a_stuck_device_keeps_its_buffers() {
    let rig = Rig::new();
    let (mut queue, script) = rig.queue(1, true);
    script.borrow_mut().stop = Some(STUCK);
    let failed = queue.run([rig.operand()], &[], Duration::ZERO).unwrap_err();
    let late = Error::Timeout { timeout_us: 0 };
    assert_eq!((failed.error, failed.cause, failed.buffers.is_none()), (STUCK, late, true));
    assert_eq!((queue.len(), queue.is_stopped(), rig.pool.taken()), (1, true, 1));
    script.borrow_mut().stop = None;
    queue.clear().unwrap();
    assert_eq!((queue.is_stopped(), rig.pool.taken()), (false, 0));
    script.borrow_mut().then.push_back(Ok(Some(Completion::of(0))));
    let _ = queue.run([rig.operand()], &[], Duration::ZERO).unwrap();
}

#[test]
fn panicking_callback_keeps_the_order_of_jobs() {
    let rig = Rig::new();
    let (mut queue, script) = rig.queue(1, true);
    let submitted = rig.submit(&mut queue, 3);
    ends(&script, &[0]);
    let asked = || {
        queue.wait_each(Duration::ZERO, |_, _, buf| {
            drop(buf.into_cpu().map(|_| panic!("asked for")))
        })
    };
    assert!(catch_unwind(AssertUnwindSafe(asked)).is_err());
    // The device has none, and two wait: one more is behind them.
    let last = rig.submit(&mut queue, 1);
    for at_expected in [submitted[1], submitted[2], last[0]] {
        ends(&script, &[0]);
        assert_eq!(at(&look(&mut queue).unwrap()), at_expected);
    }
    assert!(queue.is_empty());
}
