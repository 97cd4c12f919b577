//! One side at an address that does not move: a FIFO's, which gives back what it gets.

use super::{DEFAULT, LIMIT, carve};
use contigo::{
    Error, Queue, Region,
    drivers::axi_cdma::{AxiCdmaConfig, Keyhole},
    sim::{
        SimBoard, SimDevice,
        axi_cdma::{AxiCdmaModel, FIFO_ADDR},
    },
};
use std::time::Duration;

#[test]
fn bytes_go_through_a_fifo_and_come_back() {
    for (sg, data_bits) in [(false, 32), (true, 64)] {
        let board = SimBoard::new(1);
        let region = Region::new(board.memory(256 * 1024).unwrap()).unwrap();
        let device = SimDevice::<AxiCdmaModel>::new(&board, board.port());
        let config = AxiCdmaConfig { data_bits, length_bits: 10, depth: Some(1), ..DEFAULT };
        let memory = || sg.then(|| carve!(region)(1024));
        let mut sent = vec![0; 960];
        fastrand::Rng::with_seed(1).fill(&mut sent);
        let mut from = carve!(region)(4096);
        from.copy_from_slice(&sent).unwrap();
        let writes = Keyhole::Writes(FIFO_ADDR);
        let mut queue =
            Queue::new(device.window().unwrap().keyhole(config, writes, memory()).unwrap(), 1)
                .unwrap();
        let [from] = queue.run([from.to_device(..960)], &[], LIMIT).unwrap().buffers;
        assert_eq!(from.view_at::<u8>(..960).unwrap(), sent, "nothing writes it");
        drop(queue);

        let reads = Keyhole::Reads(FIFO_ADDR);
        let mut queue =
            Queue::new(device.window().unwrap().keyhole(config, reads, memory()).unwrap(), 1)
                .unwrap();
        let [to] =
            queue.run([carve!(region)(4096).from_device(..960)], &[], LIMIT).unwrap().buffers;
        assert_eq!(to.view_at::<u8>(..960).unwrap(), sent);
        // It is empty now: a read waits, and its time limit ends it.
        let failed = queue
            .run([carve!(region)(4096).from_device(..64)], &[], Duration::from_millis(1))
            .unwrap_err();
        assert_eq!(
            (failed.error, failed.buffers.is_some()),
            (Error::Timeout { timeout_us: 1_000 }, true)
        );
        drop(queue);
        let counts = board.counts();
        assert_eq!(
            (counts.unowned_accesses, counts.stray_accesses),
            (0, 0),
            "the FIFO is no memory"
        );
    }
}

/// A transfer that is longer than its length register holds stays at the address in each piece.
#[test]
fn several_descriptors_and_several_jobs_share_the_address() {
    let board = SimBoard::new(1);
    let region = Region::new(board.memory(256 * 1024).unwrap()).unwrap();
    let device = SimDevice::<AxiCdmaModel>::new(&board, board.port());
    let config = AxiCdmaConfig { length_bits: 8, depth: Some(3), ..DEFAULT };
    let writes = Keyhole::Writes(FIFO_ADDR);
    let cdma =
        device.window().unwrap().keyhole(config, writes, Some(carve!(region)(1024))).unwrap();
    let mut queue = Queue::new(cdma, 3).unwrap();
    for byte in 0..3 {
        let mut from = carve!(region)(1024);
        from.view_mut::<u8>().unwrap().fill(byte);
        queue.submit([from.to_device(..600)], &[]).unwrap();
    }
    for _ in 0..3 {
        assert!(queue.wait::<1>(LIMIT).unwrap().is_some());
    }
    drop(queue);
    let reads = Keyhole::Reads(FIFO_ADDR);
    let cdma = device.window().unwrap().keyhole(config, reads, Some(carve!(region)(1024))).unwrap();
    let mut queue = Queue::new(cdma, 3).unwrap();
    for _ in 0..3 {
        queue.submit([carve!(region)(1024).from_device(..600)], &[]).unwrap();
    }
    for byte in 0..3 {
        assert_eq!(
            queue.wait::<1>(LIMIT).unwrap().unwrap().buffers[0].view_at::<u8>(..600).unwrap(),
            [byte; 600]
        );
    }
}

#[test]
fn keyhole_needs_whole_words_and_its_address() {
    let board = SimBoard::new(1);
    let region = Region::new(board.memory(64 * 1024).unwrap()).unwrap();
    let device = SimDevice::<AxiCdmaModel>::new(&board, board.port());
    let elsewhere = Keyhole::Writes(FIFO_ADDR + 0x1000);
    let mut queue =
        Queue::new(device.window().unwrap().keyhole(DEFAULT, elsewhere, None).unwrap(), 1).unwrap();
    let failed = queue.submit([carve!(region)(4096).to_device(..62)], &[]).unwrap_err();
    assert!(matches!(failed.error, Error::Argument { value: 62, multiple_of: 4, .. }), "{failed}");
    let failed = queue.run([carve!(region)(4096).to_device(..64)], &[], LIMIT).unwrap_err();
    assert!(
        matches!(failed.error, Error::FaultAt { what, .. } if what.starts_with("DMADecErr")),
        "{failed}"
    );
}
