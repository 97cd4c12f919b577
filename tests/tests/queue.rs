//! A queue and a stream over a driver that does whatever a test wants: out of order, lying,
//! failing, panicking. It touches no memory; `camera` has the states on a device that does.
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that panics has failed, which is its purpose; implementing `Driver` is a promise"
)]

#[path = "queue/ends.rs"]
mod ends;
#[path = "queue/faults.rs"]
mod faults;
#[path = "queue/limits.rs"]
mod limits;
#[path = "queue/slots.rs"]
mod slots;
#[path = "queue/stream.rs"]
mod stream;

use contigo::{
    Align, Completion, CpuBuf, DevSlice, Done, Driver, Error, LocalPool, OneThread, OperandSpec, Queue, Region, Result, TypedDriver,
    forward,
    sim::{Sim, SimBoard},
};
use contigo_testkit::scripted;
use std::{cell::RefCell, collections::VecDeque, rc::Rc, time::Duration};

const SLOT: usize = 256;
const FAULT: Error = Error::Fault { device: "scripted", status: 1, what: "asked for" };
const STUCK: Error = Error::WillNotStop { device: "scripted", status: 2, waited_us: 3 };

/// The driver's next answers, and the calls that it got.
#[derive(Debug, Default)]
struct Script {
    polls: VecDeque<Result<Option<Completion>>>,
    submit: Option<Error>,
    stop: Option<Error>,
    panics_in: Option<&'static str>,
    slots: Vec<usize>,
    timeouts: Vec<Duration>,
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

#[derive(Debug)]
struct Scripted {
    script: Shared,
    device: scripted::Scripted,
    in_order: bool,
}

// SAFETY: it touches no memory and has no device.
unsafe impl Driver for Scripted {
    forward!(|this| this.device => name, port, addr_bits, operands, depth, check);
    fn in_order(&self) -> bool {
        self.in_order
    }
    unsafe fn submit(&mut self, slot: usize, _: &[DevSlice], _: &[u32]) -> Result<()> {
        let mut script = self.script.borrow_mut();
        script.slots.push(slot);
        script.panic_in("submit");
        script.submit.map_or(Ok(()), Err)
    }
    fn poll(&mut self, timeout: Duration) -> Result<Option<Completion>> {
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
    board: SimBoard,
    pool: &'static LocalPool<'static, 8>,
}

impl Rig {
    fn new() -> Self {
        let board = SimBoard::new(1);
        let region: &'static Region<Sim> = Box::leak(Box::new(Region::new(board.memory(64 * 1024).unwrap()).unwrap()));
        let pool = LocalPool::new(region.carve(8 * SLOT, Align::LINE).unwrap(), SLOT).unwrap();
        Self { board, pool: Box::leak(Box::new(pool)) }
    }

    fn driver(&self, depth: usize, in_order: bool) -> (Scripted, Shared) {
        let (script, device) = (Shared::default(), scripted::Scripted::new(self.board.port(), OperandSpec::from_device()));
        (Scripted { script: Rc::clone(&script), device: scripted::Scripted { depth, ..device }, in_order }, script)
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
