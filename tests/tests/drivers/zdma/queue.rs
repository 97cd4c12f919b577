//! Several copies in flight: lists of jobs, in order, and what becomes of them where one goes
//! wrong.

use super::{LIMIT, Mode, alloc, failures::Hole};
use crate::regs::zdma as regs;
use contigo::{
    Align, CpuBuf, Driver, Error, Operand, Pool, Queue, Region,
    job::QueueCounts,
    sim::{SimBoard, SimDevice, zdma::ZdmaModel},
};
use fastrand::Rng;
use std::time::Duration;

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
        let $channel = SimDevice::<ZdmaModel>::new(&$board, $board.port());
        let driver = Mode::Linked($len_bytes).open($channel.window().unwrap(), alloc!($region));
        let mut $queue = Queue::new(driver, DEPTH).unwrap();
    };
}

#[test]
fn depth_follows_the_room_for_descriptors() {
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
fn fault_inside_a_list_keeps_the_jobs_before() {
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
            matches!(failed.error, Error::Fault { device: "zdma", status, .. }
                if status & bit != 0),
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
fn long_copy_with_more_room_than_a_list() {
    const LONG: usize = 512 * 1024;
    let board = SimBoard::new(6);
    let region = Region::new(board.memory(2 << 20).unwrap()).unwrap();
    let channel = SimDevice::<ZdmaModel>::new(&board, board.port());
    let mut queue =
        Queue::new(Mode::Linked(3 * 4096).open(channel.window().unwrap(), alloc!(region)), 1)
            .unwrap();
    let mut from = alloc!(region)(LONG);
    Rng::with_seed(6).fill(from.view_mut::<u8>().unwrap());
    let [from, to] = queue
        .run([from.to_device(..), alloc!(region)(LONG).from_device(..)], &[], LIMIT)
        .unwrap()
        .buffers;
    assert_eq!(from.view::<u8>().unwrap(), to.view::<u8>().unwrap());
}

#[test]
fn copy_into_its_own_neighbour() {
    let board = SimBoard::new(5);
    let region = Region::new(board.memory(64 * 1024).unwrap()).unwrap();
    let channel = SimDevice::<ZdmaModel>::new(&board, board.port());
    let mut queue =
        Queue::new(Mode::Linked(256).open(channel.window().unwrap(), alloc!(region)), 1).unwrap();
    let (mut from, to) = alloc!(region)(16384).split_at(8192).unwrap();
    from.view_mut::<u8>().unwrap().fill(9);
    queue.submit([from.to_device(1..8192), to.from_device(..8191)], &[]).unwrap();
    assert!(queue.try_next::<2>().unwrap().is_none(), "8 KiB take longer than one look");
    channel.run_for(1000).unwrap();
    let [_from, to] = queue.try_next().unwrap().unwrap().buffers;
    assert_eq!(to.view_at::<u8>(..8191).unwrap(), [9; 8191]);
    assert_eq!(to.view_at::<u8>(8191..).unwrap(), [0]);
    assert!(
        queue
            .run(
                [to.to_device(..), alloc!(region)(8192).from_device(..)],
                &[],
                Duration::from_millis(1)
            )
            .is_ok()
    );
}
