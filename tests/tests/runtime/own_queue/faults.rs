//! Drivers that lie, panic, refuse and fail: no buffer is lost, and the device is stopped.

use super::{FAULT, Rig, SLOT, STUCK, at, ends, look, taken_back};
use contigo::{Completion, Error};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

#[test]
fn lying_completion_stops_the_device() {
    // Its name, in order, the slots whose end is told, the bytes of the last one.
    for (what, in_order, slots, bytes) in [
        ("told twice", true, [0, 0].as_slice(), None),
        ("told twice", false, &[2, 2], None),
        ("not the oldest", true, &[1], None),
        ("a free slot", true, &[3], None),
        ("a free slot", false, &[3], None),
        ("a slot that is not there", true, &[usize::MAX], None),
        ("a slot that is not there", false, &[4], None),
        ("more bytes than there are", true, &[0], Some(SLOT + 1)),
    ] {
        let rig = Rig::new();
        let (mut queue, script) = rig.queue(4, in_order);
        rig.submit(&mut queue, 3);
        let (&slot, good) = slots.split_last().unwrap();
        ends(&script, good);
        let lie = Completion { bytes, ..Completion::of(slot) };
        script.borrow_mut().polls.push_back(Ok(Some(lie)));
        for _ in good {
            drop(look(&mut queue).unwrap());
        }
        let failed = queue.wait::<1>(Duration::ZERO).unwrap_err();
        let device = "scripted";
        let expected = match bytes {
            None => Error::NoSuchJob { device, slot },
            Some(bytes) => Error::BadCompletion { device, slot, bytes, most_bytes: SLOT },
        };
        assert_eq!(failed.error, expected, "{what}, in order: {in_order}");
        assert!(failed.buffers.is_none() && queue.is_stopped(), "{what}");
        assert_eq!(script.borrow().stops, 2, "{what}: it was stopped");
        assert_eq!(taken_back(&mut queue).len(), 3 - good.len(), "{what}");
        assert_eq!((rig.pool.taken(), queue.is_stopped()), (0, false), "{what}");
    }
}

#[test]
fn job_that_fails_alone_returns_its_buffer() {
    let rig = Rig::new();
    let (mut queue, script) = rig.queue(4, true);
    let lie = rig.submit(&mut queue, 2);
    let fails = Completion { status: 1, failed: Some("asked for"), ..Completion::of(0) };
    script.borrow_mut().polls.extend([Ok(Some(fails)), Ok(None)]);
    let failed = queue.wait::<1>(Duration::ZERO).unwrap_err();
    let [buf] = failed.buffers.unwrap();
    assert_eq!((failed.error, buf.into_cpu().unwrap().offset_bytes()), (FAULT, lie[0]));
    assert!(look(&mut queue).is_none() && !queue.is_stopped());
    ends(&script, &[1]);
    assert_eq!(at(&look(&mut queue).unwrap()), lie[1]);
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
        // The device may have them.
        assert_eq!((queue.len(), rig.pool.taken()), (inside, inside), "{place}");
        let refused = queue.submit([rig.operand()], &[]).map_err(|refused| refused.error);
        if place == "poll" {
            assert_eq!(refused.unwrap(), 2);
        } else {
            let stopped = Error::QueueStopped { in_flight: inside };
            assert_eq!(refused, Err(stopped), "{place}: no slot is given twice");
        }
        assert!(queue.take_back::<1>().unwrap().is_none(), "{place}");
        queue.stop().unwrap();
        assert_eq!(taken_back(&mut queue).len(), 3.min(inside + usize::from(place == "poll")));
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
    // The device may have written it.
    let back = operand.into_buf().unwrap_err().into_cpu().unwrap();
    assert_eq!((failed.error, back.offset_bytes(), queue.counts().stopped), (FAULT, expected, 1));
    let stopped = queue.submit([back.from_device(..)], &[]).map_err(|refused| refused.error);
    assert_eq!(stopped, Err(Error::QueueStopped { in_flight: 2 }));
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
    assert_eq!((failed.error, failed.cause), (STUCK, FAULT));
    assert!(failed.to_string().ends_with(&format!("; before that: {FAULT}")), "{failed}");
    assert!(queue.take_back::<1>().unwrap().is_none());
    // A job that ends all the same comes out.
    assert!(look(&mut queue).is_some());
    drop(queue);
    assert_eq!(rig.pool.taken(), 1, "the other is leaked");
}
