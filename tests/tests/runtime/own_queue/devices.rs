//! A queue over drivers of simulated devices that touch memory: more jobs than the device takes.

use contigo::{
    Queue, Region,
    design::kernel::{KernelMap, Protocol},
    sim::{
        SimBoard,
        ap_ctrl::{ApCtrlModel, KernelCall, SimApCtrl},
        zdma::SimZdma,
    },
};
use std::time::Duration;

const LIMIT: Duration = Duration::from_millis(20);

#[test]
fn eight_jobs_are_in_a_queue_over_a_channel_that_takes_one() {
    let board = SimBoard::new(1);
    let pool = Region::new(board.memory(64 * 1024).unwrap()).unwrap().pool(16, 1024).unwrap();
    let channel = SimZdma::new(&board, board.port());
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
    assert_eq!((queue.counts().completed, queue.counts().ran_dry, pool.taken()), (40, 5, 0));
}

#[test]
fn eight_calls_of_a_kernel_are_in_flight_each_with_its_own_numbers() {
    let map = KernelMap::named("add", Protocol::Hs)
        .result("ap_return", 0x10, 32)
        .scalar("a", 0x18, 32)
        .scalar("b", 0x20, 32);
    let add = |call: &mut KernelCall<'_, '_>| {
        Ok([u32::try_from(call.scalar(0) + call.scalar(1)).unwrap(), 0, 0, 0])
    };
    let board = SimBoard::new(3);
    let kernel = SimApCtrl::with_model(
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
