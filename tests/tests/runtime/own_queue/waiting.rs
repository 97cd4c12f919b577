//! A queue that has more jobs than its device takes.

use super::{FAULT, Rig, STUCK, at, taken_back};
use contigo::{
    Completion, Error, Queue, Region,
    design::kernel::{KernelMap, Protocol},
    sim::{
        SimBoard, SimDevice,
        ap_ctrl::{ApCtrlModel, KernelCall},
        zdma::ZdmaModel,
    },
};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

#[test]
fn jobs_wait_for_the_device_in_their_order() {
    for in_order in [true, false] {
        let rig = Rig::new();
        let (mut queue, script) = rig.queue(1, in_order);
        let expected = rig.submit(&mut queue, 4);
        assert_eq!(
            (queue.len(), queue.is_full(), script.borrow().slots.len()),
            (4, true, 1),
            "the device has one"
        );
        for (given, at_expected) in (2..=4).chain([4]).zip(expected) {
            script.borrow_mut().polls.push_back(Ok(Some(Completion::of(0))));
            let done = queue.wait::<1>(Duration::ZERO).unwrap().unwrap();
            assert_eq!(
                (at(&done), script.borrow().slots.len()),
                (at_expected, given),
                "the next one was given at once"
            );
        }
        assert!(queue.wait::<1>(Duration::ZERO).unwrap().is_none() && queue.is_empty());
        assert_eq!(queue.counts().underruns, 1, "after the last one");
    }
}

#[test]
fn waiting_job_keeps_its_words() {
    let rig = Rig::new();
    let (mut queue, script) = rig.queue(1, true);
    for word in 0..4 {
        queue.submit([rig.operand()], &[word, 100 + word][..=usize::from(word % 2 == 0)]).unwrap();
    }
    for _ in 0..4 {
        script.borrow_mut().polls.push_back(Ok(Some(Completion::of(0))));
        drop(queue.wait::<1>(Duration::ZERO).unwrap().unwrap());
    }
    assert_eq!(script.borrow().words, [vec![0, 100], vec![1], vec![2, 102], vec![3]]);
}

#[test]
fn stop_returns_jobs_in_their_order() {
    let rig = Rig::new();
    let (mut queue, script) = rig.queue(2, true);
    let submitted = rig.submit(&mut queue, 4);
    queue.stop().unwrap();
    assert_eq!(taken_back(&mut queue), submitted);
    assert_eq!((rig.pool.taken(), queue.is_stopped(), script.borrow().slots.len()), (0, false, 2));
    // And after an end of before the stop.
    let submitted = rig.submit(&mut queue, 4);
    queue.stop().unwrap();
    script.borrow_mut().polls.push_back(Ok(Some(Completion::of(0))));
    assert_eq!(at(&queue.wait::<1>(Duration::ZERO).unwrap().unwrap()), submitted[0]);
    assert_eq!(script.borrow().slots.len(), 4, "a stopped device is given nothing");
    assert_eq!(taken_back(&mut queue), submitted[1..]);
}

#[test]
fn refused_waiting_job_is_told_by_the_next_poll() {
    let rig = Rig::new();
    let (mut queue, script) = rig.queue(1, true);
    let submitted = rig.submit(&mut queue, 3);
    script.borrow_mut().submit = Some(FAULT);
    script.borrow_mut().polls.push_back(Ok(Some(Completion::of(0))));
    assert_eq!(
        at(&queue.wait::<1>(Duration::ZERO).unwrap().unwrap()),
        submitted[0],
        "the end before is not lost"
    );
    assert_eq!((queue.is_stopped(), script.borrow().slots.len()), (true, 2));
    let failed = queue.wait::<1>(Duration::ZERO).unwrap_err();
    assert_eq!((failed.error, failed.buffers.is_none()), (FAULT, true));
    assert!(queue.wait::<1>(Duration::ZERO).unwrap().is_none(), "it is said once");
    script.borrow_mut().submit = None;
    assert_eq!(taken_back(&mut queue), submitted[1..]);
    rig.submit(&mut queue, 1);
}

#[test]
fn dropped_queue_leaks_only_what_the_device_has() {
    let rig = Rig::new();
    let (mut queue, script) = rig.queue(1, true);
    rig.submit(&mut queue, 4);
    script.borrow_mut().stop = Some(STUCK);
    drop(queue);
    assert_eq!(rig.pool.taken(), 1);
    let (mut queue, _) = rig.queue(1, true);
    rig.submit(&mut queue, 4);
    drop(queue);
    assert_eq!(rig.pool.taken(), 1);
}

#[test]
fn run_on_a_stuck_device_keeps_its_buffers() {
    let rig = Rig::new();
    let (mut queue, script) = rig.queue(1, true);
    script.borrow_mut().stop = Some(STUCK);
    let failed = queue.run([rig.operand()], &[], Duration::ZERO).unwrap_err();
    let late = Error::Timeout { timeout_us: 0 };
    assert_eq!((failed.error, failed.cause, failed.buffers.is_none()), (STUCK, late, true));
    assert_eq!((queue.len(), queue.is_stopped(), rig.pool.taken()), (1, true, 1));
    script.borrow_mut().stop = None;
    queue.clear().unwrap();
    assert_eq!((queue.is_stopped(), rig.pool.taken()), (false, 0));
    script.borrow_mut().then.push_back(Ok(Some(Completion::of(0))));
    let _ = queue.run([rig.operand()], &[], Duration::ZERO).unwrap();
}

#[test]
fn panicking_callback_keeps_the_order_of_jobs() {
    let rig = Rig::new();
    let (mut queue, script) = rig.queue(1, true);
    let submitted = rig.submit(&mut queue, 3);
    script.borrow_mut().polls.push_back(Ok(Some(Completion::of(0))));
    let asked = || {
        queue.wait_each(Duration::ZERO, |_, _, buf| {
            drop(buf.into_cpu().map(|_| panic!("asked for")))
        })
    };
    assert!(catch_unwind(AssertUnwindSafe(asked)).is_err());
    // The device has none, and two wait: one more is behind them.
    let last = rig.submit(&mut queue, 1);
    for at_expected in [submitted[1], submitted[2], last[0]] {
        script.borrow_mut().polls.push_back(Ok(Some(Completion::of(0))));
        assert_eq!(at(&queue.wait::<1>(Duration::ZERO).unwrap().unwrap()), at_expected);
    }
    assert!(queue.is_empty());
}

const LIMIT: Duration = Duration::from_millis(20);

#[test]
fn eight_jobs_queue_on_one_job_channel() {
    let board = SimBoard::new(1);
    let pool = Region::new(board.memory(64 * 1024).unwrap()).unwrap().pool(16, 1024).unwrap();
    let channel = SimDevice::<ZdmaModel>::new(&board, board.port());
    let mut queue = Queue::new(channel.window().unwrap().simple().unwrap(), 8).unwrap();
    for round in 0..5 {
        for job in 0..8_u8 {
            let (mut from, to) = (pool.take().unwrap(), pool.take().unwrap());
            from.view_mut::<u8>().unwrap().fill(8 * round + job);
            queue.submit([from.to_device(..), to.from_device(..)], &[]).unwrap();
        }
        assert!(queue.is_full());
        for job in 0..8_u8 {
            let [_, to] = queue.wait(LIMIT).unwrap().unwrap().buffers;
            assert_eq!(to.view::<u8>().unwrap(), [8 * round + job; 1024]);
        }
    }
    assert_eq!((queue.counts().completed, queue.counts().underruns, pool.taken()), (40, 5, 0));
}

#[test]
fn eight_kernel_calls_keep_their_own_numbers() {
    let map = KernelMap::named("add", Protocol::Hs)
        .result("ap_return", 0x10, 32)
        .scalar("a", 0x18, 32)
        .scalar("b", 0x20, 32);
    let add = |call: &mut KernelCall<'_, '_>| {
        Ok([u32::try_from(call.scalar(0) + call.scalar(1)).unwrap(), 0, 0, 0])
    };
    let board = SimBoard::new(3);
    let kernel = SimDevice::with_model(
        &board,
        board.port(),
        ApCtrlModel::new(map.build().unwrap(), add).unwrap(),
    );
    let mut queue = Queue::new(kernel.window().unwrap().driver().unwrap(), 8).unwrap();
    let jobs: Vec<_> = (0..8).map(|round| queue.submit([], &[round, 7]).unwrap()).collect();
    for (round, job) in (0..8).zip(jobs) {
        let done = queue.wait::<0>(LIMIT).unwrap().unwrap();
        assert_eq!((done.job, done.words[0]), (job, round + 7));
    }
    assert_eq!(queue.run([], &[40, 2], LIMIT).unwrap().words[0], 42);
}
