//! Threads that fight for the same handles: every call answers something that the header lists, no
//! buffer has two owners, and all of them come back.

use crate::common::*;
use contigo_c::*;
use contigo_testkit::barrier::Barrier;
use contigo_testkit::emulated;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

/// Fewer under an emulator, which is ten times as slow.
fn rounds() -> u32 {
    if emulated::why().is_some() { 2_000 } else { 20_000 }
}

#[test]
fn a_slot_has_one_owner_at_a_time() {
    let board = Board::new();
    let start = Barrier::new(4);
    thread::scope(|scope| {
        for thread in 1..=4_u8 {
            scope.spawn({
                let start = &start;
                move || {
                    start.wait();
                    for _ in 0..rounds() {
                        let mut buf = 0;
                        match unsafe { contigo_pool_take(board.pool, &mut buf) } {
                            CONTIGO_OK => {}
                            status => {
                                assert!(
                                    [CONTIGO_E_NO_SLOTS, CONTIGO_E_IN_CALL].contains(&status),
                                    "{status}"
                                );
                                continue;
                            }
                        }
                        let (status, ptr, _) = try_map(buf, CONTIGO_WRITE);
                        ok(status);
                        // SAFETY: the library says that these bytes are this thread's.
                        let word = unsafe { &mut *ptr.cast::<[u8; 64]>() };
                        word.fill(thread);
                        assert_eq!(*word, [thread; 64], "another thread wrote");
                        ok(contigo_buf_unmap(buf));
                        ok(contigo_buf_release(buf));
                    }
                }
            });
        }
    });
    assert_eq!(free_slots(board.pool), 8);
    board.close();
}

#[test]
fn one_of_two_threads_releases() {
    let board = Board::new();
    let (turn, released) = (Barrier::new(2), AtomicU64::new(0));
    let shared = AtomicU64::new(0);
    thread::scope(|scope| {
        for first in [true, false] {
            let (turn, released, shared) = (&turn, &released, &shared);
            scope.spawn(move || {
                for _ in 0..rounds() / 4 {
                    if first {
                        shared.store(board.take(), Ordering::Relaxed);
                    }
                    turn.wait();
                    let buf = shared.load(Ordering::Relaxed);
                    match contigo_buf_release(buf) {
                        CONTIGO_OK => _ = released.fetch_add(1, Ordering::Relaxed),
                        status => assert!(
                            [CONTIGO_E_STALE, CONTIGO_E_IN_CALL].contains(&status),
                            "{status}"
                        ),
                    }
                    turn.wait();
                }
            });
        }
    });
    assert_eq!(released.into_inner(), u64::from(rounds() / 4), "each was released once");
    board.close();
}

#[test]
fn the_last_of_two_threads_frees_the_slot() {
    let board = Board::new();
    let turn = Barrier::new(2);
    let shared = [AtomicU64::new(0), AtomicU64::new(0)];
    thread::scope(|scope| {
        for first in [true, false] {
            let (turn, shared) = (&turn, &shared);
            scope.spawn(move || {
                for round in 0..rounds() / 4 {
                    if first {
                        let buf = board.take();
                        shared[0].store(buf, Ordering::Relaxed);
                        shared[1].store(split(buf, 64), Ordering::Relaxed);
                    }
                    turn.wait();
                    let part = shared[usize::from(first)].load(Ordering::Relaxed);
                    // One of them cuts its part once more, at the same time.
                    if round % 2 == 0 && first {
                        let rest = split(part, 64);
                        ok(contigo_buf_release(rest));
                    }
                    fill(part, 1);
                    ok(contigo_buf_release(part));
                    turn.wait();
                    if first {
                        assert_eq!(free_slots(board.pool), 8, "round {round}");
                    }
                }
            });
        }
    });
    board.close();
}

#[test]
fn a_close_that_is_refused_disturbs_no_take() {
    let board = Board::new();
    let (kept, stop) = (board.take(), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                refused(
                    contigo_pool_close(board.pool),
                    CONTIGO_E_STILL_USED,
                    "still use this pool",
                );
            }
        });
        let _stop = Stop(&stop);
        for _ in 0..rounds() {
            ok(contigo_buf_release(board.take()));
        }
    });
    ok(contigo_buf_release(kept));
    board.close();
}

#[test]
fn late_take_gets_no_slot_of_next_pool() {
    // Pools one after the other, mostly in one entry, with slots of 64 and of 128 bytes.
    let board = Board::new();
    let shared = Mutex::new((0, 0));
    let (stop, takes) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let _stop = Stop(&stop);
                while !stop.load(Ordering::Relaxed) {
                    let ((pool, slot_bytes), mut buf) = (*shared.lock().unwrap(), 0);
                    let status = unsafe { contigo_pool_take(pool, &mut buf) };
                    if status != CONTIGO_OK {
                        let listed = [
                            CONTIGO_E_HANDLE,
                            CONTIGO_E_NO_SLOTS,
                            CONTIGO_E_STALE,
                            CONTIGO_E_IN_CALL,
                        ];
                        assert!(listed.contains(&status), "{}", last_error());
                        continue;
                    }
                    let (status, _, len_bytes) = try_map(buf, CONTIGO_WRITE);
                    ok(status);
                    assert_eq!(len_bytes, slot_bytes, "a slot of another pool");
                    ok(contigo_buf_unmap(buf));
                    ok(contigo_buf_release(buf));
                    takes.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let _stop = Stop(&stop);
        for round in 0..rounds() / 8 {
            let slot_bytes = 64 << (round % 2);
            let pool = open_pool(board.region, slot_bytes, 2, 0);
            *shared.lock().unwrap() = (pool, slot_bytes);
            loop {
                match contigo_pool_close(pool) {
                    CONTIGO_OK => break,
                    status => assert!(
                        [CONTIGO_E_STILL_USED, CONTIGO_E_IN_CALL].contains(&status),
                        "{}",
                        last_error()
                    ),
                }
                assert!(!stop.load(Ordering::Relaxed), "a thread that takes has failed");
                thread::yield_now();
            }
        }
    });
    println!("{} slots were taken", takes.into_inner());
    board.close();
}

#[test]
fn anything_at_once_on_the_same_handles() {
    let board = Board::new();
    let operands = board.operands();
    let stop = AtomicBool::new(false);
    let (in_call, jobs) = (AtomicU64::new(0), AtomicU64::new(0));
    let job = AtomicU64::new(0);
    /// The answers that a call may get at the wrong time.
    const LISTED: [contigo_status; 13] = [
        CONTIGO_OK,
        CONTIGO_E_IN_CALL,
        CONTIGO_E_STILL_USED,
        CONTIGO_E_DEVICE_OWNED,
        CONTIGO_E_CPU_OWNED,
        CONTIGO_E_MAPPED,
        CONTIGO_E_NOT_MAPPED,
        CONTIGO_E_HAS_JOB,
        CONTIGO_E_QUEUE_FULL,
        CONTIGO_E_CANCELLED,
        CONTIGO_E_STALE,
        CONTIGO_E_HANDLE,       // no job yet
        CONTIGO_E_OUT_OF_RANGE, // more of a buffer than the other thread handed over
    ];
    thread::scope(|scope| {
        for _ in 0..2 {
            // One starts what the other waits for.
            scope.spawn(|| {
                let _stop = Stop(&stop);
                for _ in 0..rounds() / 4 {
                    let (status, started) = board.try_start(&operands);
                    assert!(LISTED.contains(&status), "{}", last_error());
                    if status == CONTIGO_OK {
                        job.store(started, Ordering::Relaxed);
                    }
                    let waited = wait(job.load(Ordering::Relaxed), 100_000);
                    assert!(LISTED.contains(&waited), "{}", last_error());
                    jobs.fetch_add(u64::from(waited == CONTIGO_OK), Ordering::Relaxed);
                }
            });
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    for operand in operands {
                        let (mapped, _, _) = try_map(operand.buf, CONTIGO_READ);
                        let calls = [
                            mapped,
                            if mapped == CONTIGO_OK { unmap_at_last(operand.buf) } else { mapped },
                            give(operand.buf, board.port, 0, 64, CONTIGO_READS | CONTIGO_WRITES).0,
                            contigo_buf_take_back(operand.buf),
                            unsafe { contigo_pool_take(board.region, &mut 0) } - CONTIGO_E_KIND,
                            contigo_queue_stop(board.engine),
                            contigo_pool_close(board.pool),
                            contigo_region_close(board.region),
                        ];
                        for status in calls {
                            assert!(LISTED.contains(&status), "{status}: {}", last_error());
                            in_call.fetch_add(
                                u64::from(status == CONTIGO_E_IN_CALL),
                                Ordering::Relaxed,
                            );
                        }
                    }
                }
            });
        }
    });
    let left = job.load(Ordering::Relaxed);
    let _ = wait(left, 100_000);
    for operand in operands {
        let _ = contigo_buf_take_back(operand.buf);
    }
    assert!(jobs.into_inner() > 0);
    println!("{} calls found another thread in a call", in_call.into_inner());
    release_all(&operands);
    board.close();
}

/// Stops the threads that look on, also where an assertion fails.
struct Stop<'s>(&'s AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Unmaps a buffer, and tries again while another thread is in a call with it.
fn unmap_at_last(buf: contigo_buf) -> contigo_status {
    loop {
        match contigo_buf_unmap(buf) {
            CONTIGO_E_IN_CALL => thread::yield_now(),
            status => return status,
        }
    }
}
