//! A queue's slots and words: which job ended, and what its driver was given.

use super::{Rig, SLOT, Scripted, at, taken_back};
use contigo::{Completion, DevSlice, Driver, Engine, Error, OneThread, Queue, Result, Stream, TypedDriver};
use std::cell::{Cell, RefCell};
use std::time::Duration;

#[test]
fn slots_go_in_a_circle_and_begin_anew_after_a_stop() {
    let rig = Rig::new();
    let (mut queue, script) = rig.queue(3, true);
    assert_eq!((queue.depth(), rig.push(&mut queue, 3).len(), queue.is_full()), (3, 3, true));
    for slot in 0..7 {
        script.borrow_mut().polls.push_back(Ok(Some(Completion::of(slot % 3))));
        drop(queue.next(Duration::from_micros(9)).unwrap().unwrap());
        rig.push(&mut queue, 1);
    }
    assert_eq!(script.borrow().timeouts[1..], [Duration::from_micros(9); 7], "the first look is at ends of before the queue");
    assert_eq!(script.borrow().slots, [0, 1, 2, 0, 1, 2, 0, 1, 2, 0]);
    assert_eq!(queue.counts().ran_dry, 0);
    // A circle that is stopped in its middle: nobody waits for it, and the oldest comes back first.
    queue.stop().unwrap();
    assert!(queue.next(Duration::from_millis(1)).unwrap().is_none() && script.borrow().timeouts.ends_with(&[Duration::ZERO]));
    assert_eq!(queue.take_back().unwrap().slot, 1);
    assert_eq!([queue.take_back().unwrap().slot, queue.take_back().unwrap().slot], [2, 0]);
    rig.push(&mut queue, 1);
    assert_eq!(script.borrow().slots.last(), Some(&0));
}

#[test]
fn jobs_that_end_out_of_order_are_found_by_their_slot() {
    let rig = Rig::new();
    let (mut queue, script) = rig.queue(9, false);
    let lie = rig.push(&mut queue, 4);
    assert_eq!((queue.depth(), queue.is_full()), (4, true), "as many as the queue has places");
    for slot in [2, 0, 3] {
        script.borrow_mut().polls.push_back(Ok(Some(Completion { status: 70, ..Completion::of(slot).with_bytes(10) })));
        let done = queue.next(Duration::ZERO).unwrap().unwrap();
        assert_eq!((at(&done), done.report), (lie[slot], 70), "slot {slot}");
    }
    // The free slots are used again, and what is taken back is in the order of the pushes.
    let more = rig.push(&mut queue, 2);
    let slots = script.borrow().slots.clone();
    assert!(slots.len() == 6 && !slots[4..].contains(&1));
    queue.stop().unwrap();
    assert_eq!(taken_back(&mut queue), [lie[1], more[0], more[1]]);
    assert_eq!(rig.pool.taken(), 0);
}

#[test]
fn a_queue_says_how_often_it_saw_the_device_without_a_job() {
    let rig = Rig::new();
    let (mut queue, script) = rig.queue(4, true);
    let end = |slot| script.borrow_mut().polls.push_back(Ok(Some(Completion::of(slot))));
    for slot in 0..3 {
        rig.push(&mut queue, 1);
        end(slot);
        drop(queue.next(Duration::ZERO).unwrap().unwrap());
    }
    assert_eq!(queue.counts().ran_dry, 3, "each ended before the next one came");
    rig.push(&mut queue, 2);
    end(3);
    drop(queue.next(Duration::ZERO).unwrap().unwrap());
    queue.stop().unwrap();
    end(0);
    drop(queue.next(Duration::ZERO).unwrap().unwrap());
    assert_eq!((queue.counts().ran_dry, queue.is_empty()), (3, true), "a stop's doing is no loss");
}

#[test]
fn a_driver_without_types_is_driven_by_words() {
    let rig = Rig::new();
    let (mut driver, script) = rig.driver(2, true);
    let dynamic: &mut dyn Driver = &mut driver;
    let mut queue: Queue<'_, _, 4, 2, OneThread> = Queue::new(dynamic).unwrap();
    let refused = queue.push_words([rig.pool.take().unwrap().from_device(..), rig.pool.take().unwrap().from_device(..)], &[]).unwrap_err();
    assert!(matches!(refused.error, Error::Argument { name: "the count of operands", value: 2, min: 1, max: 1, .. }));
    drop((refused, queue));

    let dynamic: &mut dyn Driver = &mut driver;
    let mut stream: Stream<'_, _, _, 4> = Stream::with_words(dynamic, rig.pool, &[]).unwrap();
    assert_eq!(stream.start(), Ok(2));
    script.borrow_mut().polls.push_back(Ok(Some(Completion::of(0).with_bytes(100))));
    let frame = stream.next_words(Duration::ZERO).unwrap().unwrap();
    assert_eq!((frame.buf.len_bytes(), frame.buf.whole().len_bytes()), (100, SLOT));
}

/// A driver's words that are others at the second look: `check` and `submit` see the same.
#[test]
fn a_jobs_words_are_looked_at_once() {
    struct Fickle(Cell<bool>);
    impl AsRef<[u32]> for Fickle {
        fn as_ref(&self) -> &[u32] {
            if self.0.replace(true) { &[2] } else { &[1] }
        }
    }
    struct Words<'c>(Scripted, &'c RefCell<Vec<u32>>);
    // SAFETY: as `Scripted`.
    unsafe impl Driver for Words<'_> {
        contigo::forward!(|this| this.0 => name, port, addr_bits, operands, depth, poll, stop);
        fn check(&self, _: &[DevSlice], words: &[u32]) -> Result<()> {
            self.1.borrow_mut().extend(words);
            Ok(())
        }
        unsafe fn submit(&mut self, _: usize, _: &[DevSlice], words: &[u32]) -> Result<()> {
            self.1.borrow_mut().extend(words);
            Ok(())
        }
    }
    impl TypedDriver<1> for Words<'_> {
        type Args = ();
        type Words = Fickle;
        type Report = ();
        fn words((): &()) -> Fickle {
            Fickle(Cell::new(false))
        }
        fn report(&self, _: &Completion) {}
    }
    let (rig, seen) = (Rig::new(), RefCell::new(Vec::new()));
    let mut engine = Engine::new(Words(rig.driver(1, true).0, &seen)).unwrap();
    drop(engine.start([rig.pool.take().unwrap().from_device(..)], &()).unwrap());
    let mut queue: Queue<'_, _, 1, 1, OneThread> = Queue::new(Words(rig.driver(1, true).0, &seen)).unwrap();
    queue.push([rig.pool.take().unwrap().from_device(..)], &()).unwrap();
    assert_eq!(*seen.borrow(), [1; 4]);
}
