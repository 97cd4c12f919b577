//! A queue and a stream over a driver that does whatever a test wants: out of order, lying,
//! failing, panicking. It touches no memory; `camera` has the states on a device that does.
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that panics has failed, which is its purpose; implementing `Driver` is a promise"
)]

use contigo::{
    Align, Attempt, Completion, CpuBuf, DevSlice, Direction, Done, Driver, Engine, Error, LocalPool, OneThread, OperandSpec, Port, Queue,
    Region, Result, Stream, Timeout, TypedDriver,
    sim::{Sim, SimBoard},
};
use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    rc::Rc,
};

const SLOT: usize = 256;
const FAULT: Error = Error::Fault { device: "scripted", status: 1, what: "asked for" };
const STUCK: Error = Error::WillNotStop { device: "scripted", status: 2, waited_us: 3 };

/// What the driver answers next, and what it was asked.
#[derive(Debug, Default)]
struct Script {
    polls: VecDeque<Result<Option<Completion>>>,
    submit: Option<Error>,
    stop: Option<Error>,
    panics_in: Option<&'static str>,
    slots: Vec<usize>,
    timeouts: Vec<Timeout>,
    stops: u32,
}

impl Script {
    fn panic_in(&mut self, place: &'static str) {
        if self.panics_in == Some(place) {
            self.panics_in = None;
            panic!("asked for, in {place}");
        }
    }
}

type Shared = Rc<RefCell<Script>>;

struct Scripted {
    script: Shared,
    port: Port,
    depth: usize,
    in_order: bool,
    operand: [OperandSpec; 1],
}

// SAFETY: it touches no memory and has no device.
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
        &self.operand
    }
    fn depth(&self) -> usize {
        self.depth
    }
    fn in_order(&self) -> bool {
        self.in_order
    }
    fn check(&self, _: &[DevSlice], _: &[u32]) -> Result<()> {
        Ok(())
    }
    unsafe fn submit(&mut self, slot: usize, _: &[DevSlice], _: &[u32]) -> Result<()> {
        let mut script = self.script.borrow_mut();
        script.slots.push(slot);
        script.panic_in("submit");
        script.submit.map_or(Ok(()), Err)
    }
    fn poll(&mut self, timeout: Timeout) -> Result<Option<Completion>> {
        let mut script = self.script.borrow_mut();
        script.timeouts.push(timeout);
        script.panic_in("poll");
        script.polls.pop_front().unwrap_or(Ok(None))
    }
    fn stop(&mut self) -> Result<()> {
        let mut script = self.script.borrow_mut();
        script.stops += 1;
        script.panic_in("stop");
        script.stop.map_or(Ok(()), Err)
    }
}

impl TypedDriver<1> for Scripted {
    type Args = ();
    type Words = [u32; 0];
    type Report = u32;
    fn words((): &()) -> [u32; 0] {
        []
    }
    fn report(&self, completion: &Completion) -> u32 {
        completion.status
    }
}

type Jobs<'p> = Queue<'p, Scripted, 4, 1, OneThread>;

/// A board's memory, eight buffers of it, and a queue over a driver with a script.
struct Rig {
    board: &'static SimBoard,
    pool: &'static LocalPool<'static, 8>,
}

impl Rig {
    fn new() -> Self {
        let board: &'static SimBoard = Box::leak(Box::new(SimBoard::new(1)));
        let region: &'static Region<Sim<'static>> = Box::leak(Box::new(Region::new(board.memory(64 * 1024).unwrap()).unwrap()));
        let pool = LocalPool::new(region.carve(8 * SLOT, Align::LINE).unwrap(), SLOT).unwrap();
        Self { board, pool: Box::leak(Box::new(pool)) }
    }

    fn driver(&self, depth: usize, in_order: bool) -> (Scripted, Shared) {
        let (script, operand) = (Shared::default(), [OperandSpec::from_device()]);
        (Scripted { script: Rc::clone(&script), port: self.board.port(), depth, in_order, operand }, script)
    }

    fn queue(&self, depth: usize, in_order: bool) -> (Jobs<'static>, Shared) {
        let (driver, script) = self.driver(depth, in_order);
        (Queue::new(driver).unwrap(), script)
    }

    /// Pushes `count` buffers; returns where each lies.
    fn push(&self, queue: &mut Jobs<'static>, count: usize) -> Vec<usize> {
        let one = |_| {
            let buf = self.pool.take().unwrap();
            let at = buf.offset_bytes();
            queue.push([buf.from_device(..)], &()).unwrap();
            at
        };
        (0..count).map(one).collect()
    }
}

fn at(done: &Done<[CpuBuf<'_, OneThread>; 1], u32>) -> usize {
    done.buffers[0].offset_bytes()
}

/// Where the buffers of a stopped queue lie, in the order in which they come back.
fn taken_back(queue: &mut Jobs<'static>) -> Vec<usize> {
    let jobs = std::iter::from_fn(|| queue.take_back());
    jobs.map(|mut job| job.buffers.pop().unwrap().into_cpu().unwrap().offset_bytes()).collect()
}

#[test]
fn slots_go_in_a_circle_and_begin_anew_after_a_stop() {
    let rig = Rig::new();
    let (mut queue, script) = rig.queue(3, true);
    assert_eq!((queue.depth(), rig.push(&mut queue, 3).len(), queue.is_full()), (3, 3, true));
    for slot in 0..7 {
        script.borrow_mut().polls.push_back(Ok(Some(Completion::of(slot % 3))));
        drop(queue.next(Timeout::us(9)).unwrap().unwrap());
        rig.push(&mut queue, 1);
    }
    assert_eq!(script.borrow().timeouts[1..], [Timeout::us(9); 7], "the first look is at ends of before the queue");
    assert_eq!(script.borrow().slots, [0, 1, 2, 0, 1, 2, 0, 1, 2, 0]);
    assert_eq!(queue.counts().ran_dry, 0);
    // A circle that is stopped in its middle: nobody waits for it, and the oldest comes back first.
    queue.stop().unwrap();
    assert!(queue.next(Timeout::ms(1)).unwrap().is_none() && script.borrow().timeouts.ends_with(&[Timeout::NOW]));
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
        let done = queue.next(Timeout::NOW).unwrap().unwrap();
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
fn a_completion_that_lies_stops_the_device_and_loses_no_buffer() {
    let twice = |first: usize| vec![Ok(Some(Completion::of(first))), Ok(Some(Completion::of(first)))];
    /// Its name, in order, what `poll` says, and what is wrong: slot, bytes, most bytes.
    type Lie = (&'static str, bool, Vec<Result<Option<Completion>>>, usize, usize, usize);
    let lies: [Lie; 8] = [
        ("told twice", true, twice(0), 0, 0, 0),
        ("told twice", false, twice(2), 2, 0, 0),
        ("not the oldest", true, vec![Ok(Some(Completion::of(1)))], 1, 0, 0),
        ("a free slot", true, vec![Ok(Some(Completion::of(3)))], 3, 0, 0),
        ("a free slot", false, vec![Ok(Some(Completion::of(3)))], 3, 0, 0),
        ("a slot that is not there", true, vec![Ok(Some(Completion::of(usize::MAX)))], usize::MAX, 0, 0),
        ("a slot that is not there", false, vec![Ok(Some(Completion::of(4)))], 4, 0, 0),
        ("more bytes than there are", true, vec![Ok(Some(Completion::of(0).with_bytes(SLOT + 1)))], 0, SLOT + 1, SLOT),
    ];
    for (what, in_order, polls, slot, bytes, most_bytes) in lies {
        let rig = Rig::new();
        let (mut queue, script) = rig.queue(4, in_order);
        let lie = rig.push(&mut queue, 3);
        let good = polls.len() - 1;
        script.borrow_mut().polls.extend(polls);
        for _ in 0..good {
            drop(queue.next(Timeout::NOW).unwrap().unwrap());
        }
        let failed = queue.next(Timeout::NOW).unwrap_err();
        assert_eq!(failed.error, Error::BadCompletion { device: "scripted", slot, bytes, most_bytes }, "{what}, in order: {in_order}");
        assert!(failed.buffers.is_none() && queue.is_stopped() && script.borrow().stops == 2, "{what}: it was stopped");
        assert_eq!(taken_back(&mut queue).len(), lie.len() - good, "{what}");
        assert_eq!((rig.pool.taken(), queue.is_stopped()), (0, false), "{what}");
    }
}

#[test]
fn a_job_that_fails_alone_gives_its_buffer_back_and_the_others_go_on() {
    let rig = Rig::new();
    let (mut queue, script) = rig.queue(4, true);
    let lie = rig.push(&mut queue, 2);
    script.borrow_mut().polls.extend([Ok(Some(Completion { status: 1, failed: Some("asked for"), ..Completion::of(0) })), Ok(None)]);
    let failed = queue.next(Timeout::NOW).unwrap_err();
    let mut buffers = failed.buffers.unwrap();
    assert_eq!((failed.error, buffers.pop().unwrap().into_cpu().unwrap().offset_bytes()), (FAULT, lie[0]));
    assert!(queue.next(Timeout::NOW).unwrap().is_none() && !queue.is_stopped());
    script.borrow_mut().polls.push_back(Ok(Some(Completion::of(1))));
    assert_eq!(at(&queue.next(Timeout::NOW).unwrap().unwrap()), lie[1]);
    let counts = queue.counts();
    assert_eq!([counts.pushed, counts.completed, counts.failed, counts.stopped], [2, 1, 1, 0]);
}

#[test]
fn a_driver_that_panics_keeps_its_slot_and_the_queue_takes_no_job_before_a_stop() {
    for place in ["submit", "poll", "stop"] {
        let rig = Rig::new();
        let (mut queue, script) = rig.queue(4, true);
        rig.push(&mut queue, 2);
        script.borrow_mut().panics_in = Some(place);
        let panicked = catch_unwind(AssertUnwindSafe(|| match place {
            "submit" => drop(rig.push(&mut queue, 1)),
            "poll" => drop(queue.next(Timeout::NOW)),
            _ => drop(queue.stop()),
        }));
        let inside = if place == "submit" { 3 } else { 2 };
        assert!(panicked.is_err(), "{place}");
        assert_eq!((queue.len(), rig.pool.taken()), (inside, inside), "{place}: the device may have them");
        let refused = queue.push([rig.pool.take().unwrap().from_device(..)], &()).map_err(|refused| refused.error);
        if place == "poll" {
            assert_eq!(refused.unwrap(), 2);
        } else {
            assert_eq!(refused, Err(Error::QueueStopped { in_flight: inside }), "{place}: no slot is given twice");
        }
        assert!(queue.take_back().is_none(), "{place}");
        queue.stop().unwrap();
        assert_eq!(taken_back(&mut queue).len(), 3.min(inside + usize::from(place == "poll")), "{place}");
        rig.push(&mut queue, 1);
        drop(queue);
        assert_eq!(rig.pool.taken(), 0, "{place}");
    }
}

#[test]
fn a_device_that_refuses_a_job_is_stopped_and_the_job_comes_back() {
    let rig = Rig::new();
    let (mut queue, script) = rig.queue(4, true);
    rig.push(&mut queue, 2);
    script.borrow_mut().submit = Some(FAULT);
    let buf = rig.pool.take().unwrap();
    let expected = buf.offset_bytes();
    let failed = queue.push([buf.from_device(..)], &()).unwrap_err();
    let [operand] = failed.buffers.unwrap();
    let back = operand.into_buf().map_or_else(|dev| dev.into_cpu().unwrap(), |_| panic!("the device may have written it"));
    assert_eq!((failed.error, back.offset_bytes(), queue.counts().stopped), (FAULT, expected, 1));
    assert_eq!(queue.push([back.from_device(..)], &()).unwrap_err().error, Error::QueueStopped { in_flight: 2 });
    script.borrow_mut().submit = None;
    assert_eq!(taken_back(&mut queue).len(), 2);

    // And where it does not stop either, this one stays inside with the others.
    rig.push(&mut queue, 1);
    (script.borrow_mut().submit, script.borrow_mut().stop) = (Some(FAULT), Some(STUCK));
    let failed = queue.push([rig.pool.take().unwrap().from_device(..)], &()).unwrap_err();
    assert_eq!((failed.error, failed.cause, failed.buffers.is_none()), (STUCK, FAULT, true));
    assert_eq!((queue.len(), rig.pool.taken()), (2, 2));
    assert_eq!(queue.clear(), Err(STUCK));
    script.borrow_mut().stop = None;
    queue.clear().unwrap();
    assert_eq!((queue.len(), rig.pool.taken(), queue.counts().cancelled), (0, 0, 4));
}

#[test]
fn a_fault_with_a_device_that_will_not_stop_says_both() {
    let rig = Rig::new();
    let (mut queue, script) = rig.queue(4, true);
    rig.push(&mut queue, 2);
    script.borrow_mut().polls.extend([Err(FAULT), Ok(Some(Completion::of(0)))]);
    script.borrow_mut().stop = Some(STUCK);
    let failed = queue.next(Timeout::NOW).unwrap_err();
    assert_eq!((failed.error, failed.cause, queue.take_back().is_none()), (STUCK, FAULT, true));
    // A job that ends all the same comes out.
    assert!(queue.next(Timeout::NOW).unwrap().is_some());
    drop(queue);
    assert_eq!(rig.pool.taken(), 1, "the other is leaked");
}

#[test]
fn a_queue_says_how_often_it_saw_the_device_without_a_job() {
    let rig = Rig::new();
    let (mut queue, script) = rig.queue(4, true);
    let end = |slot| script.borrow_mut().polls.push_back(Ok(Some(Completion::of(slot))));
    for slot in 0..3 {
        rig.push(&mut queue, 1);
        end(slot);
        drop(queue.next(Timeout::NOW).unwrap().unwrap());
    }
    assert_eq!(queue.counts().ran_dry, 3, "each ended before the next one came");
    rig.push(&mut queue, 2);
    end(3);
    drop(queue.next(Timeout::NOW).unwrap().unwrap());
    queue.stop().unwrap();
    end(0);
    drop(queue.next(Timeout::NOW).unwrap().unwrap());
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
    let frame = stream.next_words(Timeout::NOW).unwrap().unwrap();
    assert_eq!((frame.buf.len_bytes(), frame.buf.whole().len_bytes()), (100, SLOT));
}

#[test]
fn a_stream_says_why_it_cannot_begin_or_go_on() {
    let rig = Rig::new();
    let (driver, _) = rig.driver(4, true);
    let driver = Scripted { operand: [OperandSpec::to_device()], ..driver };
    let refused = Stream::<_, _, 4>::new(driver, rig.pool, &()).unwrap_err();
    assert_eq!(refused.error, Error::WrongDirection { index: 0, expected: Direction::FromDevice });
    let (driver, script) = rig.driver(4, true);
    let refused = Stream::<_, _, 4>::with_words(driver, rig.pool, &[0; 17]).unwrap_err();
    assert!(matches!(refused.error, Error::Argument { value: 17, max: 16, .. }));

    // As much of each buffer as the device takes.
    let driver = Scripted { operand: [OperandSpec::from_device().at_most(SLOT - 1)], ..refused.returned };
    let mut stream: Stream<'_, _, _, 4> = Stream::new(driver, rig.pool, &()).unwrap();
    let all: Vec<_> = (0..8).map(|_| rig.pool.take().unwrap()).collect();
    assert_eq!((stream.start(), stream.is_running()), (Err(Error::NoSlots { slots: 8 }), false));
    drop(all);
    let held: Vec<_> = (0..6).map(|_| rig.pool.take().unwrap()).collect();
    assert_eq!(stream.start(), Ok(2), "as many as the pool has");
    let mut frames = Vec::new();
    for slot in 0..2 {
        script.borrow_mut().polls.push_back(Ok(Some(Completion::of(slot))));
        let frame = stream.next(Timeout::NOW).unwrap().unwrap();
        assert_eq!(frame.buf.len_bytes(), SLOT - 1, "all that it may have written");
        frames.push(frame);
    }
    assert_eq!(stream.next(Timeout::NOW).unwrap_err(), Error::NoSlots { slots: 8 }, "nothing can come");
    // A frame that failed alone is an error and is counted; the stream goes on.
    stream.give_back(frames.pop().unwrap().buf).unwrap();
    drop((held, frames));
    script.borrow_mut().polls.push_back(Ok(Some(Completion { status: 1, failed: Some("asked for"), ..Completion::of(2) })));
    assert_eq!((stream.next(Timeout::NOW).unwrap_err(), stream.is_running(), stream.counts().failed), (FAULT, true, 1));
    assert!(stream.next(Timeout::NOW).unwrap().is_none());
    assert_eq!((stream.queue().len(), rig.pool.taken()), (4, 4));
    // A device that refuses a buffer is stopped, and no frame is asked for behind the program's
    // back.
    drop(stream.next(Timeout::NOW));
    script.borrow_mut().polls.push_back(Ok(Some(Completion::of(3))));
    let frame = stream.next(Timeout::NOW).unwrap().unwrap();
    script.borrow_mut().submit = Some(FAULT);
    assert_eq!((stream.give_back(frame.buf), stream.is_running()), (Err(FAULT), false));
    assert!(stream.next(Timeout::NOW).unwrap().is_none());
    script.borrow_mut().submit = None;
    assert_eq!(stream.start(), Ok(4));
}

/// A driver may keep the ends of jobs that had ended before a stop. Nobody takes them for the end
/// of a job that came after it.
#[test]
fn an_end_of_before_a_stop_is_no_later_jobs() {
    let rig = Rig::new();
    let (driver, script) = rig.driver(1, true);
    let mut engine = Engine::new(driver).unwrap();
    drop(engine.start([rig.pool.take().unwrap().from_device(..)], &()).unwrap());
    script.borrow_mut().polls.push_back(Ok(Some(Completion::of(0))));
    let job = engine.start([rig.pool.take().unwrap().from_device(..)], &()).unwrap();
    assert!(matches!(job.try_wait(), Ok(Attempt::Pending(_))), "the end was of the job before");

    let (driver, script) = rig.driver(4, true);
    let mut queue: Jobs<'_> = Queue::new(driver).unwrap();
    for _ in 0..2 {
        queue.push([rig.pool.take().unwrap().from_device(..)], &()).unwrap();
    }
    queue.stop().unwrap();
    script.borrow_mut().polls.extend([0, 1].map(|slot| Ok(Some(Completion::of(slot)))));
    assert_eq!(queue.take_back().unwrap().slot, 0, "also where the driver knows that it had ended");
    assert_eq!(queue.next_words(Timeout::NOW).unwrap().unwrap().completion.slot, 1);
    script.borrow_mut().polls.push_back(Ok(Some(Completion::of(1))));
    assert_eq!(queue.push([rig.pool.take().unwrap().from_device(..)], &()).unwrap(), 0);
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
