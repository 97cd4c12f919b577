//! Drivers that lie, panic, refuse and fail: no buffer is lost, and the device is stopped.

use super::{FAULT, Rig, SLOT, STUCK, at, taken_back};
use contigo::{Completion, Error, Result};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

#[test]
fn lying_completion_stops_the_device() {
    let twice =
        |first: usize| vec![Ok(Some(Completion::of(first))), Ok(Some(Completion::of(first)))];
    /// Its name, in order, what `poll` says, and what is wrong: slot, bytes, most bytes.
    type Lie = (&'static str, bool, Vec<Result<Option<Completion>>>, usize, usize, usize);
    let lies: [Lie; 8] = [
        ("told twice", true, twice(0), 0, 0, 0),
        ("told twice", false, twice(2), 2, 0, 0),
        ("not the oldest", true, vec![Ok(Some(Completion::of(1)))], 1, 0, 0),
        ("a free slot", true, vec![Ok(Some(Completion::of(3)))], 3, 0, 0),
        ("a free slot", false, vec![Ok(Some(Completion::of(3)))], 3, 0, 0),
        (
            "a slot that is not there",
            true,
            vec![Ok(Some(Completion::of(usize::MAX)))],
            usize::MAX,
            0,
            0,
        ),
        ("a slot that is not there", false, vec![Ok(Some(Completion::of(4)))], 4, 0, 0),
        (
            "more bytes than there are",
            true,
            vec![Ok(Some(Completion { bytes: Some(SLOT + 1), ..Completion::of(0) }))],
            0,
            SLOT + 1,
            SLOT,
        ),
    ];
    for (what, in_order, polls, slot, bytes, most_bytes) in lies {
        let rig = Rig::new();
        let (mut queue, script) = rig.queue(4, in_order);
        let lie = rig.submit(&mut queue, 3);
        let good = polls.len() - 1;
        script.borrow_mut().polls.extend(polls);
        for _ in 0..good {
            drop(queue.wait::<1>(Duration::ZERO).unwrap().unwrap());
        }
        let failed = queue.wait::<1>(Duration::ZERO).unwrap_err();
        let device = "scripted";
        let expected = match most_bytes {
            0 => Error::NoSuchJob { device, slot },
            _ => Error::BadCompletion { device, slot, bytes, most_bytes },
        };
        assert_eq!(failed.error, expected, "{what}, in order: {in_order}");
        assert!(
            failed.buffers.is_none() && queue.is_stopped() && script.borrow().stops == 2,
            "{what}: it was stopped"
        );
        assert_eq!(taken_back(&mut queue).len(), lie.len() - good, "{what}");
        assert_eq!((rig.pool.taken(), queue.is_stopped()), (0, false), "{what}");
    }
}

#[test]
fn job_that_fails_alone_returns_its_buffer() {
    let rig = Rig::new();
    let (mut queue, script) = rig.queue(4, true);
    let lie = rig.submit(&mut queue, 2);
    script.borrow_mut().polls.extend([
        Ok(Some(Completion { status: 1, failed: Some("asked for"), ..Completion::of(0) })),
        Ok(None),
    ]);
    let failed = queue.wait::<1>(Duration::ZERO).unwrap_err();
    let [buf] = failed.buffers.unwrap();
    assert_eq!((failed.error, buf.into_cpu().unwrap().offset_bytes()), (FAULT, lie[0]));
    assert!(queue.wait::<1>(Duration::ZERO).unwrap().is_none() && !queue.is_stopped());
    script.borrow_mut().polls.push_back(Ok(Some(Completion::of(1))));
    assert_eq!(at(&queue.wait::<1>(Duration::ZERO).unwrap().unwrap()), lie[1]);
    let counts = queue.counts();
    assert_eq!([counts.pushed, counts.completed, counts.failed, counts.stopped], [2, 1, 1, 0]);
}

#[test]
fn panicking_driver_keeps_its_slot_until_a_stop() {
    for place in ["submit", "poll", "stop"] {
        let rig = Rig::new();
        let (mut queue, script) = rig.queue(4, true);
        rig.submit(&mut queue, 2);
        script.borrow_mut().panics_in = Some(place);
        let panicked = catch_unwind(AssertUnwindSafe(|| match place {
            "submit" => drop(rig.submit(&mut queue, 1)),
            "poll" => drop(queue.wait::<1>(Duration::ZERO)),
            _ => drop(queue.stop()),
        }));
        let inside = if place == "submit" { 3 } else { 2 };
        assert!(panicked.is_err(), "{place}");
        assert_eq!(
            (queue.len(), rig.pool.taken()),
            (inside, inside),
            "{place}: the device may have them"
        );
        let refused = queue.submit([rig.operand()], &[]).map_err(|refused| refused.error);
        if place == "poll" {
            assert_eq!(refused.unwrap(), 2);
        } else {
            assert_eq!(
                refused,
                Err(Error::QueueStopped { in_flight: inside }),
                "{place}: no slot is given twice"
            );
        }
        assert!(queue.take_back::<1>().unwrap().is_none(), "{place}");
        queue.stop().unwrap();
        assert_eq!(
            taken_back(&mut queue).len(),
            3.min(inside + usize::from(place == "poll")),
            "{place}"
        );
        rig.submit(&mut queue, 1);
        drop(queue);
        assert_eq!(rig.pool.taken(), 0, "{place}");
    }
}

#[test]
fn device_that_refuses_a_job_is_stopped() {
    let rig = Rig::new();
    let (mut queue, script) = rig.queue(4, true);
    rig.submit(&mut queue, 2);
    script.borrow_mut().submit = Some(FAULT);
    let buf = rig.pool.take().unwrap();
    let expected = buf.offset_bytes();
    let failed = queue.submit([buf.from_device(..)], &[]).unwrap_err();
    let [operand] = failed.buffers.unwrap();
    let back = operand
        .into_buf()
        .map_or_else(|dev| dev.into_cpu().unwrap(), |_| panic!("the device may have written it"));
    assert_eq!((failed.error, back.offset_bytes(), queue.counts().stopped), (FAULT, expected, 1));
    assert_eq!(
        queue.submit([back.from_device(..)], &[]).unwrap_err().error,
        Error::QueueStopped { in_flight: 2 }
    );
    script.borrow_mut().submit = None;
    assert_eq!(taken_back(&mut queue).len(), 2);

    // And where it does not stop either, this one stays inside with the others.
    rig.submit(&mut queue, 1);
    (script.borrow_mut().submit, script.borrow_mut().stop) = (Some(FAULT), Some(STUCK));
    let failed = queue.submit([rig.operand()], &[]).unwrap_err();
    assert_eq!((failed.error, failed.cause, failed.buffers.is_none()), (STUCK, FAULT, true));
    assert_eq!((queue.len(), rig.pool.taken()), (2, 2));
    assert_eq!(queue.clear(), Err(STUCK));
    script.borrow_mut().stop = None;
    queue.clear().unwrap();
    assert_eq!((queue.len(), rig.pool.taken(), queue.counts().cancelled), (0, 0, 4));
}

#[test]
fn fault_of_unstoppable_device_says_both() {
    let rig = Rig::new();
    let (mut queue, script) = rig.queue(4, true);
    rig.submit(&mut queue, 2);
    script.borrow_mut().polls.extend([Err(FAULT), Ok(Some(Completion::of(0)))]);
    script.borrow_mut().stop = Some(STUCK);
    let failed = queue.wait::<1>(Duration::ZERO).unwrap_err();
    assert_eq!(
        (failed.error, failed.cause, queue.take_back::<1>().unwrap().is_none()),
        (STUCK, FAULT, true)
    );
    // A job that ends all the same comes out.
    assert!(queue.wait::<1>(Duration::ZERO).unwrap().is_some());
    drop(queue);
    assert_eq!(rig.pool.taken(), 1, "the other is leaked");
}

/// A driver may keep the ends of jobs that had ended before a stop. They are taken for the end of
/// no job that came after it.
#[test]
fn an_end_of_before_a_stop_is_no_later_jobs() {
    let rig = Rig::new();
    let (mut queue, script) = rig.queue(4, true);
    rig.submit(&mut queue, 2);
    queue.stop().unwrap();
    script.borrow_mut().polls.extend([0, 1].map(|slot| Ok(Some(Completion::of(slot)))));
    assert_eq!(
        queue.take_back::<1>().unwrap().unwrap().job,
        0,
        "also where the driver knows that it had ended"
    );
    assert_eq!(queue.wait::<1>(Duration::ZERO).unwrap().unwrap().job, 1);
    script.borrow_mut().polls.push_back(Ok(Some(Completion::of(1))));
    rig.submit(&mut queue, 1);
    assert_eq!(script.borrow().slots.last(), Some(&0));
}
