//! On every path back from a device there is a barrier between the poll that saw its end and the
//! CPU's first read of the bytes. On every path to a device there is a barrier between the CPU's
//! last stores and the doorbell.
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that panics has failed, which is its purpose; nothing touches memory"
)]

use crate::job::{Completion, Driver, JobError, OperandSpec, Queue};
use crate::mem::region::tests::{PORT, region};
use crate::mem::{CpuBuf, DevSlice, DriverBuf, Limits, Port};
use crate::types::barrier::count::{AT_THE_END, AT_THE_START, COMPLETIONS, DOORBELLS};
use crate::types::{Align, Direction, Error};
use core::time::Duration;

fn the_end_is_seen() {
    AT_THE_END.set(COMPLETIONS.get());
}

/// One port that snoops, and one that does not.
const PORTS: [Port; 2] = [PORT, Port { name: "coherent", coherent: true, ..PORT }];

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

const ENDED: Result<Option<Completion>, Error> = Ok(Some(Completion::of(0)));

type Jobs = Queue<Scripted>;
type Way = (&'static str, Result<(), Error>, Result<Option<Completion>, Error>, fn(Jobs));

fn failed<B>(failed: &JobError<B>) {
    assert!(failed.buffers.is_some());
}

/// For each job: what `submit` and `poll` answer, and how it ends.
const JOBS: [Way; 7] = [
    ("wait", Ok(()), ENDED, |mut jobs| drop(jobs.wait::<1>(Duration::ZERO).unwrap())),
    ("wait_device", Ok(()), ENDED, |mut jobs| {
        core::mem::forget(jobs.wait_device::<1>(Duration::ZERO).unwrap())
    }),
    ("try_next", Ok(()), ENDED, |mut jobs| assert!(matches!(jobs.try_next::<1>(), Ok(Some(_))))),
    ("a fault", Ok(()), Err(FAULT), |mut jobs| {
        assert!(jobs.wait::<1>(Duration::ZERO).is_err());
        core::mem::forget(jobs.take_back::<1>().unwrap());
    }),
    ("a fault that one poll finds", Ok(()), Err(FAULT), |mut jobs| {
        assert!(jobs.try_next::<1>().is_err());
        core::mem::forget(jobs.take_back::<1>().unwrap());
    }),
    ("a queue that is dropped", Ok(()), ENDED, |jobs| drop(jobs)),
    ("a job that is taken back", Ok(()), ENDED, |mut jobs| {
        jobs.stop().unwrap();
        core::mem::forget(jobs.take_back::<1>().unwrap());
    }),
];

#[test]
fn every_way_back_has_a_barrier() {
    let (region, _) = region(64 * 1024, Limits::default());
    let buf = || region.alloc(64, Align::LINE).unwrap();
    for port in PORTS {
        let passed =
            |way: &str| assert!(COMPLETIONS.get() > AT_THE_END.get(), "{way}, {}", port.name);
        for (way, start, poll, end) in JOBS {
            let mut jobs = Queue::new(Scripted { port, start, poll }, 1).unwrap();
            jobs.submit([buf().from_device(..)], &[]).unwrap();
            end(jobs);
            passed(way);
        }
        for (way, start, poll) in [
            ("a run", Ok(()), ENDED),
            ("a timeout", Ok(()), Ok(None)),
            ("a run that fails", Ok(()), Err(FAULT)),
            ("a start that fails", Err(FAULT), ENDED),
        ] {
            let mut jobs = Queue::new(Scripted { port, start, poll }, 1).unwrap();
            let ended = jobs.run([buf().from_device(..)], &[], Duration::ZERO).inspect_err(failed);
            assert_eq!(ended.is_ok(), way == "a run");
            core::mem::forget(ended);
            passed(way);
        }
        let handed_over = || {
            // SAFETY: no device receives the address.
            let buf = unsafe { buf().hand_over(&port, 64, .., Direction::FromDevice) }.unwrap();
            the_end_is_seen();
            buf
        };
        let _cpu: CpuBuf = handed_over().into_cpu().unwrap();
        passed("into_cpu");
        drop(handed_over());
        passed("a device's buffer that is dropped");
        let other = if port.coherent { PORTS[0] } else { PORTS[1] };
        // SAFETY: as above.
        let _dev = unsafe { handed_over().hand_over(&other, 64, .., Direction::ToDevice) }.unwrap();
        passed("on to a port of the other kind");
        let mut memory = DriverBuf::new(buf(), &port, 64).unwrap();
        the_end_is_seen();
        memory.read(0, &mut [0]).unwrap();
        passed("a look at a driver's memory");
        the_end_is_seen();
        // SAFETY: no device receives the address.
        let _cpu: CpuBuf = unsafe { memory.release() }.into_cpu().unwrap();
        passed("a driver's memory");
    }
}

/// The other direction: between the CPU's last stores and the device's first read, also where no
/// cache is cleaned.
#[test]
fn every_way_to_a_device_has_a_barrier() {
    let (region, _) = region(4096, Limits::default());
    let buf = || region.alloc(64, Align::LINE).unwrap();
    for port in PORTS {
        let mut queue = Queue::new(Scripted { port, start: Ok(()), poll: ENDED }, 1).unwrap();
        let before = DOORBELLS.get();
        drop(queue.run([buf().from_device(..)], &[], Duration::ZERO).unwrap());
        assert!(AT_THE_START.get() > before, "a run, {}", port.name);

        let before = DOORBELLS.get();
        queue.submit([buf().from_device(..)], &[]).unwrap();
        assert!(AT_THE_START.get() > before, "a job, {}", port.name);

        let before = DOORBELLS.get();
        // SAFETY: no device receives the address.
        let dev = unsafe { buf().hand_over(&port, 64, .., Direction::ToDevice) }.unwrap();
        let first = DOORBELLS.get();
        // SAFETY: as above.
        let dev = unsafe { dev.hand_over(&port, 64, .., Direction::ToDevice) }.unwrap();
        assert!(
            first > before && DOORBELLS.get() > first,
            "a hand-over, and one more, {}",
            port.name
        );
        drop(dev);

        let mut memory = DriverBuf::new(buf(), &port, 64).unwrap();
        let before = DOORBELLS.get();
        // SAFETY: no device reads it.
        unsafe { memory.write(0, &[1]) }.unwrap();
        assert!(DOORBELLS.get() > before, "a driver's memory, {}", port.name);
        // SAFETY: no device received the address.
        drop(unsafe { memory.release() });
    }
}
