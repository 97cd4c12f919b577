//! Descriptors that need no sync.

use super::*;
use contigo::sim::OnBoard;
use contigo_testkit::fake_dev_node::{DevNodeConfig, Event, FakeDevNode};

/// The calls of the kernel for descriptors while `JOBS` packets are received, all in flight.
fn calls_for_descriptors(coherent: bool) -> usize {
    const JOBS: usize = 8;
    let board = SimBoard::new(31);
    let kernel = FakeDevNode::new(DevNodeConfig::default());
    let dev_node = kernel.open_dev_node().unwrap();
    let len_bytes = ring_bytes();
    let own = match coherent {
        true => dev_node.allocate_coherent(len_bytes).unwrap(),
        false => dev_node.allocate(len_bytes).unwrap(),
    };
    // The fake names what it allocates by numbers from 1.
    let descriptors = Region::new(OnBoard::new(&board, own).unwrap()).unwrap();
    let frames = dev_node.allocate(64 << 10).unwrap();
    let frames = Region::new(OnBoard::new(&board, frames).unwrap()).unwrap();
    let pool = frames.pool(JOBS, 256).unwrap();
    let device = core(&board, receiver(256, WITH_SG));
    let channel = device
        .window()
        .unwrap()
        .channel(Side::S2mm, AxiDmaConfig::default(), Some(ring(&descriptors)))
        .unwrap();
    let mut queue = Queue::new(channel, JOBS).unwrap();
    kernel.log();
    for _ in 0..JOBS {
        queue.submit([pool.take().unwrap().from_device(..)], &[]).unwrap();
    }
    for job in 0..JOBS as u64 {
        let done = queue.wait::<1>(LIMIT).unwrap().unwrap();
        assert_eq!((done.job, done.bytes, done.last), (job, Some(256), Some(true)));
        assert!(done.buffers[0].view::<u8>().unwrap().iter().any(|&byte| byte != 0));
    }
    assert_eq!(board.counts().unowned_accesses, 0);
    let of = |handle| {
        let is_its = move |event: &&Event| matches!(event, Event::Synced { handle: its, .. } if *its == handle);
        move |log: &[Event]| log.iter().filter(is_its).count()
    };
    let log = kernel.log();
    assert!(of(2)(&log) >= 2 * JOBS, "each frame changes hands twice");
    of(1)(&log)
}

fn ring_bytes() -> usize {
    4096
}

#[test]
fn coherent_descriptors_ask_the_kernel_nothing() {
    assert_eq!(calls_for_descriptors(true), 0);
    let synced = calls_for_descriptors(false);
    assert!(synced >= 2 * 8, "a write and a read of each: {synced}");
}
