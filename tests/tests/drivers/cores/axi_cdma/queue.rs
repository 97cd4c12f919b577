//! Several copies in flight: their order, a stop in their middle, a driver that is dropped.

use super::{DRE, LIMIT, carve, narrow};
use contigo::{
    Queue, Region,
    drivers::axi_cdma::AxiCdmaConfig,
    sim::{SimBoard, axi_cdma::SimAxiCdma},
};
use std::time::Duration;

/// The ring has eight descriptors, and hundreds of jobs go round it.
#[test]
fn a_ring_goes_round_and_the_core_never_waits() {
    for depth in [None, Some(1), Some(3)] {
        let board = SimBoard::new(1);
        let region = Region::new(board.memory(256 * 1024).unwrap()).unwrap();
        let device = SimAxiCdma::new(&board, board.port());
        let config = AxiCdmaConfig { depth, ..DRE };
        let cdma = device.window().unwrap().sg(config, carve!(region)(512)).unwrap();
        let pool = region.pool(20, 1024).unwrap();
        let mut queue = Queue::new(cdma, 8).unwrap();
        let (mut pushed, mut told) = (0_u32, 0_u32);
        while told < 500 {
            while !queue.is_full() && pushed < 500 {
                let mut from = pool.take().unwrap();
                from.view_mut::<u32>().unwrap().fill(pushed);
                queue
                    .submit([from.to_device(..900), pool.take().unwrap().from_device(..)], &[])
                    .unwrap();
                pushed += 1;
            }
            let done = queue.wait::<2>(LIMIT).unwrap().unwrap();
            assert_eq!(done.buffers[1].view_at::<u32>(..900).unwrap(), [told; 225]);
            told += 1;
        }
        assert_eq!(queue.len(), 0);
    }
}

#[test]
fn a_stop_in_the_middle_tells_what_had_ended_and_gives_back_the_rest() {
    let (mut ended, mut cancelled) = (0, 0);
    for us in 0..40 {
        let board = SimBoard::new(us);
        let region = Region::new(board.memory(512 * 1024).unwrap()).unwrap();
        let device = narrow(&board);
        let cdma = device.window().unwrap().sg(DRE, carve!(region)(4096)).unwrap();
        let mut queue = Queue::new(cdma, 8).unwrap();
        for round in 0..2 {
            for byte in 0..8 {
                let mut from = carve!(region)(4096);
                from.view_mut::<u8>().unwrap().fill(byte);
                queue
                    .submit([from.to_device(..), carve!(region)(4096).from_device(..)], &[])
                    .unwrap();
            }
            device.run_for(u32::try_from(us).unwrap()).unwrap();
            if round == 1 {
                break;
            }
            queue.stop().unwrap();
            let mut told = 0;
            while let Ok(Some(done)) = queue.wait::<2>(Duration::ZERO) {
                assert_eq!(done.buffers[1].view::<u8>().unwrap(), [told; 4096]);
                told += 1;
            }
            ended += u32::from(told);
            while queue.take_back::<2>().unwrap().is_some() {
                cancelled += 1;
                told += 1;
            }
            assert_eq!(told, 8);
        }
        for byte in 0..8 {
            assert_eq!(
                queue.wait::<2>(LIMIT).unwrap().unwrap().buffers[1].view::<u8>().unwrap(),
                [byte; 4096],
                "it works again"
            );
        }
        drop(queue);
        let counts = board.counts();
        assert_eq!((counts.unowned_accesses, counts.stray_accesses, counts.lost_writes), (0, 0, 0));
    }
    assert!(ended > 50 && cancelled > 50, "{ended} {cancelled}");
}

#[test]
fn a_copy_that_ended_before_a_stop_is_told_in_simple_mode_too() {
    let board = SimBoard::new(1);
    let region = Region::new(board.memory(64 * 1024).unwrap()).unwrap();
    let device = SimAxiCdma::new(&board, board.port());
    let mut queue = Queue::new(device.window().unwrap().simple(DRE).unwrap(), 1).unwrap();
    for (us, ends) in [(0, false), (1_000, true)] {
        queue
            .submit([carve!(region)(4096).to_device(..), carve!(region)(4096).from_device(..)], &[])
            .unwrap();
        device.run_for(us).unwrap();
        queue.stop().unwrap();
        assert_eq!(queue.wait::<2>(Duration::ZERO).unwrap().is_some(), ends);
        assert_eq!(queue.take_back::<2>().unwrap().is_some(), !ends);
    }
}

#[test]
fn the_descriptors_memory_is_back_after_a_drop() {
    let board = SimBoard::new(1);
    let region = Region::new(board.memory(64 * 1024).unwrap()).unwrap();
    let own = region.pool(1, 4096).unwrap();
    let device = SimAxiCdma::new(&board, board.port());
    for _ in 0..3 {
        let cdma = device.window().unwrap().sg(DRE, own.take().unwrap()).unwrap();
        let mut queue = Queue::new(cdma, 1).unwrap();
        queue
            .submit([carve!(region)(256).to_device(..), carve!(region)(256).from_device(..)], &[])
            .unwrap();
        drop(queue);
        assert_eq!(own.taken(), 0);
    }
}
