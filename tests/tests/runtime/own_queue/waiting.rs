//! A queue that has more jobs than its device takes.

use super::{FAULT, Rig, STUCK, at, taken_back};
use contigo::{Completion, Error};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

#[test]
fn jobs_wait_for_the_device_in_their_order() {
    for in_order in [true, false] {
        let rig = Rig::new();
        let (mut queue, script) = rig.queue(1, in_order);
        let expected = rig.submit(&mut queue, 4);
        assert_eq!(
            (queue.len(), queue.is_full(), script.borrow().slots.len()),
            (4, true, 1),
            "the device has one"
        );
        for (given, at_expected) in (2..=4).chain([4]).zip(expected) {
            script.borrow_mut().polls.push_back(Ok(Some(Completion::of(0))));
            let done = queue.wait::<1>(Duration::ZERO).unwrap().unwrap();
            assert_eq!(
                (at(&done), script.borrow().slots.len()),
                (at_expected, given),
                "the next one was given at once"
            );
        }
        assert!(queue.wait::<1>(Duration::ZERO).unwrap().is_none() && queue.is_empty());
        assert_eq!(queue.counts().ran_dry, 1, "after the last one");
    }
}

#[test]
fn a_job_that_waited_is_given_the_words_that_it_was_submitted_with() {
    let rig = Rig::new();
    let (mut queue, script) = rig.queue(1, true);
    for word in 0..4 {
        queue.submit([rig.operand()], &[word, 100 + word][..=usize::from(word % 2 == 0)]).unwrap();
    }
    for _ in 0..4 {
        script.borrow_mut().polls.push_back(Ok(Some(Completion::of(0))));
        drop(queue.wait::<1>(Duration::ZERO).unwrap().unwrap());
    }
    assert_eq!(script.borrow().words, [vec![0, 100], vec![1], vec![2, 102], vec![3]]);
}

#[test]
fn a_stop_gives_back_what_the_device_had_and_then_what_waited() {
    let rig = Rig::new();
    let (mut queue, script) = rig.queue(2, true);
    let submitted = rig.submit(&mut queue, 4);
    queue.stop().unwrap();
    assert_eq!(taken_back(&mut queue), submitted);
    assert_eq!((rig.pool.taken(), queue.is_stopped(), script.borrow().slots.len()), (0, false, 2));
    // And after an end of before the stop.
    let submitted = rig.submit(&mut queue, 4);
    queue.stop().unwrap();
    script.borrow_mut().polls.push_back(Ok(Some(Completion::of(0))));
    assert_eq!(at(&queue.wait::<1>(Duration::ZERO).unwrap().unwrap()), submitted[0]);
    assert_eq!(script.borrow().slots.len(), 4, "a stopped device is given nothing");
    assert_eq!(taken_back(&mut queue), submitted[1..]);
}

#[test]
fn a_job_that_waited_and_is_refused_by_the_device_stops_it_and_the_next_look_says_so() {
    let rig = Rig::new();
    let (mut queue, script) = rig.queue(1, true);
    let submitted = rig.submit(&mut queue, 3);
    script.borrow_mut().submit = Some(FAULT);
    script.borrow_mut().polls.push_back(Ok(Some(Completion::of(0))));
    assert_eq!(
        at(&queue.wait::<1>(Duration::ZERO).unwrap().unwrap()),
        submitted[0],
        "the end before is not lost"
    );
    assert_eq!((queue.is_stopped(), script.borrow().slots.len()), (true, 2));
    let failed = queue.wait::<1>(Duration::ZERO).unwrap_err();
    assert_eq!((failed.error, failed.buffers.is_none()), (FAULT, true));
    assert!(queue.wait::<1>(Duration::ZERO).unwrap().is_none(), "it is said once");
    script.borrow_mut().submit = None;
    assert_eq!(taken_back(&mut queue), submitted[1..]);
    rig.submit(&mut queue, 1);
}

#[test]
fn a_queue_that_is_dropped_leaks_what_the_device_may_have_and_nothing_that_waited() {
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
fn a_run_whose_device_will_not_stop_keeps_its_buffers_until_it_does() {
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
fn a_callback_that_panics_loses_its_buffer_and_lets_no_job_overtake_another() {
    let rig = Rig::new();
    let (mut queue, script) = rig.queue(1, true);
    let submitted = rig.submit(&mut queue, 3);
    script.borrow_mut().polls.push_back(Ok(Some(Completion::of(0))));
    let asked = || {
        queue.wait_each(Duration::ZERO, |_, _, buf| {
            drop(buf.into_cpu().map(|_| panic!("asked for")))
        })
    };
    assert!(catch_unwind(AssertUnwindSafe(asked)).is_err());
    // The device has none, and two wait: one more is behind them.
    let last = rig.submit(&mut queue, 1);
    for at_expected in [submitted[1], submitted[2], last[0]] {
        script.borrow_mut().polls.push_back(Ok(Some(Completion::of(0))));
        assert_eq!(at(&queue.wait::<1>(Duration::ZERO).unwrap().unwrap()), at_expected);
    }
    assert!(queue.is_empty());
}
