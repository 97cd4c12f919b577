//! On every way back from a device there is a barrier between the look that saw its end and the
//! CPU's first look at the bytes. On every way to one there is a barrier between the CPU's last
//! stores and the doorbell.
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that panics has failed, which is its purpose; nothing touches memory"
)]

use crate::{
    job::{Attempt, Completion, Driver, Engine, JobError, OperandSpec, Queue, Running, TypedDriver},
    mem::{CpuBuf, DevSlice, DriverBuf, Port, Region},
    sim::SimBoard,
    types::{
        Align, Direction, Error,
        barrier::count::{AT_THE_END, AT_THE_START, COMPLETIONS, DOORBELLS},
    },
};
use core::time::Duration;

fn the_end_is_seen() {
    AT_THE_END.set(COMPLETIONS.get());
}

const FAULT: Error = Error::Fault { device: "scripted", status: 1, what: "asked for" };

/// The answers of the device.
#[derive(Debug)]
struct Scripted {
    port: Port,
    start: Result<(), Error>,
    poll: Result<Option<Completion>, Error>,
}

// SAFETY: it touches no memory.
unsafe impl Driver for Scripted {
    fn name(&self) -> &'static str {
        "scripted"
    }
    fn addr_bits(&self) -> u32 {
        64
    }
    fn operands(&self) -> &[OperandSpec] {
        const { &[OperandSpec::from_device()] }
    }
    fn port(&self) -> &Port {
        &self.port
    }
    fn check(&self, _: &[DevSlice], _: &[u32]) -> Result<(), Error> {
        Ok(())
    }
    unsafe fn submit(&mut self, _: usize, _: &[DevSlice], _: &[u32]) -> Result<(), Error> {
        AT_THE_START.set(DOORBELLS.get());
        self.start
    }
    fn poll(&mut self, _: Duration) -> Result<Option<Completion>, Error> {
        the_end_is_seen();
        self.poll
    }
    fn stop(&mut self) -> Result<(), Error> {
        the_end_is_seen();
        Ok(())
    }
}

impl TypedDriver<1> for Scripted {
    crate::job::no_report!();
}

const ENDED: Result<Option<Completion>, Error> = Ok(Some(Completion::of(0)));

type Job<'e, 'p> = Running<'e, 'p, Scripted, 1>;
type Way = (&'static str, Result<(), Error>, Result<Option<Completion>, Error>, fn(Job<'_, '_>));

fn failed<B>(failed: &JobError<B>) {
    assert!(failed.buffers.is_some());
}

/// By a job: what `submit` and `poll` answer, and how it ends.
const JOBS: [Way; 9] = [
    ("wait", Ok(()), ENDED, |job| drop(job.wait(Duration::ZERO).unwrap())),
    ("wait_device", Ok(()), ENDED, |job| core::mem::forget(job.wait_device(Duration::ZERO).unwrap())),
    ("try_wait", Ok(()), ENDED, |job| assert!(matches!(job.try_wait(), Ok(Attempt::Done(_))))),
    ("wait_device_for", Ok(()), ENDED, |job| core::mem::forget(job.wait_device_for(Duration::ZERO).unwrap())),
    ("a timeout", Ok(()), Ok(None), |job| core::mem::forget(job.wait(Duration::ZERO).inspect_err(failed).unwrap_err())),
    ("a fault", Ok(()), Err(FAULT), |job| core::mem::forget(job.wait_device(Duration::ZERO).inspect_err(failed).unwrap_err())),
    ("a fault that one look finds", Ok(()), Err(FAULT), |job| core::mem::forget(job.try_wait().inspect_err(failed).unwrap_err())),
    ("a job that is dropped", Ok(()), ENDED, |job| drop(job)),
    ("a start that fails", Err(FAULT), ENDED, |_| panic!("it fails")),
];

#[test]
fn every_way_back_has_a_barrier() {
    let board = SimBoard::new(1);
    let region = Region::new(board.memory(64 * 1024).unwrap()).unwrap();
    let buf = || region.carve(64, Align::LINE).unwrap().into_buf();
    for port in [board.port(), board.coherent_port()] {
        let passed = |way: &str| assert!(COMPLETIONS.get() > AT_THE_END.get(), "{way}, {}", port.name);
        for (way, start, poll, end) in JOBS {
            let mut engine = Engine::new(Scripted { port, start, poll }).unwrap();
            match engine.start([buf().from_device(..)], &()) {
                Ok(job) => end(job),
                Err(refused) => core::mem::forget(refused.buffers.unwrap()),
            }
            passed(way);
        }
        let handed_over = || {
            // SAFETY: nothing is told the address.
            let buf = unsafe { buf().hand_over(&port, 64, .., Direction::FromDevice) }.unwrap();
            the_end_is_seen();
            buf
        };
        let _cpu: CpuBuf<'_> = handed_over().into_cpu().unwrap();
        passed("into_cpu");
        drop(handed_over());
        passed("a device's buffer that is dropped");
        let mut queue: Queue<'_, _, 1> = Queue::new(Scripted { port, start: Ok(()), poll: ENDED }).unwrap();
        queue.push([buf().from_device(..)], &()).unwrap();
        core::mem::forget(queue.next_device(Duration::ZERO).unwrap());
        passed("a queue's next");
        queue.push([buf().from_device(..)], &()).unwrap();
        queue.stop().unwrap();
        core::mem::forget(queue.take_back().unwrap());
        passed("a job that is taken back");
        let other = if port.coherent { board.port() } else { board.coherent_port() };
        // SAFETY: as above.
        let _dev = unsafe { handed_over().hand_over(&other, 64, .., Direction::ToDevice) }.unwrap();
        passed("on to a port of the other kind");
        let mut memory = DriverBuf::new(buf(), &port, 64).unwrap();
        the_end_is_seen();
        memory.read(0, &mut [0]).unwrap();
        passed("a look at a driver's memory");
        the_end_is_seen();
        // SAFETY: nothing is told the address.
        let _cpu: CpuBuf<'_> = unsafe { memory.release() }.into_cpu().unwrap();
        passed("a driver's memory");
    }
}

/// The other direction: between the CPU's last stores and the device's first look, where no cache
/// is cleaned too.
#[test]
fn every_way_to_a_device_has_a_barrier() {
    let board = SimBoard::new(1);
    let region = Region::new(board.memory(4096).unwrap()).unwrap();
    let buf = || region.carve(64, Align::LINE).unwrap().into_buf();
    for port in [board.port(), board.coherent_port()] {
        let mut engine = Engine::new(Scripted { port, start: Ok(()), poll: ENDED }).unwrap();
        let before = DOORBELLS.get();
        drop(engine.start([buf().from_device(..)], &()).unwrap());
        assert!(AT_THE_START.get() > before, "a job, {}", port.name);

        let mut queue: Queue<'_, _, 1> = Queue::new(Scripted { port, start: Ok(()), poll: ENDED }).unwrap();
        let before = DOORBELLS.get();
        queue.push([buf().from_device(..)], &()).unwrap();
        assert!(AT_THE_START.get() > before, "a queue, {}", port.name);

        let before = DOORBELLS.get();
        // SAFETY: nothing is told the address.
        let dev = unsafe { buf().hand_over(&port, 64, .., Direction::ToDevice) }.unwrap();
        let first = DOORBELLS.get();
        // SAFETY: as above.
        let dev = unsafe { dev.hand_over(&port, 64, .., Direction::ToDevice) }.unwrap();
        assert!(first > before && DOORBELLS.get() > first, "a hand-over, and one more, {}", port.name);
        drop(dev);

        let mut memory = DriverBuf::new(buf(), &port, 64).unwrap();
        let before = DOORBELLS.get();
        // SAFETY: no device looks.
        unsafe { memory.write(0, &[1]) }.unwrap();
        assert!(DOORBELLS.get() > before, "a driver's memory, {}", port.name);
        // SAFETY: nothing was told the address.
        drop(unsafe { memory.release() });
    }
}
