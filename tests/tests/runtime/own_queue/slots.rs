//! A queue's slots and words: which job ended, and what its driver was given.

use super::{Rig, SLOT, at, ends, look, taken_back};
use contigo::{Completion, Driver, Queue, Stream};
use std::time::Duration;

#[test]
fn slots_circle_and_restart_after_a_stop() {
    let rig = Rig::new();
    let (mut queue, script) = rig.queue(3, true);
    assert_eq!(rig.submit(&mut queue, 3).len(), 3);
    for slot in 0..7 {
        ends(&script, &[slot % 3]);
        drop(queue.wait::<1>(Duration::from_micros(9)).unwrap().unwrap());
        rig.submit(&mut queue, 1);
    }
    // The first look is at ends of before the queue.
    assert_eq!(script.borrow().timeouts[1..], [Duration::from_micros(9); 7]);
    assert_eq!(script.borrow().slots, [0, 1, 2, 0, 1, 2, 0, 1, 2, 0]);
    assert_eq!(queue.counts().underruns, 0);
    // A circle that is stopped in its middle: no wait blocks, and the oldest comes back first.
    queue.stop().unwrap();
    assert!(queue.wait::<1>(Duration::from_millis(1)).unwrap().is_none());
    assert!(script.borrow().timeouts.ends_with(&[Duration::ZERO]));
    assert_eq!([(); 3].map(|()| queue.take_back::<1>().unwrap().unwrap().job), [7, 8, 9]);
    rig.submit(&mut queue, 1);
    assert_eq!(script.borrow().slots.last(), Some(&0));
}

#[test]
fn out_of_order_ends_are_found_by_slot() {
    let rig = Rig::new();
    let (mut queue, script) = rig.queue(9, false);
    let lie = rig.submit(&mut queue, 4);
    assert!(queue.is_full());
    for slot in [2, 0, 3] {
        let end = Completion { status: 70, bytes: Some(10), ..Completion::of(slot) };
        script.borrow_mut().polls.push_back(Ok(Some(end)));
        let done = look(&mut queue).unwrap();
        assert_eq!((at(&done), done.status, done.bytes), (lie[slot], 70, Some(10)), "slot {slot}");
    }
    // The free slots are used again, and what is taken back is in the order of the pushes.
    let more = rig.submit(&mut queue, 2);
    let slots = script.borrow().slots.clone();
    assert!(slots.len() == 6 && !slots[4..].contains(&1));
    queue.stop().unwrap();
    assert_eq!(taken_back(&mut queue), [lie[1], more[0], more[1]]);
    assert_eq!(rig.pool.taken(), 0);
}

#[test]
fn queue_counts_device_without_a_job() {
    let rig = Rig::new();
    let (mut queue, script) = rig.queue(4, true);
    for slot in 0..3 {
        rig.submit(&mut queue, 1);
        ends(&script, &[slot]);
        drop(look(&mut queue).unwrap());
    }
    assert_eq!(queue.counts().underruns, 3, "each ended before the next one came");
    rig.submit(&mut queue, 2);
    ends(&script, &[3]);
    drop(look(&mut queue).unwrap());
    queue.stop().unwrap();
    ends(&script, &[0]);
    drop(look(&mut queue).unwrap());
    // A stop's doing is no loss.
    assert_eq!((queue.counts().underruns, queue.is_empty()), (3, true));
}

#[test]
fn a_driver_of_any_type_is_driven() {
    let rig = Rig::new();
    let (mut driver, script) = rig.driver(2, true);
    let hundred = Completion { bytes: Some(100), ..Completion::of(0) };
    let dynamic: &mut dyn Driver = &mut driver;
    let mut queue = Queue::new(dynamic, 4).unwrap();
    let mut list = heapless::Vec::<_, 16>::new();
    assert!(list.push(rig.operand()).is_ok());
    queue.submit_list(&mut list, &[], 77).unwrap();
    script.borrow_mut().polls.push_back(Ok(Some(hundred)));
    let mut seen = Vec::new();
    let (tag, end) = queue
        .wait_each(Duration::ZERO, |tag, index, buf| seen.push((tag, index, buf)))
        .unwrap()
        .unwrap();
    assert_eq!((tag, end.bytes, seen.len(), list.len()), (77, Some(100), 1, 0));
    assert_eq!((seen[0].0, seen[0].1), (77, 0));
    drop((queue, seen));

    let dynamic: &mut dyn Driver = &mut driver;
    let mut stream = Stream::new(dynamic, rig.pool.clone(), 2, &[]).unwrap();
    assert_eq!(stream.start(), Ok(2));
    script.borrow_mut().polls.push_back(Ok(Some(hundred)));
    let frame = stream.next(Duration::ZERO).unwrap().unwrap();
    assert_eq!((frame.buf.len_bytes(), frame.buf.whole().len_bytes()), (100, SLOT));
}
