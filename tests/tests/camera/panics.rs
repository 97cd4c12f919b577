#![allow(unsafe_code, reason = "implementing `Driver` is a promise about the hardware")]
//! A driver whose methods panic while its device writes. The slots' bytes stay the device's until
//! it was stopped, and the board counts each access to others.

use super::{A_WHILE, Camera, PACKET, camera, camera_of, ring, spec};
use contigo::{
    Align, Completion, DevSlice, Driver, Engine, Pool, Port, Queue, Region, Result, TypedDriver, forward,
    sim::{SimBoard, stream::SourceConfig},
};
use std::{
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

/// A camera's driver, one of whose methods panics once.
struct Panics<'p, 'd> {
    camera: Camera<'p>,
    place: &'d Cell<&'static str>,
}

impl Panics<'_, '_> {
    fn panic_in(&self, place: &str) {
        if self.place.get() == place {
            self.place.set("");
            panic!("asked for, in {place}");
        }
    }
}

// SAFETY: each method is the camera's, and one that panics leaves it as it was, or with a job more.
unsafe impl Driver for Panics<'_, '_> {
    forward!(|this| this.camera => name, port, addr_bits, operands, depth, in_order, check, arm_irq, ran_dry);

    unsafe fn submit(&mut self, slot: usize, operands: &[DevSlice], words: &[u32]) -> Result<()> {
        // SAFETY: the caller's promise.
        let started = unsafe { self.camera.submit(slot, operands, words) };
        self.panic_in("submit");
        started
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

impl<'p, 'd> TypedDriver<1> for Panics<'p, 'd> {
    type Args = ();
    type Words = <Camera<'p> as TypedDriver<1>>::Words;
    type Report = <Camera<'p> as TypedDriver<1>>::Report;

    fn words(args: &()) -> Self::Words {
        <Camera<'p> as TypedDriver<1>>::words(args)
    }

    fn report(&self, completion: &Completion) -> Self::Report {
        self.camera.report(completion)
    }
}

/// The bytes that the device wrote; none of them was anybody else's.
fn written(board: &SimBoard) -> u64 {
    let counts = board.counts();
    assert_eq!((counts.unowned_accesses, counts.stray_accesses), (0, 0));
    counts.bytes_written
}

fn in_a_queue(place: &'static str, port: fn(&SimBoard) -> Port) {
    let (board, panics) = (SimBoard::new(9), Cell::new(""));
    let region = Region::new(board.memory(64 * 1024).unwrap()).unwrap();
    let pool = Pool::<9>::new(region.carve(9 * PACKET, Align::PAGE).unwrap(), PACKET).unwrap();
    let device = camera(spec(SourceConfig::default()), &board, port(&board));
    let camera = camera_of(device.window().unwrap(), ring(&region, 8), 8).unwrap();
    let mut queue: Queue<'_, Panics<'_, '_>, 8> = Queue::new(Panics { camera, place: &panics }).unwrap();
    for _ in 0..4 {
        queue.push([pool.take().unwrap().from_device(..)], &()).unwrap();
    }
    panics.set(place);
    let panicked = catch_unwind(AssertUnwindSafe(|| match place {
        "submit" => drop(queue.push([pool.take().unwrap().from_device(..)], &())),
        "poll" => drop(queue.next(Duration::ZERO)),
        _ => drop(queue.stop()),
    }));
    assert!(panicked.is_err());
    let inside = if place == "submit" { 5 } else { 4 };
    let before = written(&board);
    device.run_for(25).unwrap();
    assert!(written(&board) > before, "{place}: the device writes into its slots");
    assert_eq!((queue.len(), pool.taken()), (inside, inside), "{place}: nothing came out");
    queue.stop().unwrap();
    while let Some(done) = queue.next(Duration::ZERO).unwrap() {
        drop(done);
    }
    while let Some(cancelled) = queue.take_back() {
        drop(cancelled);
    }
    assert_eq!(pool.taken(), 0, "{place}");
    let before = written(&board);
    device.run_for(100).unwrap();
    assert_eq!(written(&board), before, "{place}: a stopped device writes nothing");
}

#[test]
fn the_slots_of_a_driver_that_panicked_stay_the_devices() {
    for place in ["submit", "poll", "stop"] {
        in_a_queue(place, SimBoard::port);
        in_a_queue(place, SimBoard::coherent_port);
    }
}

/// The panic of a wait drops the job: the device is stopped before a byte comes back.
#[test]
fn a_wait_that_panics_stops_the_device_first() {
    let (board, panics) = (SimBoard::new(9), Cell::new(""));
    let region = Region::new(board.memory(64 * 1024).unwrap()).unwrap();
    let pool = Pool::<1>::new(region.carve(PACKET, Align::PAGE).unwrap(), PACKET).unwrap();
    let device = camera(spec(SourceConfig::default()), &board, board.port());
    let camera = camera_of(device.window().unwrap(), ring(&region, 8), 8).unwrap();
    let mut engine = Engine::<_, 1>::new(Panics { camera, place: &panics }).unwrap();
    let job = engine.start([pool.take().unwrap().from_device(..)], &()).unwrap();
    device.run_for(5).unwrap();
    let before = written(&board);
    assert!(before > 0, "it is in the middle of a packet");
    panics.set("poll");
    assert!(catch_unwind(AssertUnwindSafe(|| drop(job.wait(A_WHILE)))).is_err());
    assert_eq!(pool.taken(), 0);
    let before = written(&board);
    device.run_for(100).unwrap();
    assert_eq!(written(&board), before);
    // And the next job is whole.
    let job = engine.start([pool.take().unwrap().from_device(..)], &()).unwrap();
    assert_eq!(job.wait(A_WHILE).unwrap().buffers.len(), 1);
}
