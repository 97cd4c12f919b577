//! Several copies in flight: lists of jobs, in order, and what becomes of them where one goes
//! wrong.

use super::hole::hole;
use super::*;
use contigo::job::QueueCounts;
use fastrand::Rng;

const DEPTH: usize = 8;

/// A copy into all of a buffer's beginning, and the bytes that it brings.
fn copy(pool: &Pool, rng: &mut Rng, len: usize) -> ([Operand; 2], Vec<u8>) {
    let mut bytes = vec![0; LEN];
    rng.fill(&mut bytes);
    let (mut from, to) = (pool.take().unwrap(), filled(pool, !bytes[0]));
    from.copy_from_slice(&bytes).unwrap();
    bytes.truncate(len);
    ([from.to_device(..len), to.from_device(..len)], bytes)
}

#[track_caller]
fn arrive<D: Driver>(queue: &mut Queue<D>, bytes: &[u8]) {
    let [_, to] = queue.end::<2>().buffers;
    assert!(to.view_at::<u8>(..bytes.len()).unwrap() == bytes, "the copy is wrong");
}

#[test]
fn depth_follows_the_room_for_descriptors() {
    for (len_bytes, depth) in
        [(128, 1), (192, 1), (256, 2), (512, 4), (960, 4), (1024, 8), (4096, 8), (1 << 16, 8)]
    {
        let (board, region, pool) = bench(1, 2 * DEPTH, LEN);
        let channel = SimDevice::<ZdmaModel>::new(&board, board.port());
        let mut queue = Mode::Linked(len_bytes).queue(&channel, &region);
        let mut rng = Rng::with_seed(1);
        assert_eq!(queue.driver().depth(), depth, "{len_bytes}");
        for _ in 0..5 {
            let mut push = |_| {
                let len = rng.usize(1..=LEN);
                let (operands, bytes) = copy(&pool, &mut rng, len);
                queue.give(operands);
                bytes
            };
            let pushed: Vec<_> = (0..depth).map(&mut push).collect();
            assert_eq!(queue.is_full(), depth == DEPTH);
            pushed.iter().for_each(|bytes| arrive(&mut queue, bytes));
            // It runs dry, and nothing is stopped.
            assert!(queue.wait::<2>(LIMIT).unwrap().is_none());
        }
        let (pushed, completed) = (5 * depth as u64, 5 * depth as u64);
        let counts = QueueCounts { pushed, completed, underruns: 5, ..QueueCounts::default() };
        assert_eq!(queue.counts(), counts);
    }
}

#[test]
fn fault_inside_a_list_keeps_the_jobs_before() {
    let (board, region, pool) = bench(1, 2 * DEPTH, LEN);
    // The jobs before the fault count here, and the board would blame all of the list.
    board.allow_wrong_accesses(true).unwrap();
    let (_, nowhere) = hole(&board);
    let channel = SimDevice::<ZdmaModel>::new(&board, board.port());
    let mut queue = Mode::Linked(4096).queue(&channel, &region);
    let mut rng = Rng::with_seed(1);
    // The first is a list of its own; the other seven are one.
    for (bad, reading) in [(3, true), (7, true), (1, true), (3, false)] {
        let mut pushed = Vec::new();
        for index in 0..DEPTH {
            let ([from, to], bytes) = copy(&pool, &mut rng, 5000);
            let hole = || nowhere.take().unwrap();
            let operands = match (index == bad, reading) {
                (false, _) => [from, to],
                (true, true) => [hole().to_device(..5000), to],
                (true, false) => [from, hole().from_device(..5000)],
            };
            pushed.push((queue.submit(operands, &[]).unwrap(), bytes));
        }
        // After a write that failed only the bytes of the list before are known.
        let told = if reading { bad } else { 1 };
        pushed[..told].iter().for_each(|(_, bytes)| arrive(&mut queue, bytes));
        let bit = if reading { regs::INT_READ } else { regs::INT_WRITE };
        cases! {
            queue.fails::<2>() => Error::Fault { device: "zdma", status, .. } if status & bit != 0,
        }
        for (job, _) in &pushed[told..] {
            assert_eq!(queue.take_back::<2>().unwrap().unwrap().job, *job);
        }
        assert!(queue.take_back::<2>().unwrap().is_none());
    }
    works(&mut queue, &pool);
}

#[test]
fn long_copy_with_more_room_than_a_list() {
    const LONG: usize = 512 * 1024;
    let (board, region, pool) = bench(6, 2, LONG);
    let mut queue =
        Mode::Linked(3 * 4096).queue(&SimDevice::<ZdmaModel>::new(&board, board.port()), &region);
    let mut from = pool.take().unwrap();
    Rng::with_seed(6).fill(from.view_mut::<u8>().unwrap());
    let operands = [from.to_device(..), pool.take().unwrap().from_device(..)];
    let [from, to] = queue.run(operands, &[], LIMIT).unwrap().buffers;
    assert!(from.view::<u8>().unwrap() == to.view::<u8>().unwrap());
}

/// The jobs of a burst are one list, which is started once; they end together, by the registers of
/// one poll.
#[test]
fn burst_is_one_list() {
    for (mode, depth) in [(Mode::Linked(4096), DEPTH), (Mode::Linked(512), 4), (Mode::Simple, 1)] {
        for port in [SimBoard::port as fn(&SimBoard) -> Port, SimBoard::coherent_port] {
            let (board, region, pool) = bench(1, 2 * DEPTH, LEN);
            let channel = SimDevice::<ZdmaModel>::new(&board, port(&board));
            let mut queue = mode.queue(&channel, &region);
            let mut rng = Rng::with_seed(1);
            for round in 0..3 {
                let before = channel.accesses();
                queue.hold_doorbell();
                let mut push = |_| {
                    let len = rng.usize(1..=LEN);
                    let (operands, bytes) = copy(&pool, &mut rng, len);
                    queue.give(operands);
                    bytes
                };
                let pushed: Vec<_> = (0..depth).map(&mut push).collect();
                channel.run_for(100).unwrap();
                assert_eq!(channel.accesses(), before, "no doorbell yet");
                if round != 1 {
                    queue.ring_doorbell().unwrap();
                }
                pushed.iter().for_each(|bytes| arrive(&mut queue, bytes));
                if round == 2 {
                    // As one job alone.
                    let now = channel.accesses();
                    let writes = if mode == Mode::Simple { 13 } else { 9 };
                    assert_eq!(now.writes - before.writes, writes, "{mode:?}");
                }
            }
            clean(&board);
        }
    }
}

/// A queue that is deeper than the driver gives the rest of a burst as jobs end.
#[test]
fn burst_larger_than_the_driver_ends_in_order() {
    for mode in [Mode::Simple, Mode::Linked(256), Mode::Linked(512)] {
        let (board, region, pool) = bench(2, 2 * DEPTH, LEN);
        let channel = SimDevice::<ZdmaModel>::new(&board, board.port());
        let mut queue = mode.queue(&channel, &region);
        let mut rng = Rng::with_seed(2);
        for _ in 0..3 {
            queue.hold_doorbell();
            let mut push = |_| {
                let (operands, bytes) = copy(&pool, &mut rng, 1000);
                queue.give(operands);
                bytes
            };
            let pushed: Vec<_> = (0..DEPTH).map(&mut push).collect();
            pushed.iter().for_each(|bytes| arrive(&mut queue, bytes));
        }
        clean(&board);
    }
}

/// A stop within a burst forgets its jobs; the next list has none of them.
#[test]
fn stop_forgets_an_owed_doorbell() {
    for running in [0, 1] {
        let (board, region, pool) = bench(3, 2 * DEPTH, LEN);
        let channel = SimDevice::<ZdmaModel>::new(&board, board.port());
        let mut queue = Mode::Linked(4096).queue(&channel, &region);
        for _ in 0..running {
            queue.give(copies(&pool, .., ..));
        }
        queue.hold_doorbell();
        for _ in 0..3 {
            queue.give(copies(&pool, .., ..));
        }
        queue.stop().unwrap();
        assert_eq!(queue.drain::<2>(), 3 + running);
        works(&mut queue, &pool);
        clean(&board);
    }
}
