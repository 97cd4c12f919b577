//! A driver keeps ends of jobs that had ended before a stop. No later job, queue or stream gets one
//! of them, whatever ended those jobs.

use super::{FAULT, Jobs, Rig, Scripted, Shared, at};
use contigo::{Attempt, Completion, Engine, Error, OneThread, Queue, Stream};
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// The driver has such an end, and tells it when it is asked next.
fn ends(script: &Shared, slots: &[usize]) {
    script.borrow_mut().polls.extend(slots.iter().map(|slot| Ok(Some(Completion::of(*slot)))));
}

/// One job of an engine ends as `way` says.
fn one_job(rig: &Rig, engine: &mut Engine<Scripted, 1>, script: &Shared, way: &str) {
    let buf = rig.pool.take().unwrap();
    match way {
        "refused" => {
            script.borrow_mut().submit = Some(FAULT);
            assert_eq!(engine.start([buf.from_device(..)], &()).unwrap_err().error, FAULT);
            script.borrow_mut().submit = None;
        }
        "panics in submit" => {
            script.borrow_mut().panics_in = Some("submit");
            let start = || drop(engine.start([buf.from_device(..)], &()));
            assert!(catch_unwind(AssertUnwindSafe(start)).is_err() && engine.is_busy());
            engine.recover().unwrap();
        }
        _ => {
            let job = engine.start([buf.from_device(..)], &()).unwrap();
            match way {
                "dropped" => drop(job),
                "late" => assert_eq!(job.wait(Duration::ZERO).unwrap_err().error, Error::Timeout { timeout_us: 0 }),
                "fails" => {
                    script.borrow_mut().polls.push_back(Err(FAULT));
                    assert_eq!(job.try_wait().unwrap_err().error, FAULT);
                }
                "panics in poll" => {
                    script.borrow_mut().panics_in = Some("poll");
                    assert!(catch_unwind(AssertUnwindSafe(|| drop(job.try_wait()))).is_err());
                }
                _ => {
                    mem::forget(job);
                    engine.recover().unwrap();
                }
            }
        }
    }
}

#[test]
fn an_engines_job_gets_no_end_of_one_before() {
    for way in ["refused", "panics in submit", "dropped", "late", "fails", "panics in poll", "forgotten"] {
        for anew in [false, true] {
            let rig = Rig::new();
            let (driver, script) = rig.driver(1, true);
            let mut engine = Engine::new(driver).unwrap();
            one_job(&rig, &mut engine, &script, way);
            ends(&script, &[0]);
            let mut engine = if anew { Engine::new(engine.into_driver()).unwrap() } else { engine };
            let buf = rig.pool.take().unwrap();
            let expected = buf.offset_bytes();
            let job = engine.start([buf.from_device(..)], &()).unwrap();
            let Ok(Attempt::Pending(job)) = job.try_wait() else { panic!("{way}, anew: {anew}: the end was of the job before") };
            ends(&script, &[0]);
            let done = job.wait(Duration::ZERO).unwrap();
            assert_eq!(done.buffers[0].offset_bytes(), expected, "{way}");
        }
    }
}

#[test]
fn a_queues_job_gets_no_end_of_one_before() {
    for way in ["stopped", "cleared", "refused", "fails", "lies", "panics in submit"] {
        let rig = Rig::new();
        let (mut queue, script) = rig.queue(4, true);
        rig.push(&mut queue, 2);
        match way {
            "stopped" => queue.stop().unwrap(),
            "cleared" => queue.clear().unwrap(),
            "refused" => {
                script.borrow_mut().submit = Some(FAULT);
                assert!(queue.push([rig.pool.take().unwrap().from_device(..)], &()).is_err());
                script.borrow_mut().submit = None;
            }
            "panics in submit" => {
                script.borrow_mut().panics_in = Some("submit");
                assert!(catch_unwind(AssertUnwindSafe(|| drop(rig.push(&mut queue, 1)))).is_err());
                queue.stop().unwrap();
            }
            _ => {
                script.borrow_mut().polls.push_back(if way == "fails" { Err(FAULT) } else { Ok(Some(Completion::of(3))) });
                assert!(queue.next(Duration::ZERO).unwrap_err().buffers.is_none());
            }
        }
        ends(&script, if way == "cleared" { &[] } else { &[0, 1] });
        while queue.take_back().is_some() {}
        let new = rig.push(&mut queue, 2);
        assert!(queue.next(Duration::ZERO).unwrap().is_none(), "{way}: the end was of a job before");
        ends(&script, &[0, 1]);
        assert_eq!([(); 2].map(|()| at(&queue.next(Duration::ZERO).unwrap().unwrap()))[..], new, "{way}");
    }
}

#[test]
fn a_new_queue_over_a_driver_gets_no_end_of_the_one_before() {
    for is_forgotten in [false, true] {
        let rig = Rig::new();
        let (mut driver, script) = rig.driver(4, true);
        let mut old: Queue<'_, _, 4, 1, OneThread> = Queue::new(&mut driver).unwrap();
        for _ in 0..2 {
            old.push_words([rig.pool.take().unwrap().from_device(..)], &[]).unwrap();
        }
        if is_forgotten {
            mem::forget(old)
        } else {
            drop(old)
        }
        ends(&script, &[0, 1]);
        let mut queue: Jobs<'_> = Queue::new(driver).unwrap();
        let new = rig.push(&mut queue, 1);
        assert!(queue.next(Duration::ZERO).unwrap().is_none(), "forgotten: {is_forgotten}");
        ends(&script, &[0]);
        assert_eq!(at(&queue.next(Duration::ZERO).unwrap().unwrap()), new[0]);
        assert_eq!(rig.pool.taken(), if is_forgotten { 2 } else { 0 }, "what the device may have is leaked");
    }
}

#[test]
fn a_streams_start_gives_no_frame_of_before() {
    for way in ["stopped", "fails", "refused", "panics in poll"] {
        let rig = Rig::new();
        let (driver, script) = rig.driver(4, true);
        let mut stream: Stream<'_, _, _, 4> = Stream::new(driver, rig.pool, &()).unwrap();
        assert_eq!(stream.start(), Ok(4));
        match way {
            "stopped" => stream.stop().unwrap(),
            "fails" => {
                script.borrow_mut().polls.push_back(Err(FAULT));
                assert_eq!(stream.next(Duration::ZERO).unwrap_err(), FAULT);
            }
            "refused" => {
                ends(&script, &[0]);
                let frame = stream.next(Duration::ZERO).unwrap().unwrap();
                script.borrow_mut().submit = Some(FAULT);
                assert_eq!(stream.give_back(frame.buf), Err(FAULT));
                script.borrow_mut().submit = None;
            }
            _ => {
                script.borrow_mut().panics_in = Some("poll");
                assert!(catch_unwind(AssertUnwindSafe(|| drop(stream.next(Duration::ZERO)))).is_err());
                stream.stop().unwrap();
            }
        }
        // As many as the driver has slots: of frames that had arrived, and that nobody fetched.
        ends(&script, &[0, 1, 2, 3]);
        assert_eq!(stream.start(), Ok(4), "{way}");
        assert!(stream.next(Duration::ZERO).unwrap().is_none(), "{way}: the frame was one of before");
        ends(&script, &[0]);
        drop(stream.next(Duration::ZERO).unwrap().unwrap());
    }
}
