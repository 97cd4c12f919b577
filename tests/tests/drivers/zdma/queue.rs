//! Several copies in flight: lists of jobs, in order, and what becomes of them where one goes
//! wrong.

use super::{LIMIT, Mode, alloc, failures::Hole};
use contigo::{
    Align, CpuBuf, Driver, Error, Operand, Pool, Queue, Region,
    drivers::zdma::regs,
    job::QueueCounts,
    sim::{Faults, SimBoard, SimConfig, zdma::SimZdma},
};
use contigo_testkit::emulated;
use fastrand::Rng;
use std::{collections::VecDeque, time::Duration};

const SLOT: usize = 8192;
const DEPTH: usize = 8;

/// A copy into all of a buffer's beginning, and the bytes that it brings.
fn copy(pool: &Pool, rng: &mut Rng, len: usize) -> ([Operand; 2], Vec<u8>) {
    let (mut from, mut to) = (pool.take().unwrap(), pool.take().unwrap());
    let bytes: Vec<u8> = std::iter::repeat_with(|| rng.u8(..)).take(len).collect();
    from.view_mut::<u8>().unwrap()[..len].copy_from_slice(&bytes);
    to.view_mut::<u8>().unwrap().fill(!bytes[0]);
    ([from.to_device(..len), to.from_device(..len)], bytes)
}

fn holds(to: &CpuBuf, bytes: &[u8]) -> bool {
    to.view_at::<u8>(..bytes.len()).unwrap() == bytes
}

/// A board's memory: descriptors of `len_bytes`, and buffers.
macro_rules! setting {
    ($board:ident, $len_bytes:expr => $region:ident, $pool:ident, $channel:ident, $queue:ident) => {
        let $region = Region::new($board.memory(1 << 20).unwrap()).unwrap();
        let $pool = $region.pool(64, SLOT).unwrap();
        let $channel = SimZdma::new(&$board, $board.port());
        let driver = Mode::Linked($len_bytes).open($channel.window().unwrap(), alloc!($region));
        let mut $queue = Queue::new(driver, DEPTH).unwrap();
    };
}

#[test]
fn as_many_are_in_flight_as_their_descriptors_have_room_for() {
    for (len_bytes, depth) in
        [(128, 1), (192, 1), (256, 2), (512, 4), (960, 4), (1024, 8), (4096, 8), (1 << 16, 8)]
    {
        let board = SimBoard::new(1);
        setting!(board, len_bytes => region, pool, channel, queue);
        let mut rng = Rng::with_seed(1);
        assert_eq!(queue.driver().depth(), depth, "{len_bytes}");
        for round in 0..5 {
            let lens: Vec<_> = (0..depth).map(|_| rng.usize(1..=SLOT)).collect();
            let pushed: Vec<_> = lens
                .iter()
                .map(|&len| {
                    let (operands, bytes) = copy(&pool, &mut rng, len);
                    queue.submit(operands, &[]).unwrap();
                    bytes
                })
                .collect();
            assert_eq!(queue.is_full(), depth == DEPTH);
            for (index, bytes) in pushed.iter().enumerate() {
                let done = queue.wait::<2>(LIMIT).unwrap().unwrap();
                assert!(
                    holds(&done.buffers[1], bytes),
                    "job {index} of round {round}, {len_bytes} bytes"
                );
            }
            assert!(
                queue.wait::<2>(LIMIT).unwrap().is_none(),
                "it runs dry, and nothing is stopped"
            );
        }
        let jobs = 5 * depth as u64;
        assert_eq!(
            queue.counts(),
            QueueCounts { pushed: jobs, completed: jobs, ran_dry: 5, ..QueueCounts::default() }
        );
    }
}

#[test]
fn ten_thousand_copies_keep_their_order() {
    for (seed, len_bytes) in [(1, 1024), (2, 4096), (3, 256)] {
        let board = SimBoard::with(SimConfig {
            seed,
            faults: Faults { late_irq: 100, lost_irq: 100, ..Faults::NONE },
        });
        setting!(board, len_bytes => region, pool, channel, queue);
        let (mut rng, mut pushed) = (Rng::with_seed(seed), VecDeque::new());
        for _ in 0..emulated::fewer(3_000) {
            // In gusts, so that it runs full and dry.
            for _ in 0..rng.usize(..2 * DEPTH) {
                if !queue.is_full() {
                    let bits = rng.u32(..13);
                    let len = rng.usize(1..=1 << bits);
                    let (operands, bytes) = copy(&pool, &mut rng, len);
                    queue.submit(operands, &[]).unwrap();
                    pushed.push_back(bytes);
                }
            }
            for _ in 0..rng.usize(..2 * DEPTH) {
                match queue.wait::<2>(if rng.bool() { Duration::ZERO } else { LIMIT }).unwrap() {
                    Some(done) => assert!(holds(&done.buffers[1], &pushed.pop_front().unwrap())),
                    None => break,
                }
            }
        }
        let QueueCounts { ran_dry, stopped, failed, .. } = queue.counts();
        assert!(ran_dry > 0, "it ran dry too");
        assert_eq!(
            (stopped, failed, board.counts().unowned_accesses, board.counts().stray_accesses),
            (0, 0, 0, 0)
        );
    }
}

#[test]
fn a_fault_in_the_middle_of_a_list_leaves_what_came_before_it() {
    let board = SimBoard::new(1);
    // The jobs before the fault count here, and the board would blame all of the list.
    board.allow_wrong_accesses(true).unwrap();
    let hole = Region::new(Hole::new(&board)).unwrap();
    setting!(board, 4096 => region, pool, channel, queue);
    let mut rng = Rng::with_seed(1);
    // The first is a list of its own; the other seven are one.
    for (bad, reading) in [(3, true), (7, true), (1, true), (3, false)] {
        let mut pushed = Vec::new();
        for index in 0..DEPTH {
            let ([from, to], bytes) = copy(&pool, &mut rng, 5000);
            let nowhere = || hole.alloc(SLOT, Align::LINE).unwrap();
            let operands = match (index == bad, reading) {
                (false, _) => [from, to],
                (true, true) => [nowhere().to_device(..5000), to],
                (true, false) => [from, nowhere().from_device(..5000)],
            };
            pushed.push((queue.submit(operands, &[]).unwrap(), bytes));
        }
        // After a write that failed only the bytes of the list before are known.
        let told = if reading { bad } else { 1 };
        for (_, bytes) in &pushed[..told] {
            assert!(holds(&queue.wait::<2>(LIMIT).unwrap().unwrap().buffers[1], bytes));
        }
        let failed = queue.wait::<2>(LIMIT).unwrap_err();
        let bit = if reading { regs::INT_READ } else { regs::INT_WRITE };
        assert!(
            matches!(failed.error, Error::Fault { device: "zdma", status, .. } if status & bit != 0),
            "{failed}"
        );
        for (job, _) in &pushed[told..] {
            assert_eq!(queue.take_back::<2>().unwrap().unwrap().job, *job);
        }
        assert!(queue.take_back::<2>().unwrap().is_none());
    }
    // And it works again.
    let (operands, bytes) = copy(&pool, &mut rng, SLOT);
    queue.submit(operands, &[]).unwrap();
    assert!(holds(&queue.wait::<2>(LIMIT).unwrap().unwrap().buffers[1], &bytes));
}

#[test]
fn a_stop_gives_back_what_had_not_ended() {
    let board = SimBoard::new(1);
    setting!(board, 1024 => region, pool, channel, queue);
    let mut rng = Rng::with_seed(1);
    let first = copy(&pool, &mut rng, 100);
    queue.submit(first.0, &[]).unwrap();
    channel.run_for(1_000).unwrap();
    for _ in 1..DEPTH {
        queue.submit(copy(&pool, &mut rng, 3000).0, &[]).unwrap();
    }
    queue.stop().unwrap();
    assert_eq!(
        queue.submit(copy(&pool, &mut rng, 1).0, &[]).unwrap_err().error,
        Error::QueueStopped { in_flight: DEPTH }
    );
    // It had ended, though no call had polled it.
    assert!(holds(&queue.wait::<2>(LIMIT).unwrap().unwrap().buffers[1], &first.1));
    assert!(queue.wait::<2>(LIMIT).unwrap().is_none());
    for job in 1..DEPTH as u64 {
        assert_eq!(queue.take_back::<2>().unwrap().unwrap().job, job);
    }
    let ended = board.counts();
    channel.run_for(1_000_000).unwrap();
    assert_eq!(board.counts(), ended, "nothing of the others is done");
    // Anew.
    for _ in 0..3 {
        queue.submit(copy(&pool, &mut rng, 3000).0, &[]).unwrap();
    }
    queue.clear().unwrap();
    drop(queue);
    assert_eq!((pool.taken(), board.counts().unowned_accesses), (0, 0));
}

#[test]
fn a_list_that_never_ends_is_stopped_and_one_that_will_not_stop_keeps_its_jobs() {
    for stuck in [false, true] {
        let faults = if stuck {
            Faults { stuck: 1000, ..Faults::NONE }
        } else {
            Faults { hang: 1000, ..Faults::NONE }
        };
        let board = SimBoard::with(SimConfig { seed: 1, faults });
        setting!(board, 1024 => region, pool, channel, queue);
        let mut rng = Rng::with_seed(1);
        for _ in 0..DEPTH {
            queue.submit(copy(&pool, &mut rng, 3000).0, &[]).unwrap();
        }
        assert!(queue.wait::<2>(LIMIT).unwrap().is_none());
        if stuck {
            assert!(matches!(queue.stop(), Err(Error::WillNotStop { device: "zdma", .. })));
            assert!(queue.take_back::<2>().unwrap().is_none());
            channel.reset().unwrap();
        }
        queue.stop().unwrap();
        for job in 0..DEPTH as u64 {
            assert_eq!(queue.take_back::<2>().unwrap().unwrap().job, job);
        }
        drop(queue);
        assert_eq!((pool.taken(), board.counts().unowned_accesses), (0, 0));
    }
}

#[test]
fn whatever_goes_wrong_no_byte_is_touched_that_was_not_given() {
    for seed in 0..emulated::fewer(60) {
        let board =
            SimBoard::with(SimConfig { seed, faults: Faults { stuck: 0, ..Faults::OFTEN } });
        let len_bytes = [256, 1024, 4096][usize::try_from(seed % 3).unwrap()];
        setting!(board, len_bytes => region, pool, channel, queue);
        let (mut rng, mut pushed) = (Rng::with_seed(seed), VecDeque::new());
        for _ in 0..200 {
            match rng.u8(..20) {
                0 => queue.stop().unwrap(),
                1..10 if !queue.is_full() && !queue.is_stopped() => {
                    let len = rng.usize(1..=SLOT);
                    let (operands, bytes) = copy(&pool, &mut rng, len);
                    queue.submit(operands, &[]).unwrap();
                    pushed.push_back(bytes);
                }
                _ => match queue.wait::<2>(Duration::from_micros(rng.u32(..50).into())) {
                    Ok(Some(done)) => assert!(
                        holds(&done.buffers[1], &pushed.pop_front().unwrap()),
                        "seed {seed}"
                    ),
                    Ok(None) if !queue.is_stopped() => {}
                    _ => {
                        while queue.take_back::<2>().unwrap().is_some() {
                            pushed.pop_front().unwrap();
                        }
                    }
                },
            }
        }
        drop(queue);
        assert_eq!((pool.taken(), board.counts().unowned_accesses), (0, 0), "seed {seed}");
    }
}
