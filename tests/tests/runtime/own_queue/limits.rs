//! Limits: of time, of jobs, of operands and of words. What is beyond one is refused before
//! anything is done.

use super::{Rig, Shared, ends};
use contigo::hw::{poll_every, poll_until};
use contigo::job::queue_bytes;
use contigo::types::{MAX_TIMEOUT, timeout_us};
use contigo::{Completion, Error, Queue, Result, Stream, Wait};
use std::cell::Cell;
use std::mem::MaybeUninit;
use std::time::Duration;

const NS: Duration = Duration::from_nanos(1);
/// No wait, the shortest, one that is no whole number of microseconds, and the longest, with their
/// microseconds.
const FINE: [(Duration, u32); 4] = [
    (Duration::ZERO, 0),
    (NS, 1),
    (Duration::from_nanos(20_001), 21),
    (MAX_TIMEOUT, 3_600_000_000),
];
/// An hour and a little, and the longest that can be written, with what the error says.
const TOO_LONG: [(Duration, u64); 2] =
    [(MAX_TIMEOUT.saturating_add(NS), 3_600_000_001), (Duration::MAX, u64::MAX)];

fn refusal(value: u64) -> Error {
    let name = "time limit in microseconds";
    Error::Argument { name, value, min: 0, max: 3_600_000_000, multiple_of: 1 }
}

/// A clock that advances only in a wait.
#[derive(Default)]
struct Clock {
    now_us: Cell<u64>,
    asked: Cell<u32>,
}

impl Wait for Clock {
    fn now_us(&self) -> u64 {
        self.asked.set(self.asked.get() + 1);
        self.now_us.get()
    }
    fn wait_at_most(&self, timeout_us: u32) -> Result<()> {
        self.now_us.set(self.now_us.get() + u64::from(timeout_us));
        Ok(())
    }
}

#[test]
fn a_wait_lasts_as_long_as_its_limit_says() {
    for (limit, us) in FINE {
        let (clock, mut looks) = (Clock::default(), 0);
        let done = poll_until(&clock, limit, |_| {
            looks += 1;
            false
        });
        assert_eq!((done, clock.now_us.get()), (Ok(false), us.into()), "{limit:?}");
        assert_eq!(timeout_us(limit), Ok(us), "{limit:?}");
        if limit.is_zero() {
            assert_eq!((looks, clock.asked.get()), (1, 0), "one look, and no system call");
        }
    }
    for (limit, value) in TOO_LONG {
        let (clock, refused) = (Clock::default(), Err(refusal(value)));
        assert_eq!(poll_until(&clock, limit, |_| panic!("a look")), refused);
        assert_eq!(poll_every(&clock, 1, limit, |_| panic!("a look")), refused);
        assert_eq!((clock.asked.get(), timeout_us(limit)), (0, Err(refusal(value))));
    }
}

/// How often the driver was asked, stopped and given a job.
fn calls(script: &Shared) -> (usize, u32, usize) {
    let script = script.borrow();
    (script.timeouts.len(), script.stops, script.slots.len())
}

#[test]
fn run_passes_its_time_limit_on() {
    let rig = Rig::new();
    let (mut queue, script) = rig.queue(1, true);
    for (limit, timeout_us) in FINE {
        let failed = queue.run([rig.operand()], &[], limit).unwrap_err();
        assert_eq!(failed.error, Error::Timeout { timeout_us });
        assert!(script.borrow().timeouts.contains(&limit), "as it was said");
    }
    for (limit, value) in TOO_LONG {
        let before = calls(&script);
        let failed = queue.run([rig.operand()], &[], limit).unwrap_err();
        let [operand] = failed.buffers.unwrap();
        assert!(failed.error == refusal(value) && operand.into_buf().is_ok(), "the CPU's still");
        assert_eq!(calls(&script), before, "nothing was done");
    }
    assert_eq!((rig.pool.taken(), queue.is_stopped()), (0, false));
}

#[test]
fn a_queue_refuses_a_limit_and_its_jobs_go_on() {
    let rig = Rig::new();
    let (mut queue, script) = rig.queue(4, true);
    rig.submit(&mut queue, 2);
    for (limit, value) in TOO_LONG {
        let before = calls(&script);
        let refused = queue.wait::<1>(limit).unwrap_err();
        assert_eq!((refused.error, refused.buffers.is_none()), (refusal(value), true));
        let refused = queue.wait_device::<1>(limit).unwrap_err();
        assert_eq!((refused.error, refused.buffers.is_none()), (refusal(value), true));
        let refused = queue.wait_each(limit, |_, _, _| panic!("a buffer")).unwrap_err();
        assert_eq!(refused.error, refusal(value));
        assert_eq!(calls(&script), before, "nothing was done");
        assert!(queue.len() == 2 && !queue.is_stopped());
    }
    for (limit, _) in FINE {
        assert!(queue.wait::<1>(limit).unwrap().is_none());
        assert_eq!(script.borrow().timeouts.last(), Some(&limit));
    }
    ends(&script, &[0]);
    assert!(queue.wait::<1>(MAX_TIMEOUT).unwrap().is_some());
    // Also one that has no job.
    let (mut empty, _) = rig.queue(4, true);
    assert_eq!(empty.wait::<1>(Duration::MAX).unwrap_err().error, refusal(u64::MAX));
}

#[test]
fn a_queue_says_what_is_beyond_its_limits() {
    let value = |name, value, min, max| Error::Argument { name, value, min, max, multiple_of: 1 };
    let rig = Rig::new();
    for jobs in [0, 4_097] {
        let refused = Queue::new(rig.driver(1, true).0, jobs).unwrap_err();
        assert_eq!(refused.error, value("the count of jobs", jobs as u64, 1, 4_096));
    }
    let (mut queue, script) = rig.queue(4, true);
    let refused = queue.submit([rig.operand()], &[0; 65]).unwrap_err();
    assert_eq!(refused.error, value("the count of argument words", 65, 0, 64));
    assert!(refused.buffers.is_some());
    let refused = queue.run([rig.operand(), rig.operand()], &[], Duration::ZERO).unwrap_err();
    assert_eq!(refused.error, value("the count of operands", 2, 1, 1));
    assert!(refused.buffers.is_some());
    // Another count of buffers than the jobs have: nothing is looked at, and nothing is lost.
    rig.submit(&mut queue, 1);
    let looks = script.borrow().timeouts.len();
    let count = value("the count of a job's buffers", 2, 1, 1);
    assert_eq!(queue.wait::<2>(Duration::ZERO).unwrap_err().error, count);
    queue.stop().unwrap();
    assert_eq!(queue.take_back::<2>().unwrap_err(), count);
    assert_eq!((script.borrow().timeouts.len(), queue.len()), (looks, 1));
    // All places are in use.
    queue.clear().unwrap();
    rig.submit(&mut queue, 4);
    let full = queue.submit([rig.operand()], &[]).unwrap_err();
    assert_eq!((full.error, full.buffers.is_some()), (Error::QueueFull { depth: 4 }, true));
}

#[test]
fn stream_checks_its_time_limit_first() {
    let rig = Rig::new();
    let (driver, script) = rig.driver(4, true);
    let mut stream = Stream::new(driver, rig.pool.clone(), 4, &[]).unwrap();
    let held: Vec<_> = (0..7).map(|_| rig.pool.take().unwrap()).collect();
    assert_eq!(stream.start(), Ok(1));
    drop(held);
    for (limit, value) in TOO_LONG {
        assert_eq!(stream.next(limit).unwrap_err(), refusal(value));
        assert_eq!(script.borrow().slots.len(), 1);
        assert!(stream.is_running() && stream.counts().failed == 0);
    }
    for (limit, _) in FINE {
        assert!(stream.next(limit).unwrap().is_none());
        assert_eq!(script.borrow().timeouts.last(), Some(&limit));
    }
    assert_eq!(script.borrow().slots.len(), 4, "it has a buffer in each place");
}

#[test]
fn queue_lies_anywhere_in_given_memory() {
    const BYTES: usize = match queue_bytes(4, 1) {
        Ok(bytes) => bytes,
        Err(_) => panic!("out of range"),
    };
    let rig = Rig::new();
    for begins in 0..64 {
        let memory: &'static mut [_] =
            Box::leak(vec![MaybeUninit::<u8>::uninit(); BYTES + 64].into_boxed_slice());
        let skip = memory.as_ptr().align_offset(64) + begins;
        let memory = &mut memory[skip % 64..][..BYTES];
        let (driver, script) = rig.driver(1, true);
        let mut queue = Queue::with_memory(driver, 4, memory).unwrap();
        script.borrow_mut().then.push_back(Ok(Some(Completion::of(0))));
        drop(queue.run([rig.operand()], &[], Duration::ZERO).unwrap());
        rig.submit(&mut queue, 4);
    }
    assert_eq!(rig.pool.taken(), 0);
    let small = Box::leak(Box::new([MaybeUninit::uninit(); 100]));
    let refused = Queue::with_memory(rig.driver(1, true).0, 4, small).unwrap_err();
    assert_eq!(refused.error, Error::Exhausted { need_bytes: BYTES, capacity_bytes: 100 });
    assert_eq!(refused.into_returned().1.len(), 100);
}
