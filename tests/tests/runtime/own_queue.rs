//! A queue and a stream over a driver that does whatever a test wants: out of order, lying,
//! failing, panicking. It touches no memory; `camera` has the states on a device that does.

mod bursts;
mod ends;
mod faults;
mod limits;
mod slots;
mod stream;
mod waiting;

use contigo::job::Cancelled;
use contigo::mem::DevSlice;
use contigo::sim::SimBoard;
use contigo::{
    Completion, CpuBuf, Done, Driver, Error, Operand, OperandSpec, Pool, Queue, Region, Result,
    forward,
};
use contigo_testkit::scripted;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

const SLOT: usize = 256;
const FAULT: Error = Error::Fault { device: "scripted", status: 1, what: "asked for" };
const STUCK: Error = Error::WillNotStop { device: "scripted", status: 2, waited_us: 3 };

/// The driver's next answers, and the calls that it got.
#[derive(Debug, Default)]
struct Script {
    polls: VecDeque<Result<Option<Completion>>>,
    /// What the driver sees without a register.
    again: VecDeque<Result<Option<Completion>>>,
    /// What a poll says after the next submit.
    then: VecDeque<Result<Option<Completion>>>,
    submit: Option<Error>,
    stop: Option<Error>,
    panics_in: Option<&'static str>,
    slots: Vec<usize>,
    words: Vec<Vec<u32>>,
    timeouts: Vec<Duration>,
    stops: u32,
    doorbells: u32,
    /// Does it leave a burst alone until the doorbell?
    waits: bool,
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
    unsafe fn submit(&mut self, slot: usize, _: &[DevSlice], words: &[u32]) -> Result<()> {
        let mut script = self.script.borrow_mut();
        script.slots.push(slot);
        script.words.push(words.to_vec());
        script.panic_in("submit");
        let then = std::mem::take(&mut script.then);
        script.polls.extend(then);
        script.submit.map_or(Ok(()), Err)
    }
    fn poll(&mut self, timeout: Duration) -> Result<Option<Completion>> {
        let mut script = self.script.borrow_mut();
        script.timeouts.push(timeout);
        script.panic_in("poll");
        script.polls.pop_front().unwrap_or(Ok(None))
    }
    fn waits_for_doorbell(&self) -> bool {
        self.script.borrow().waits
    }
    fn doorbell(&mut self) -> Result<()> {
        self.script.borrow_mut().doorbells += 1;
        Ok(())
    }
    fn poll_again(&mut self) -> Result<Option<Completion>> {
        self.script.borrow_mut().again.pop_front().unwrap_or(Ok(None))
    }
    fn stop(&mut self) -> Result<()> {
        let mut script = self.script.borrow_mut();
        script.stops += 1;
        script.panic_in("stop");
        script.stop.map_or(Ok(()), Err)
    }
}

/// A board's memory, eight buffers of it, and a queue over a driver with a script.
struct Rig {
    board: SimBoard,
    region: Region,
    pool: Pool,
}

impl Rig {
    fn new() -> Self {
        let board = SimBoard::new(1);
        let region = Region::new(board.memory(64 * 1024).unwrap()).unwrap();
        Self::on(&board, region)
    }

    fn on(board: &SimBoard, region: Region) -> Self {
        let pool = region.pool(8, SLOT).unwrap();
        Self { board: board.clone(), region, pool }
    }

    fn driver(&self, depth: usize, in_order: bool) -> (Scripted, Shared) {
        let script = Shared::default();
        let device = scripted::Scripted::new(self.board.port(), OperandSpec::from_device());
        let device = scripted::Scripted { depth, ..device };
        (Scripted { script: Rc::clone(&script), device, in_order }, script)
    }

    /// A queue of four jobs.
    fn queue(&self, depth: usize, in_order: bool) -> (Queue<Scripted>, Shared) {
        let (driver, script) = self.driver(depth, in_order);
        (Queue::new(driver, 4).unwrap(), script)
    }

    fn operand(&self) -> Operand {
        self.pool.take().unwrap().from_device(..)
    }

    /// Submits `count` buffers; returns where each lies.
    fn submit(&self, queue: &mut Queue<Scripted>, count: usize) -> Vec<usize> {
        let one = |_| {
            let buf = self.pool.take().unwrap();
            let at = buf.offset_bytes();
            queue.submit([buf.from_device(..)], &[]).unwrap();
            at
        };
        (0..count).map(one).collect()
    }
}

/// The driver has these ends, and tells them when it is asked next.
fn ends(script: &Shared, slots: &[usize]) {
    script.borrow_mut().polls.extend(slots.iter().map(|slot| Ok(Some(Completion::of(*slot)))));
}

/// The driver has these ends, and tells the first one when it is asked next.
fn ends_at_once(script: &Shared, slots: &[usize]) {
    let mut told = slots.iter().map(|slot| Ok(Some(Completion::of(*slot))));
    script.borrow_mut().polls.extend(told.next());
    script.borrow_mut().again.extend(told);
}

/// The next end, if there is one now.
fn look(queue: &mut Queue<Scripted>) -> Option<Done<[CpuBuf; 1]>> {
    queue.wait(Duration::ZERO).unwrap()
}

fn at(done: &Done<[CpuBuf; 1]>) -> usize {
    done.buffers[0].offset_bytes()
}

/// Where the buffers of a stopped queue lie, in the order in which they come back.
fn taken_back(queue: &mut Queue<Scripted>) -> Vec<usize> {
    let jobs = std::iter::from_fn(|| queue.take_back().unwrap());
    jobs.map(|Cancelled { buffers: [buf], .. }| buf.into_cpu().unwrap().offset_bytes()).collect()
}
