//! Time limits: what each may be, and that one that is too long is told before anything is done.

use super::{Rig, SLOT};
use contigo::{Attempt, Completion, Engine, Error, MAX_TIMEOUT, Result, Stream, Wait};
use std::{cell::Cell, time::Duration};

const NS: Duration = Duration::from_nanos(1);
/// No wait, the shortest, one that is no whole number of microseconds, and the longest, with their
/// microseconds.
const FINE: [(Duration, u32); 4] = [(Duration::ZERO, 0), (NS, 1), (Duration::from_nanos(20_001), 21), (MAX_TIMEOUT, 3_600_000_000)];
/// An hour and a little, and the longest that can be written, with what the error says.
const TOO_LONG: [(Duration, u64); 2] = [(MAX_TIMEOUT.saturating_add(NS), 3_600_000_001), (Duration::MAX, u64::MAX)];

fn refusal(value: u64) -> Error {
    Error::Argument { name: "time limit in microseconds", value, min: 0, max: 3_600_000_000, multiple_of: 1 }
}

/// A clock that goes only while somebody waits.
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
        let done = contigo::poll_until(&clock, limit, |_| {
            looks += 1;
            false
        });
        assert_eq!((done, clock.now_us.get(), contigo::timeout_us(limit)), (Ok(false), us.into(), Ok(us)), "{limit:?}");
        if limit.is_zero() {
            assert_eq!((looks, clock.asked.get()), (1, 0), "one look, and no system call");
        }
    }
    for (limit, value) in TOO_LONG {
        let (clock, refused) = (Clock::default(), Err(refusal(value)));
        assert_eq!(contigo::poll_until(&clock, limit, |_| panic!("a look")), refused);
        assert_eq!(contigo::poll_every(&clock, 1, limit, |_| panic!("a look")), refused);
        assert_eq!((clock.asked.get(), contigo::timeout_us(limit)), (0, Err(refusal(value))));
    }
}

#[test]
fn an_engine_passes_a_limit_on_or_gives_the_buffers_back() {
    for how in 0..4 {
        let rig = Rig::new();
        let (driver, script) = rig.driver(1, true);
        let mut engine: Engine<_, 1> = Engine::new(driver).unwrap();
        for (limit, us) in FINE {
            let job = engine.start([rig.pool.take().unwrap().from_device(..)], &()).unwrap();
            let late = Error::Timeout { timeout_us: us };
            match how {
                0 => assert_eq!(job.wait(limit).unwrap_err().error, late),
                1 => assert_eq!(job.wait_device(limit).unwrap_err().error, late),
                2 => assert!(matches!(job.wait_for(limit).unwrap(), Attempt::Pending(_))),
                _ => assert!(matches!(job.wait_device_for(limit).unwrap(), Attempt::Pending(_))),
            }
            assert_eq!(script.borrow().timeouts.last(), Some(&limit), "as it was said");
            engine.recover().unwrap();
        }
        for (limit, value) in TOO_LONG {
            let job = engine.start([rig.pool.take().unwrap().from_device(..)], &()).unwrap();
            let (looks, stops) = (script.borrow().timeouts.len(), script.borrow().stops);
            let failed = match how {
                0 => job.wait(limit).unwrap_err(),
                1 => job.wait_device(limit).unwrap_err(),
                2 => job.wait_for(limit).unwrap_err(),
                _ => job.wait_device_for(limit).unwrap_err(),
            };
            assert_eq!((failed.error, failed.cause, failed.buffers.is_some()), (refusal(value), refusal(value), true));
            assert_eq!((script.borrow().timeouts.len(), script.borrow().stops), (looks, stops + 1), "stopped, and not looked at");
            drop(failed);
            assert!(!engine.is_busy() && rig.pool.taken() == 0);
        }
    }
}

#[test]
fn a_queue_refuses_a_limit_and_its_jobs_go_on() {
    let rig = Rig::new();
    let (mut queue, script) = rig.queue(4, true);
    rig.push(&mut queue, 2);
    for (limit, value) in TOO_LONG {
        let (looks, stops) = (script.borrow().timeouts.len(), script.borrow().stops);
        let refused = [
            queue.next(limit).map(drop).map_err(|failed| (failed.error, failed.buffers.is_some())),
            queue.next_device(limit).map(drop).map_err(|failed| (failed.error, failed.buffers.is_some())),
            queue.next_words(limit).map(drop).map_err(|failed| (failed.error, failed.buffers.is_some())),
            queue.next_each(limit, |_, _, _| panic!("a buffer")).map(drop).map_err(|failed| (failed.error, failed.buffers.is_some())),
        ];
        assert_eq!(refused, [Err((refusal(value), false)); 4]);
        assert_eq!((script.borrow().timeouts.len(), script.borrow().stops), (looks, stops), "nothing was done");
        assert!(queue.len() == 2 && !queue.is_stopped());
    }
    for (limit, _) in FINE {
        assert!(queue.next(limit).unwrap().is_none() && script.borrow().timeouts.last() == Some(&limit));
    }
    script.borrow_mut().polls.push_back(Ok(Some(Completion::of(0))));
    assert!(queue.next(MAX_TIMEOUT).unwrap().is_some());
    // Also one that has no job.
    let (mut empty, _) = rig.queue(4, true);
    assert_eq!(empty.next(Duration::MAX).unwrap_err().error, refusal(u64::MAX));
}

#[test]
fn a_stream_refuses_a_limit_before_it_gives_the_device_a_buffer() {
    let rig = Rig::new();
    let (driver, script) = rig.driver(4, true);
    let mut stream: Stream<'_, _, _, 4> = Stream::new(driver, rig.pool, &()).unwrap();
    let held: Vec<_> = (0..7).map(|_| rig.pool.take().unwrap()).collect();
    assert_eq!((held[0].len_bytes(), stream.start()), (SLOT, Ok(1)));
    drop(held);
    for (limit, value) in TOO_LONG {
        assert_eq!(stream.next(limit).unwrap_err(), refusal(value));
        assert_eq!(stream.next_words(limit).unwrap_err(), refusal(value));
        assert_eq!((script.borrow().slots.len(), stream.is_running(), stream.counts().failed), (1, true, 0));
    }
    for (limit, _) in FINE {
        assert!(stream.next(limit).unwrap().is_none() && script.borrow().timeouts.last() == Some(&limit));
    }
    assert_eq!(script.borrow().slots.len(), 4, "it has a buffer in each place");
}
