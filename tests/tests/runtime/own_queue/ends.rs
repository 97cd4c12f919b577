//! A driver keeps ends of jobs that had ended before a stop. No later job, queue or stream gets one
//! of them, whatever ended those jobs.

use super::{FAULT, Rig, Scripted, Shared, at, ends, look};
use contigo::{Completion, Error, Queue, Stream};
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// A run ends as `way` says.
fn one_run(rig: &Rig, queue: &mut Queue<Scripted>, script: &Shared, way: &str) {
    // The looks at ends of before are over then.
    script.borrow_mut().then.push_back(Ok(Some(Completion::of(0))));
    drop(queue.run([rig.operand()], &[], Duration::ZERO).unwrap());
    let operands = [rig.operand()];
    let run = || {
        let ran = queue.run(operands, &[], Duration::ZERO).map(drop);
        ran.map_err(|failed| (failed.error, failed.buffers.is_some()))
    };
    match way {
        "refused" => {
            script.borrow_mut().submit = Some(FAULT);
            assert_eq!(run(), Err((FAULT, true)));
            script.borrow_mut().submit = None;
        }
        "late" => assert_eq!(run(), Err((Error::Timeout { timeout_us: 0 }, true))),
        "fails" => {
            script.borrow_mut().then.push_back(Err(FAULT));
            assert_eq!(run(), Err((FAULT, true)));
        }
        _ => {
            let place = if way == "panics in submit" { "submit" } else { "poll" };
            script.borrow_mut().panics_in = Some(place);
            assert!(catch_unwind(AssertUnwindSafe(run)).is_err());
            assert_eq!((queue.len(), rig.pool.taken()), (1, 1), "{way}: the device may have it");
            let busy = queue.run([rig.operand()], &[], Duration::ZERO).unwrap_err();
            assert_eq!(busy.error, Error::Busy);
            queue.clear().unwrap();
        }
    }
    assert_eq!((queue.len(), rig.pool.taken(), queue.is_stopped()), (0, 0, false), "{way}");
}

#[test]
fn a_run_gets_no_end_of_one_before() {
    for way in ["refused", "panics in submit", "late", "fails", "panics in poll"] {
        let rig = Rig::new();
        let (mut queue, script) = rig.queue(1, true);
        one_run(&rig, &mut queue, &script, way);
        ends(&script, &[0]);
        let job = queue.submit([rig.operand()], &[]).unwrap();
        assert!(queue.try_next::<1>().unwrap().is_none(), "{way}: the end was of the job before");
        ends(&script, &[0]);
        assert_eq!(queue.try_next::<1>().unwrap().unwrap().job, job, "{way}");
    }
}

#[test]
fn a_queues_job_gets_no_end_of_one_before() {
    for way in ["stopped", "cleared", "refused", "fails", "lies", "panics in submit"] {
        let rig = Rig::new();
        let (mut queue, script) = rig.queue(4, true);
        rig.submit(&mut queue, 2);
        match way {
            "stopped" => queue.stop().unwrap(),
            "cleared" => queue.clear().unwrap(),
            "refused" => {
                script.borrow_mut().submit = Some(FAULT);
                assert!(queue.submit([rig.operand()], &[]).is_err());
                script.borrow_mut().submit = None;
            }
            "panics in submit" => {
                script.borrow_mut().panics_in = Some("submit");
                let submit = AssertUnwindSafe(|| drop(rig.submit(&mut queue, 1)));
                assert!(catch_unwind(submit).is_err());
                queue.stop().unwrap();
            }
            _ => {
                let end = if way == "fails" { Err(FAULT) } else { Ok(Some(Completion::of(3))) };
                script.borrow_mut().polls.push_back(end);
                assert!(queue.wait::<1>(Duration::ZERO).unwrap_err().buffers.is_none());
            }
        }
        ends(&script, &[0, 1]);
        while queue.take_back::<1>().unwrap().is_some() {}
        let new = rig.submit(&mut queue, 2);
        assert!(look(&mut queue).is_none(), "{way}: the end was of a job before");
        ends(&script, &[0, 1]);
        assert_eq!([(); 2].map(|()| at(&look(&mut queue).unwrap()))[..], new, "{way}");
    }
}

#[test]
fn new_queue_gets_no_end_of_the_old_one() {
    for is_forgotten in [false, true] {
        let rig = Rig::new();
        let (mut driver, script) = rig.driver(4, true);
        let mut old = Queue::new(&mut driver, 4).unwrap();
        for _ in 0..2 {
            old.submit([rig.operand()], &[]).unwrap();
        }
        if is_forgotten {
            mem::forget(old)
        } else {
            drop(old)
        }
        ends(&script, &[0, 1]);
        let mut queue: Queue<_> = Queue::new(driver, 4).unwrap();
        let new = rig.submit(&mut queue, 1);
        assert!(look(&mut queue).is_none(), "forgotten: {is_forgotten}");
        ends(&script, &[0]);
        assert_eq!(at(&look(&mut queue).unwrap()), new[0]);
        // What the device may have is leaked.
        assert_eq!(rig.pool.taken(), if is_forgotten { 2 } else { 0 });
    }
}

#[test]
fn a_streams_start_gives_no_frame_of_before() {
    for way in ["stopped", "fails", "refused", "panics in poll"] {
        let rig = Rig::new();
        let (driver, script) = rig.driver(4, true);
        let mut stream = Stream::new(driver, rig.pool.clone(), 4, &[]).unwrap();
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
                let next = AssertUnwindSafe(|| drop(stream.next(Duration::ZERO)));
                assert!(catch_unwind(next).is_err());
                stream.stop().unwrap();
            }
        }
        // As many as the driver has slots: of frames that had arrived, and were not fetched.
        ends(&script, &[0, 1, 2, 3]);
        assert_eq!(stream.start(), Ok(4), "{way}");
        assert!(stream.next(Duration::ZERO).unwrap().is_none(), "{way}: a frame of before");
        ends(&script, &[0]);
        drop(stream.next(Duration::ZERO).unwrap().unwrap());
    }
}
