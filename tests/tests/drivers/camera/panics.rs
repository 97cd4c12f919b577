#![allow(unsafe_code, reason = "implementing `Driver` is a promise about the hardware")]
//! A driver whose methods panic while its device writes. The slots' bytes stay the device's until
//! it was stopped, and the board counts each access to others.

use super::*;
use contigo::forward;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A camera's driver, one of whose methods panics once.
struct Panics<'d> {
    camera: Camera,
    place: &'d Cell<&'static str>,
}

impl Panics<'_> {
    fn panic_in(&self, place: &str) {
        if self.place.get() == place {
            self.place.set("");
            panic!("asked for, in {place}");
        }
    }
}

// SAFETY: each method is the camera's, and one that panics leaves it as it was, or with a job more.
unsafe impl Driver for Panics<'_> {
    forward!(|this| this.camera => name, port, addr_bits, operands, depth, in_order, check,
        arm_irq, underruns);

    unsafe fn submit(&mut self, slot: usize, operands: &[DevSlice], words: &[u32]) -> Result<()> {
        // SAFETY: the caller's promise.
        let started = unsafe { self.camera.submit(slot, operands, words) };
        self.panic_in("submit");
        started
    }

    unsafe fn submit_more(&mut self, slot: usize, operands: &[DevSlice], _: &[u32]) -> Result<()> {
        // SAFETY: the caller's promise.
        let started = unsafe { self.camera.submit_more(slot, operands, &[]) };
        self.panic_in("submit_more");
        started
    }

    fn doorbell(&mut self) -> Result<()> {
        self.camera.doorbell()
    }

    fn poll(&mut self, timeout: Duration) -> Result<Option<Completion>> {
        self.panic_in("poll");
        self.camera.poll(timeout)
    }

    fn stop(&mut self) -> Result<()> {
        self.panic_in("stop");
        self.camera.stop()
    }
}

/// The bytes that the device wrote; none of them was anybody else's.
fn written(board: &SimBoard) -> u64 {
    let counts = board.counts();
    assert_eq!((counts.unowned_accesses, counts.stray_accesses), (0, 0));
    counts.bytes_written
}

fn in_a_queue(place: &'static str, port: fn(&SimBoard) -> Port) {
    let ((board, region, pool), panics) = (bench(9, 9, PACKET), Cell::new(""));
    let device = camera(spec(SourceConfig::default()), &board, port(&board));
    let camera = camera_of(&device, lines(&region, 8), 8).unwrap();
    let mut queue = Queue::new(Panics { camera, place: &panics }, 8).unwrap();
    for _ in 0..4 {
        queue.give(receives(&pool, ..));
    }
    panics.set(place);
    let panicked = catch_unwind(AssertUnwindSafe(|| match place {
        "submit" => queue.give(receives(&pool, ..)),
        "poll" => drop(queue.wait::<1>(Duration::ZERO)),
        _ => drop(queue.stop()),
    }));
    assert!(panicked.is_err());
    let inside = if place == "submit" { 5 } else { 4 };
    let before = written(&board);
    device.run_for(25).unwrap();
    assert!(written(&board) > before, "{place}: the device writes into its slots");
    assert_eq!((queue.len(), pool.taken()), (inside, inside), "{place}: nothing came out");
    queue.stop().unwrap();
    queue.drain::<1>();
    assert_eq!(pool.taken(), 0, "{place}");
    let before = written(&board);
    device.run_for(100).unwrap();
    assert_eq!(written(&board), before, "{place}: a stopped device writes nothing");
}

#[test]
fn panicked_drivers_slots_stay_devices() {
    for place in ["submit", "poll", "stop"] {
        in_a_queue(place, SimBoard::port);
        in_a_queue(place, SimBoard::coherent_port);
    }
}

/// A wait that panics leaves the job with the device, which is stopped before a byte comes back.
#[test]
fn panicked_wait_returns_bytes_after_stop() {
    let ((board, region, pool), panics) = (bench(9, 1, PACKET), Cell::new(""));
    let device = camera(spec(SourceConfig::default()), &board, board.port());
    let camera = camera_of(&device, lines(&region, 8), 8).unwrap();
    let mut queue = Queue::new(Panics { camera, place: &panics }, 1).unwrap();
    queue.give(receives(&pool, ..));
    device.run_for(5).unwrap();
    let before = written(&board);
    assert!(before > 0, "it is in the middle of a packet");
    panics.set("poll");
    assert!(catch_unwind(AssertUnwindSafe(|| drop(queue.wait::<1>(A_WHILE)))).is_err());
    assert_eq!(pool.taken(), 1, "it is the device's still");
    queue.clear().unwrap();
    assert_eq!(pool.taken(), 0);
    let before = written(&board);
    device.run_for(100).unwrap();
    assert_eq!(written(&board), before);
    // And the next job is whole.
    assert!(queue.run(receives(&pool, ..), &[], A_WHILE).is_ok());
}

/// A panic within a burst: no doorbell is rung for its jobs, which is an error until the queue is
/// stopped. All of them come back.
#[test]
fn panic_within_a_burst_rings_no_doorbell() {
    let ((board, region, pool), panics) = (bench(9, 3, PACKET), Cell::new(""));
    let device = camera(spec(SourceConfig::default()), &board, board.port());
    let camera = camera_of(&device, lines(&region, 8), 8).unwrap();
    let mut queue = Queue::new(Panics { camera, place: &panics }, 8).unwrap();
    queue.hold_doorbell();
    queue.give(receives(&pool, ..));
    panics.set("submit_more");
    let job = || drop(queue.submit(receives(&pool, ..), &[]));
    assert!(catch_unwind(AssertUnwindSafe(job)).is_err());
    let stopped = Error::QueueStopped { in_flight: 2 };
    assert_eq!(queue.ring_doorbell().unwrap_err().error, stopped);
    device.run_for(50).unwrap();
    assert!(queue.wait::<1>(Duration::ZERO).unwrap().is_none(), "a wait rings none either");
    assert_eq!((written(&board), pool.taken()), (0, 2));
    queue.stop().unwrap();
    assert_eq!(queue.drain::<1>(), 2);
    assert!(queue.run(receives(&pool, ..), &[], A_WHILE).is_ok());
}
